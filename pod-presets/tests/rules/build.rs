//! Presets and pods to try rules with.

use pod_presets::{Conflict, Injection, Preset, inject};
use serde_json::{Value, json};

/// A PodPreset of the group of today for pods with label `app: web`.
pub(crate) fn object(name: &str, spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": name, "namespace": "team", "resourceVersion": version(name)},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    let fields = object["spec"].as_object_mut().unwrap();
    fields.extend(spec.as_object().unwrap().clone());
    object
}

/// Another version for each name.
pub(crate) fn version(name: &str) -> String {
    let sum: u32 = name.bytes().map(u32::from).sum();
    format!("{}", 1000 + sum)
}

pub(crate) fn preset(name: &str, spec: &Value) -> Preset {
    compiled(&object(name, spec))
}

pub(crate) fn compiled(object: &Value) -> Preset {
    Preset::compile(object).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// A pod with label `app: web` and this spec.
pub(crate) fn pod(spec: &Value) -> Value {
    json!({"kind": "Pod", "metadata": {"generateName": "web-", "labels": {"app": "web"}}, "spec": spec})
}

/// A pod with one container.
pub(crate) fn one(container: &Value) -> Value {
    let mut own = json!({"name": "web"});
    let fields = container.as_object().unwrap().clone();
    own.as_object_mut().unwrap().extend(fields);
    pod(&json!({"containers": [own]}))
}

/// Injects, and tries that doing it again changes nothing.
pub(crate) fn injected(pod: &Value, presets: &[&Preset]) -> Injection {
    let injection = inject(pod, presets);
    if let Some(after) = &injection.pod {
        let again = inject(after, presets);
        assert_eq!(again.pod, None, "again");
        assert!(!again.conflicts.iter().any(|it| it.settled.is_blocking()));
    }
    injection
}

/// The pod, changed or not.
pub(crate) fn result(pod: &Value, presets: &[&Preset]) -> Value {
    injected(pod, presets).pod.unwrap_or_else(|| pod.clone())
}

/// Messages of the conflicts.
pub(crate) fn messages(injection: &Injection) -> Vec<String> {
    let conflicts = injection.conflicts.iter();
    conflicts.map(Conflict::message).collect()
}
