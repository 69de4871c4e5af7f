//! Artifacts: outputs that are kept outside of the owner's status (docs/behaviour/attribution.md#artifacts).
//!
//! Status says what is kept, and by which digest it is known; an Artifact is a store of bytes. Its values count only where
//! they have the digests that status tells, or, of outputs that status has no more, where its identity is the digest of all
//! that it says. So whoever writes one can have nothing handed on and nothing told.
//!
//! ```text
//!  shell's cache ─▶ KnownArtifacts ─┬─▶ last good outputs that are too large for status
//!                                   └─▶ keep: what status names ─▶ ArtifactWrite (before the status)
//!                                                               └▶ obsolete      (after the status)
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::artifact::artifact_name;
use api_types::{
    Artifact, ArtifactOutput, ArtifactOwner, ArtifactReference, ArtifactSpec, OutputStatus,
    ResourceStatus,
};
use serde::Deserialize;
use serde_json::{Value, json};
use template_language::yaml_digest;

use crate::values::canonical;

/// An Artifact as the shell's cache has it, but for its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownArtifact {
    /// For whom it is, by what it says.
    pub owner: ArtifactOwner,
    /// Digest of its values, as [`ArtifactReference::digest`].
    digest: String,
    /// Whether its identity cannot be computed: it is one under the key of the installation, or somebody says so.
    pub(crate) is_keyed: bool,
    /// Whether it is as it would be written: its name, its owner reference, and its identity, where that can be computed.
    pub(crate) is_whole: bool,
}

impl KnownArtifact {
    /// What is known of an object of the kind.
    pub fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let artifact = Artifact::deserialize(object);
        let spec = artifact.map(|artifact| artifact.spec).unwrap_or_default();
        let identity = spec.provenance.as_ref().map(|it| it.identity.as_str());
        let owner = &spec.owner;
        let name = artifact_name(
            &owner.kind,
            &owner.name,
            &spec.step,
            identity.unwrap_or_default(),
        );
        let owners = metadata["ownerReferences"].as_array();
        let is_owned = owners
            .into_iter()
            .flatten()
            .any(|it| it["uid"] == owner.uid);
        let computed = identity_of(&spec);
        let is_whole = metadata["name"] == name
            && is_owned
            && (spec.rendering.is_none() || computed.as_deref() == identity);
        Self {
            digest: digest_of(&spec.outputs),
            is_keyed: spec.rendering.is_none(),
            owner: spec.owner,
            is_whole,
        }
    }

    /// Whether it has the values that status tells.
    pub(crate) fn has(&self, reference: &ArtifactReference) -> bool {
        self.digest == reference.digest
    }
}

/// Digest of values, each with its name; not as YAML, in which large numbers may be equal that are not.
pub(crate) fn digest_of(outputs: &[ArtifactOutput]) -> String {
    let values = outputs.iter().map(|it| (it.name.as_str(), &it.value));
    let values: Vec<(&str, &Value)> = values.collect();
    canonical::short(&canonical::digest(&json!(values)))
}

/// The Artifacts of an owner.
#[derive(Clone, Debug, Default)]
pub struct KnownArtifacts {
    /// Those that are there, by name.
    pub found: BTreeMap<String, Arc<KnownArtifact>>,
    /// The values of those that [`Owner::artifacts_to_read`](crate::Owner::artifacts_to_read) names, as far as they are
    /// there.
    pub values: BTreeMap<String, Vec<ArtifactOutput>>,
    /// Why they cannot be read, or could not be written, and what to do about it.
    pub trouble: Option<String>,
    /// Whether it is not known which are there.
    pub is_unlisted: bool,
    /// Whether it is of no use to write one now.
    pub is_unwritable: bool,
}

/// An Artifact that is to be written before the status that names it.
#[derive(Clone, Debug, PartialEq)]
pub struct ArtifactWrite {
    /// Its name.
    pub name: String,
    /// The object.
    pub object: Value,
}

impl KnownArtifacts {
    /// The values of the last good outputs, if status does not hold them and an Artifact does.
    pub(crate) fn last_good(
        &self,
        entry: &ResourceStatus,
        outputs: &[OutputStatus],
    ) -> Option<&[ArtifactOutput]> {
        let kept = kept_in(&entry.artifacts, outputs)?;
        let values = self.values.get(&kept.name)?;
        (digest_of(values) == kept.digest).then_some(values)
    }

    /// Why the last good outputs are not to be had, although an Artifact is to keep them.
    pub(crate) fn why_lost(
        &self,
        entry: &ResourceStatus,
        outputs: &[OutputStatus],
    ) -> Option<String> {
        let Some(ArtifactReference { name, .. }) = kept_in(&entry.artifacts, outputs) else {
            let trouble = self.trouble.as_ref()?;
            return Some(format!(
                "the last good outputs are too large to be kept in status, and no Artifact keeps them: {trouble}"
            ));
        };
        let unlisted = self.trouble.as_ref().filter(|_| self.is_unlisted);
        let why = match (unlisted, self.found.get(name)) {
            (Some(trouble), _) => format!("cannot be read: {trouble}"),
            (None, None) => "is not there any more".to_owned(),
            (None, Some(_)) => "does not hold what was good".to_owned(),
        };
        Some(format!(
            "the last good outputs are kept in Artifact [{name}], which {why}"
        ))
    }
}

/// The name of the Artifact that keeps outputs which status does not hold.
pub(crate) fn kept_in<'e>(
    kept: &'e [ArtifactReference],
    outputs: &[OutputStatus],
) -> Option<&'e ArtifactReference> {
    if outputs.iter().all(|output| output.value.is_some()) {
        return None;
    }
    let provenance = outputs.first()?.provenance.as_ref()?;
    let mut kept = kept.iter();
    kept.find(|kept| kept.identity == provenance.identity)
}

/// The identity of the outputs in an Artifact, as it follows from all else that it says. None where it is one under the key
/// of the installation.
///
/// ```
/// use api_types::ArtifactSpec;
///
/// assert_eq!(realizer::identity_of(&ArtifactSpec::default()), None);
/// ```
pub fn identity_of(artifact: &ArtifactSpec) -> Option<String> {
    let (provenance, rendering) = (artifact.provenance.as_ref()?, artifact.rendering.as_ref()?);
    let values = artifact.outputs.iter();
    let values: Vec<(&str, &Value)> = values.map(|it| (it.name.as_str(), &it.value)).collect();
    Some(canonical::short(&canonical::digest(&json!({
        "step": artifact.step,
        "template": provenance.template,
        "object": provenance.object.uid,
        "rendering": rendering,
        "params": provenance.params,
        "inputs": provenance.inputs,
        "values": values,
    }))))
}

/// Name, beginning as YAML, and digest of each output in an Artifact, as status shows them.
pub fn previews(artifact: &ArtifactSpec) -> Vec<(String, String, String)> {
    let outputs = artifact.outputs.iter();
    let shown = outputs.map(|ArtifactOutput { name, value }| {
        let (preview, digest) = (yaml_digest::preview(value), yaml_digest::digest(value));
        (name.clone(), preview, digest)
    });
    shown.collect()
}

#[cfg(test)]
mod tests;
