//! Variables that hide others.

use std::collections::BTreeSet;

use serde_json::Value;

/// What holds the keys that variables are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A ConfigMap.
    ConfigMap,
    /// A Secret.
    Secret,
}

impl Source {
    fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

/// Advice that is given at once.
const MOST_ADVICE: usize = 16;

/// Variables of containers that `envFrom` has under the same name, as far as the keys of the ConfigMaps and Secrets are known.
/// Kubernetes takes the variable: it is no conflict, but its author may not know.
///
/// ```
/// use pod_presets::{Source, shadowed};
/// use serde_json::json;
///
/// let container = json!({
///     "name": "web",
///     "env": [{"name": "A_KEY"}],
///     "envFrom": [{"prefix": "A_", "configMapRef": {"name": "settings"}}],
/// });
/// let keys = |source, name: &str| {
///     (source == Source::ConfigMap && name == "settings").then(|| ["KEY".to_owned(), "OTHER".to_owned()].into())
/// };
/// let advice = shadowed(&json!({"spec": {"containers": [container]}}), keys);
/// assert_eq!(advice, ["container web: env A_KEY hides a key of ConfigMap settings"]);
/// ```
pub fn shadowed(
    pod: &Value,
    keys: impl Fn(Source, &str) -> Option<BTreeSet<String>>,
) -> Vec<String> {
    let mut advice = Vec::new();
    for list in ["containers", "initContainers"] {
        for container in items(&pod["spec"][list]) {
            advise(container, &keys, &mut advice);
        }
    }
    advice.truncate(MOST_ADVICE);
    advice
}

fn advise(
    container: &Value,
    keys: &impl Fn(Source, &str) -> Option<BTreeSet<String>>,
    advice: &mut Vec<String>,
) {
    let names: BTreeSet<&str> = items(&container["env"])
        .map(|variable| text(&variable["name"]))
        .collect();
    for from in items(&container["envFrom"]) {
        let prefix = text(&from["prefix"]);
        for (source, field) in [
            (Source::ConfigMap, "configMapRef"),
            (Source::Secret, "secretRef"),
        ] {
            let name = text(&from[field]["name"]);
            if advice.len() >= MOST_ADVICE || name.is_empty() {
                continue;
            }
            let keys = keys(source, name).unwrap_or_default();
            let hidden = keys.iter().map(|key| format!("{prefix}{key}"));
            let hidden = hidden.filter(|key| names.contains(key.as_str()));
            let container = text(&container["name"]);
            advice.extend(hidden.map(|key| {
                let kind = source.kind();
                format!("container {container}: env {key} hides a key of {kind} {name}")
            }));
        }
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
