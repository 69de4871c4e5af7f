//! Artifact: outputs of a step, kept outside of its owner's status (docs/behaviour/attribution.md#artifacts).
//!
//! An Artifact is a store of bytes and is not believed. What its values are is said by the status of its owner, or by the
//! identity, which is a digest of them and of what they were made from.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::custom_resource::custom_resource;
use crate::status::Provenance;

/// The kind.
pub const ARTIFACT: &str = "Artifact";
/// Its plural, as in URLs.
pub const ARTIFACTS: &str = "artifacts";

/// The most identities of a step that `spec.artifacts.retain` of a blueprint may ask for.
pub const MOST_RETAINED: u32 = 20;

/// The most characters of a name of an object.
const MOST_NAME_CHARS: usize = 253;

custom_resource! {
    /// Outputs of a step, with what made them.
    #[kube(
        kind = "Artifact",
        plural = "artifacts",
        namespaced,
        doc = "Outputs of a step, kept by the controller.",
        printcolumn = r#"{"name":"Owner","type":"string","jsonPath":".spec.owner.name"}"#,
        printcolumn = r#"{"name":"Step","type":"string","jsonPath":".spec.step"}"#,
        printcolumn = r#"{"name":"Accepted","type":"date","jsonPath":".spec.provenance.accepted"}"#
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct ArtifactSpec {
        /// For whom it is kept.
        pub owner: ArtifactOwner,
        /// Name of the resource (step) in the blueprint.
        pub step: String,
        /// The values, in the order of the status.
        pub outputs: Vec<ArtifactOutput>,
        /// What made them, as in the status of the owner.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub provenance: Option<Provenance>,
        /// Digest of what was rendered; with it the identity can be computed anew. Absent where anything of it comes from a
        /// Secret: then the identity is one under the key of the installation.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub rendering: Option<String>,
    }
}

/// The owner of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArtifactOwner {
    /// Workload or Deliverable.
    pub kind: String,
    /// Its name; it is in the namespace of the Artifact.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// A value that is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ArtifactOutput {
    /// `url`, `revision`, `image` or `config`.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// An Artifact that the status of an owner names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactReference {
    /// Name of the Artifact, in the namespace of the owner.
    pub name: String,
    /// Identity of the outputs that it keeps.
    pub identity: String,
    /// When they were accepted; whole seconds.
    pub accepted: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
    /// How many bytes the values have as JSON.
    pub bytes: u64,
    /// Digest of the values: 32 hexadecimal digits. An Artifact with others is not believed.
    pub digest: String,
}

/// The name of the Artifact that keeps the outputs with this identity of a step.
///
/// ```
/// use api_types::artifact::artifact_name;
///
/// let name = artifact_name("Workload", "app", "build", "0871c10a");
/// assert_eq!(name, "workload-app-build-0871c10a");
/// assert!(artifact_name("Workload", &"a".repeat(300), "build", "0871c10a").ends_with("-0871c10a"));
/// ```
pub fn artifact_name(kind: &str, owner: &str, step: &str, identity: &str) -> String {
    let fits = |c: char| {
        let is_plain = c.is_ascii_lowercase() || c.is_ascii_digit();
        if is_plain { c } else { '-' }
    };
    let readable = format!("{kind}-{owner}-{step}").to_lowercase();
    let identity: String = identity.chars().map(fits).collect();
    let room = MOST_NAME_CHARS.saturating_sub(identity.len() + 1);
    let readable: String = readable.chars().map(fits).take(room).collect();
    format!("{readable}-{identity}")
}
