//! What is kept of presets and namespaces.

use std::collections::BTreeMap;

use controller_kit::reflect::Entry;
use pod_presets::{FieldError, Preset, PresetName, PresetStatus};
use serde::Deserialize as _;
use serde_json::Value;

/// Labels, by key.
pub(super) type Labels = BTreeMap<String, String>;

/// A preset, compiled once per version.
pub(super) struct PresetEntry {
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
    pub(super) generation: i64,
    /// `metadata.resourceVersion`, as it is stored.
    pub(super) version: Box<str>,
    /// The version that pods carry which got it: the first one that was seen of this generation.
    /// See [`marked_version`].
    pub(super) marked: Box<str>,
    pub(super) status: PresetStatus,
    pub(super) compiled: Result<Preset, Vec<FieldError>>,
}

impl Entry for PresetEntry {
    fn build(mut object: Value) -> Self {
        let status = object["status"].take();
        let marked = marked_version(&object["metadata"], &status).to_owned();
        let version = text(&object["metadata"]["resourceVersion"]).into();
        if let Some(stored) = object.pointer_mut("/metadata/resourceVersion") {
            *stored = marked.clone().into();
        }
        let metadata = &object["metadata"];
        Self {
            namespace: text(&metadata["namespace"]).into(),
            name: text(&metadata["name"]).into(),
            uid: text(&metadata["uid"]).into(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            version,
            marked: marked.into(),
            // Of one that somebody has spoilt nothing is kept.
            status: PresetStatus::deserialize(&status).unwrap_or_default(),
            compiled: Preset::compile(&object),
        }
    }
}

impl PresetEntry {
    /// If it can be applied.
    pub(super) fn preset(&self) -> Option<&Preset> {
        self.compiled.as_ref().ok()
    }

    /// Whether it is the one of this name.
    pub(super) fn is(&self, id: &PresetName) -> bool {
        self.preset().is_some_and(|preset| preset.id() == id)
    }
}

/// Each write of a status gives the object another resourceVersion. If pods were marked with that,
/// each of them would look outdated soon, though nothing that it got is. So the status keeps the
/// version that its generation was first reported with, and pods carry that one.
fn marked_version<'v>(metadata: &'v Value, status: &'v Value) -> &'v str {
    let kept = text(&status["observedResourceVersion"]);
    let is_of_generation = status["observedGeneration"] == metadata["generation"];
    if is_of_generation && !kept.is_empty() {
        kept
    } else {
        text(&metadata["resourceVersion"])
    }
}

/// What of a namespace counts: its labels.
pub(super) struct NamespaceEntry {
    pub(super) labels: Labels,
}

impl Entry for NamespaceEntry {
    fn build(object: Value) -> Self {
        Self {
            labels: labels_of(&object),
        }
    }
}

/// The labels of an object.
pub(super) fn labels_of(object: &Value) -> Labels {
    let labels = object["metadata"]["labels"].as_object();
    let labels = labels.into_iter().flatten();
    labels
        .map(|(key, value)| (key.clone(), text(value).to_owned()))
        .collect()
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_marked_with_the_version_that_their_generation_was_first_reported_with() {
        let metadata = json!({"generation": 2, "resourceVersion": "9"});
        let marked = |status: Value| marked_version(&metadata, &status).to_owned();
        assert_eq!(marked(Value::Null), "9");
        let kept = |generation: u8, version: &str| json!({"observedGeneration": generation, "observedResourceVersion": version});
        assert_eq!(marked(kept(2, "5")), "5");
        assert_eq!(marked(kept(1, "5")), "9");
        assert_eq!(marked(kept(2, "")), "9");
    }
}
