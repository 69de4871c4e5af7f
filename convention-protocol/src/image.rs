//! What a convention is told about an image.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::lenient::null_is_absent;

/// An image of the template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageConfig {
    /// The text that the containers of the template have as their image.
    pub image: String,
    /// Its bills of materials.
    #[serde(
        deserialize_with = "null_is_absent",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub boms: Vec<Bom>,
    /// The image's own configuration: the file of the OCI image specification, with whatever else it has.
    #[serde(deserialize_with = "null_is_absent")]
    pub config: Value,
}

/// A bill of materials, in whatever format.
///
/// ```
/// use convention_protocol::Bom;
///
/// let bom: Bom = serde_json::from_str(r#"{"name": "cnb-app:/layers/sbom.cdx.json", "raw": "e30="}"#)?;
/// assert_eq!(bom.raw, b"{}");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bom {
    /// Where it comes from: a prefix for the kind of source, and a path or name.
    pub name: String,
    /// Its bytes; base64 on the wire.
    #[serde(serialize_with = "to_base64", deserialize_with = "from_base64")]
    pub raw: Vec<u8>,
}

/// Without the bytes: they are long, and no log is to hold them.
impl fmt::Debug for Bom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bom({:?}, {} bytes)", self.name, self.raw.len())
    }
}

fn to_base64<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text: String = null_is_absent(deserializer)?;
    STANDARD.decode(text).map_err(serde::de::Error::custom)
}
