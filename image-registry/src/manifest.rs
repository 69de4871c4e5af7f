//! Manifests and indexes.

use std::fmt;
use std::str::FromStr;

use conventions::image::Digest;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::error::Cause;
use crate::settings::Platform;

/// What registries are asked for: manifests and indexes, of OCI and of Docker.
pub(crate) const ACCEPT: &str = "application/vnd.oci.image.index.v1+json, \
     application/vnd.docker.distribution.manifest.list.v2+json, \
     application/vnd.oci.image.manifest.v1+json, \
     application/vnd.docker.distribution.manifest.v2+json";

/// What a digest names.
#[derive(Debug)]
pub(crate) enum Manifest {
    /// An image.
    Image(Image),
    /// Several, for different platforms.
    Index(Vec<Part>),
}

/// Of what an image consists.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) config: Part,
    pub(crate) layers: Vec<Part>,
    /// What it is about, if it is something beside an image.
    pub(crate) subject: Option<Box<Part>>,
}

/// Something that is stored under its digest.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Part {
    digest: String,
    #[serde(default)]
    pub(crate) size: i64,
    #[serde(default)]
    pub(crate) artifact_type: Option<String>,
    /// Of an entry of an index.
    platform: Option<ChildPlatform>,
}

#[derive(Clone, Debug, Deserialize)]
struct ChildPlatform {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    variant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: i64,
    config: Option<Part>,
    #[serde(default, deserialize_with = "few")]
    layers: Option<Vec<Part>>,
    subject: Option<Box<Part>>,
    #[serde(default, deserialize_with = "few")]
    manifests: Option<Vec<Part>>,
}

/// The most parts that are read: a part takes far more memory than its text.
const PARTS: usize = 4096;

/// Parts, if they are not too many.
fn few<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Part>>, D::Error> {
    struct Few;

    impl<'de> Visitor<'de> for Few {
        type Value = Option<Vec<Part>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {PARTS} parts")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut parts = Vec::new();
            while let Some(part) = seq.next_element()? {
                if parts.len() == PARTS {
                    return Err(A::Error::invalid_length(PARTS + 1, &self));
                }
                parts.push(part);
            }
            Ok(Some(parts))
        }
    }

    deserializer.deserialize_any(Few)
}

impl Part {
    /// # Errors
    ///
    /// If it is none that we know.
    pub(crate) fn digest(&self, what: &str) -> Result<Digest, Cause> {
        Digest::from_str(&self.digest).map_err(|_| Cause::Image {
            what: what.to_owned(),
            fault: "names something by a digest that is not sha256".to_owned(),
        })
    }
}

/// Reads a manifest.
///
/// # Errors
///
/// If it is none, or of a version that has no configuration.
pub(crate) fn parse(bytes: &[u8], what: &str) -> Result<Manifest, Cause> {
    let fault = |fault: &str| Cause::Image {
        what: what.to_owned(),
        fault: fault.to_owned(),
    };
    let document: Document =
        serde_json::from_slice(bytes).map_err(|_| fault("is not a manifest of an image"))?;
    match document.schema_version {
        2 => {}
        1 => {
            let what = what.to_owned();
            return Err(Cause::Schema1 { what });
        }
        _ => return Err(fault("is a manifest of a version that is not known")),
    }
    match (document.config, document.manifests) {
        (Some(config), None) => Ok(Manifest::Image(Image {
            config,
            layers: document.layers.unwrap_or_default(),
            subject: document.subject,
        })),
        (None, Some(manifests)) => Ok(Manifest::Index(manifests)),
        _ => Err(fault("is neither a manifest nor an index")),
    }
}

