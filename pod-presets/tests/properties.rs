//! Laws that hold for any presets and any pod.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

mod generated;

use std::collections::{BTreeMap, BTreeSet};

use pod_presets::{ConflictPolicy, Injection, Preset, inject, patch};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use generated::{pod, spec};

fn compiled(name: &str, age: usize, spec: &Value) -> Preset {
    let object = json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {
            "name": name,
            "namespace": "team",
            "resourceVersion": (100 + age).to_string(),
            "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z"),
        },
        "spec": spec,
    });
    Preset::compile(&object).unwrap_or_else(|errors| panic!("{errors:?} {spec}"))
}

fn presets() -> impl Strategy<Value = Vec<Preset>> {
    vec(spec(), 0..4).prop_map(|specs| {
        let specs = specs.iter().enumerate();
        specs
            .map(|(age, spec)| compiled(&format!("p{age}"), age, spec))
            .collect()
    })
}

fn is_blocked(injection: &Injection) -> bool {
    injection
        .conflicts
        .iter()
        .any(|it| it.settled.is_blocking())
}

fn markers(pod: &Value) -> BTreeSet<(String, String)> {
    let annotations = pod["metadata"]["annotations"].as_object().unwrap();
    let ours = annotations
        .iter()
        .filter(|(key, _)| key.starts_with("podpreset."));
    ours.map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

/// The pod without what presets may change.
fn stripped(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let annotations = pod["metadata"]["annotations"].as_object_mut().unwrap();
    annotations.retain(|key, _| !key.starts_with("podpreset."));
    let spec = pod["spec"].as_object_mut().unwrap();
    spec.remove("volumes");
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let container = container.as_object_mut().unwrap();
            for own in ["env", "envFrom", "volumeMounts"] {
                container.remove(own);
            }
        }
    }
    pod
}

/// All lists that presets add to, by their place.
fn lists(pod: &Value) -> BTreeMap<String, Vec<Value>> {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut lists = BTreeMap::from([("volumes".to_owned(), items(&pod["spec"]["volumes"]))]);
    for list in ["containers", "initContainers"] {
        for container in items(&pod["spec"][list]) {
            for own in ["env", "envFrom", "volumeMounts"] {
                lists.insert(
                    format!("{} {own}", container["name"]),
                    items(&container[own]),
                );
            }
        }
    }
    lists
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn doing_it_again_changes_nothing(pod in pod(), presets in presets()) {
        let presets: Vec<&Preset> = presets.iter().collect();
        let first = inject(&pod, &presets);
        let after = first.pod.as_ref().unwrap_or(&pod);
        let again = inject(after, &presets);
        prop_assert_eq!(&again.pod, &None);
        prop_assert_eq!(is_blocked(&again), is_blocked(&first));
    }

    #[test]
    fn a_pod_gets_all_or_nothing_and_a_marker_for_each_preset(pod in pod(), presets in presets()) {
        let all: Vec<&Preset> = presets.iter().collect();
        let injection = inject(&pod, &all);
        if is_blocked(&injection) {
            prop_assert!(injection.pod.is_none() && injection.applied.is_empty());
            return Ok(());
        }
        let after = injection.pod.as_ref().unwrap_or(&pod);
        let expected = presets.iter().map(Preset::marker);
        let expected: BTreeSet<(String, String)> = expected.collect();
        prop_assert_eq!(markers(after), expected);
        prop_assert_eq!(injection.applied.len(), presets.len());
        let denies = presets.iter().any(|it| it.conflict_policy() == ConflictPolicy::Deny);
        prop_assert!(injection.denied.is_none() || denies);
    }

    #[test]
    fn what_no_preset_names_stays(pod in pod(), presets in presets()) {
        let all: Vec<&Preset> = presets.iter().collect();
        let Some(after) = inject(&pod, &all).pod else {
            return Ok(());
        };
        prop_assert_eq!(stripped(&after), stripped(&pod));
        let overrides = |it: &Preset| it.conflict_policy() == ConflictPolicy::Override;
        if !presets.iter().any(overrides) {
            let after = lists(&after);
            for (place, own) in lists(&pod) {
                prop_assert!(after[&place].starts_with(&own), "{}", place);
            }
        }
    }

    #[test]
    fn names_are_as_different_as_the_api_server_wants_them(pod in pod(), presets in presets()) {
        let all: Vec<&Preset> = presets.iter().collect();
        let Some(after) = inject(&pod, &all).pod else {
            return Ok(());
        };
        for (place, items) in lists(&after) {
            let key = match place.rsplit(' ').next() {
                Some("volumeMounts") => "mountPath",
                Some("volumes" | "env") => "name",
                _ => continue,
            };
            let keys: BTreeSet<String> = items.iter().map(|it| it[key].to_string()).collect();
            prop_assert_eq!(keys.len(), items.len(), "{}", place);
        }
    }

    #[test]
    fn who_comes_in_between_and_is_about_something_else_changes_nothing_for_the_others(
        pod in pod(),
        presets in presets(),
        age in 0..5_usize,
    ) {
        let other = json!({"selector": {"matchLabels": {"app": "web"}}, "env": [{"name": "UNRELATED"}]});
        let other = compiled("unrelated", age, &other);
        let without: Vec<&Preset> = presets.iter().collect();
        let with: Vec<&Preset> = presets.iter().chain([&other]).collect();
        let (without, with) = (inject(&pod, &without), inject(&pod, &with));
        prop_assert_eq!(is_blocked(&without), is_blocked(&with));
        prop_assert_eq!(&without.conflicts, &with.conflicts);
        if is_blocked(&with) {
            return Ok(());
        }
        let mut rest = lists(with.pod.as_ref().unwrap());
        for items in rest.values_mut() {
            items.retain(|item| item["name"] != "UNRELATED");
        }
        prop_assert_eq!(rest, lists(without.pod.as_ref().unwrap_or(&pod)));
    }

    #[test]
    fn the_order_in_which_presets_are_given_does_not_matter(pod in pod(), presets in presets(), seed in any::<usize>()) {
        let mut turned: Vec<&Preset> = presets.iter().rev().collect();
        let by = seed % turned.len().max(1);
        turned.rotate_left(by);
        let straight: Vec<&Preset> = presets.iter().collect();
        prop_assert_eq!(inject(&pod, &turned), inject(&pod, &straight));
    }

    #[test]
    fn the_patch_leads_to_the_pod(pod in pod(), presets in presets()) {
        let presets: Vec<&Preset> = presets.iter().collect();
        let after = inject(&pod, &presets).pod.unwrap_or_else(|| pod.clone());
        let mut patched = pod.clone();
        json_patch::patch(&mut patched, &patch(&pod, &after)).unwrap();
        prop_assert_eq!(patched, after);
    }

    #[test]
    fn no_message_tells_a_value(values in btree_set("[a-z]{12}", 2)) {
        let values: Vec<&String> = values.iter().collect();
        let env = |value: &str| json!([{"name": "A", "value": value}]);
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "env": env(values[0])});
        let preset = compiled("p", 0, &spec);
        let pod = json!({"spec": {"containers": [{"name": "web", "env": env(values[1])}]}});
        let injection = inject(&pod, &[&preset]);
        let told = format!("{:?} {:?}", injection, injection.conflicts[0].message());
        prop_assert!(values.iter().all(|value| !told.contains(value.as_str())), "{}", told);
    }
}
