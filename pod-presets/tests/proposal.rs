//! The five examples of the proposal that pod presets come from, byte for byte, with what its prose corrects in them: the
//! prefix of the marker, the number of a port as text, the group.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

use std::collections::BTreeMap;
use std::path::Path;

use pod_presets::{Injection, Preset, inject, passes_gate, patch, select};
use serde_json::Value;

/// The documents of an example: the pod, presets, and the pod after admission.
fn documents(name: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proposal");
    let text = std::fs::read_to_string(folder.join(format!("{name}.yaml"))).unwrap();
    test_support::documents(&text).unwrap()
}

/// What becomes of the pod is what the example says; returns how.
fn try_example(name: &str) -> Injection {
    let documents = documents(name);
    let [pod, presets @ .., expected] = &documents[..] else {
        panic!("{name} has no pods");
    };
    let presets: Vec<Preset> = presets
        .iter()
        .map(|it| Preset::compile(it).unwrap())
        .collect();
    let labels: BTreeMap<String, String> =
        serde_json::from_value(pod["metadata"]["labels"].clone()).unwrap();
    let selected = select(&presets, &labels, &BTreeMap::new());
    assert_eq!(selected.len(), presets.len(), "{name}");
    passes_gate(pod).unwrap();
    let injection = inject(pod, &selected);
    let after = injection.pod.as_ref().unwrap_or(pod);
    let as_yaml = |pod: &Value| serde_saphyr::to_string(pod).unwrap();
    assert_eq!(as_yaml(after), as_yaml(expected), "{name}");

    let mut patched = pod.clone();
    json_patch::patch(&mut patched, &patch(pod, after)).unwrap();
    assert_eq!(as_yaml(&patched), as_yaml(expected), "{name}");
    assert_eq!(inject(after, &selected).pod, None, "{name}");
    injection
}

#[test]
fn a_simple_pod_gets_a_variable_and_a_volume() {
    let injection = try_example("1-simple");
    let added = injection.applied[0].added.iter();
    let added: Vec<_> = added.map(|it| (it.list, it.key.as_str())).collect();
    let expected = [
        ("volumes", "cache-volume"),
        ("env", "DB_PORT"),
        ("volumeMounts", "/cache"),
    ];
    assert_eq!(added, expected);
}

#[test]
fn a_key_that_is_in_a_config_map_and_in_env_is_no_conflict() {
    assert!(try_example("2-config-map").conflicts.is_empty());
}

#[test]
fn a_pod_of_a_replica_set_keeps_what_it_has_first() {
    assert!(try_example("3-replica-set").conflicts.is_empty());
}

#[test]
fn two_presets_are_injected_the_oldest_first() {
    let names = try_example("4-two-presets").applied;
    let names: Vec<_> = names.iter().map(|it| it.preset.name.as_str()).collect();
    assert_eq!(names, ["allow-database", "proxy"]);
}

#[test]
fn a_conflict_leaves_the_pod_as_it_was_and_is_told() {
    let injection = try_example("5-conflict");
    let [conflict] = &injection.conflicts[..] else {
        panic!("{:?}", injection.conflicts);
    };
    assert_eq!(
        conflict.message(),
        "Conflict on pod preset. Duplicate mountPath /cache."
    );
    assert_eq!(
        conflict.preset.reporter(),
        "podpreset.admission.kubernetes.io/allow-database"
    );
}