/// The first entry for a platform. One that names no platform is for the usual one.
pub(crate) fn child_for<'c>(children: &'c [Part], platform: &Platform) -> Option<&'c Part> {
    let usual = Platform::default();
    children.iter().find(|child| match &child.platform {
        None => usual.os == platform.os && usual.architecture == platform.architecture,
        Some(it) => {
            let variant = platform.variant.as_ref();
            it.os == platform.os
                && it.architecture == platform.architecture
                && variant.is_none_or(|variant| it.variant.as_ref() == Some(variant))
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn digest(fill: char) -> String {
        format!("sha256:{}", fill.to_string().repeat(64))
    }

    fn read(value: &serde_json::Value) -> Result<Manifest, Cause> {
        parse(value.to_string().as_bytes(), "it")
    }

    #[test]
    fn an_index_gives_the_first_image_for_the_platform() {
        let index = json!({"schemaVersion": 2, "manifests": [
            {"digest": digest('0'), "platform": {"os": "unknown", "architecture": "unknown"}},
            {"digest": digest('1'), "platform": {"os": "linux", "architecture": "arm", "variant": "v6"}},
            {"digest": digest('2'), "platform": {"os": "linux", "architecture": "arm", "variant": "v7"}},
            {"digest": digest('3'), "platform": {"os": "linux", "architecture": "amd64"}},
            {"digest": digest('4'), "platform": {"os": "linux", "architecture": "amd64"}},
            {"digest": "sha512:00", "platform": {"os": "windows", "architecture": "amd64"}},
        ]});
        let Manifest::Index(children) = read(&index).unwrap() else {
            panic!("no index");
        };
        let chosen = |platform: &str| {
            let child = child_for(&children, &platform.parse().unwrap());
            child.map(|child| child.digest("it").map(|it| it.as_str()[7..8].to_owned()))
        };
        assert_eq!(chosen("linux/amd64"), Some(Ok("3".to_owned())));
        assert_eq!(chosen("linux/arm"), Some(Ok("1".to_owned())));
        assert_eq!(chosen("linux/arm/v7"), Some(Ok("2".to_owned())));
        assert_eq!(chosen("linux/s390x"), None);
        assert!(chosen("windows/amd64").unwrap().is_err());
    }

    #[test]
    fn an_entry_without_platform_is_for_amd64() {
        let index = json!({"schemaVersion": 2, "manifests": [{"digest": digest('1')}]});
        let Manifest::Index(children) = read(&index).unwrap() else {
            panic!("no index");
        };
        assert!(child_for(&children, &Platform::default()).is_some());
        assert!(child_for(&children, &"linux/arm64".parse().unwrap()).is_none());
    }

    #[test]
    fn what_is_no_manifest_is_told() {
        let text = |value: &serde_json::Value| read(value).unwrap_err().to_string();
        assert_eq!(
            text(&json!({"schemaVersion": 1, "fsLayers": []})),
            "it is a manifest of schema version 1, which is not supported: push the image again"
        );
        for broken in [
            json!({}),
            json!([]),
            json!("x"),
            json!({"schemaVersion": "2"}),
        ] {
            assert_eq!(
                text(&broken),
                "it is not a manifest of an image",
                "{broken}"
            );
        }
        assert_eq!(
            text(&json!({"schemaVersion": 2})),
            "it is neither a manifest nor an index"
        );
        assert_eq!(
            text(&json!({"schemaVersion": 3, "manifests": []})),
            "it is a manifest of a version that is not known"
        );
    }

    #[test]
    fn a_flood_of_parts_is_no_manifest() {
        let part = json!({"digest": digest('1')});
        let index = |number| json!({"schemaVersion": 2, "manifests": vec![part.clone(); number]});
        assert!(read(&index(PARTS)).is_ok());
        assert!(read(&index(PARTS + 1)).is_err());
        let null = json!({"schemaVersion": 2, "config": part, "layers": null, "manifests": null});
        assert!(matches!(read(&null), Ok(Manifest::Image(_))));
    }

    /// Something that a registry may call a part.
    fn part() -> impl Strategy<Value = serde_json::Value> {
        let text = prop_oneof![
            Just(json!(digest('1'))),
            "\\PC{0,80}".prop_map(|text| json!(text)),
            Just(json!(null)),
        ];
        let platform = prop_oneof![
            Just(json!(null)),
            Just(json!({"os": "linux", "architecture": "amd64", "variant": "v8"})),
            Just(json!({"os": 5})),
            Just(json!([])),
        ];
        let part = (text, any::<i64>(), platform);
        let part = part.prop_map(|(digest, size, platform)| {
            json!({"digest": digest, "size": size, "platform": platform, "artifactType": digest})
        });
        prop_oneof![4 => part, 1 => Just(json!(null)), 1 => Just(json!("x"))]
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, "it");
        }

        #[test]
        fn no_document_makes_it_panic(
            part in part(),
            parts in prop::collection::vec(part(), 0..5),
            version in prop_oneof![Just(json!(2)), Just(json!(1)), Just(json!("2")), Just(json!(null))],
            fields in any::<[bool; 4]>(),
        ) {
            let mut document = json!({"schemaVersion": version});
            let values = [&part, &json!(parts), &part, &json!(parts)];
            for (index, name) in ["config", "layers", "subject", "manifests"].iter().enumerate() {
                if fields[index] {
                    document[*name] = values[index].clone();
                }
            }
            match read(&document) {
                Ok(Manifest::Image(image)) => {
                    let _ = image.config.digest("it");
                    prop_assert!(image.layers.len() <= parts.len());
                }
                Ok(Manifest::Index(children)) => {
                    let child = child_for(&children, &Platform::default());
                    let _ = child.map(|child| child.digest("it"));
                }
                Err(cause) => prop_assert!(cause.to_string().starts_with("it ")),
            }
        }
    }
}
