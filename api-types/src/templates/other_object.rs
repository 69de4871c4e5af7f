//! An object beside the stamped one that a rule reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The most objects that the rules of one template may read beside the stamped one.
pub const MOST_OTHER_OBJECTS: usize = 8;

/// An object beside the stamped one, in the owner's namespace if its kind has namespaces: the one with this name, or the only
/// one with these labels. Exactly one of both is given when admitted. All texts but the keys of labels may hold tags.
///
/// ```
/// use api_types::templates::SuccessRules;
/// use serde_json::json;
///
/// let rules: SuccessRules = serde_json::from_value(json!({"observedCompletion": {"succeeded": {
///     "object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "$(workload.metadata.name)$-gate"},
///     "key": ".data.open", "value": "true",
/// }}}))?;
/// assert_eq!(rules.other_objects()[0].kind, "ConfigMap");
/// assert!(rules.are_attributed());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct OtherObject {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The labels that it alone has.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

impl OtherObject {
    /// The texts that may hold tags, each with the field in which it stands.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = [
            ("apiVersion", &self.api_version),
            ("kind", &self.kind),
            ("name", &self.name),
        ];
        let labels = self.match_labels.values();
        let labels = labels.map(|value| ("matchLabels", value));
        own.into_iter()
            .chain(labels)
            .map(|(field, text)| (field, text.as_str()))
    }
}
