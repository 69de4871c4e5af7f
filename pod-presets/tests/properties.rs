//! Laws that hold for any presets and any pod.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what went wrong by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use pod_presets::{ConflictPolicy, Injection, Preset, inject, patch};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

// Few names and values, so that presets and pods meet.

fn env() -> impl Strategy<Value = Vec<Value>> {
    let variable = |(name, value): (String, u8)| json!({"name": name, "value": value.to_string()});
    btree_map("[A-D]", 0..2_u8, 0..4).prop_map(move |all| all.into_iter().map(variable).collect())
}

fn env_from() -> impl Strategy<Value = Vec<Value>> {
    let source = (
        select(vec!["configMapRef", "secretRef"]),
        "[ab]",
        option::of(any::<bool>()),
    );
    let source = source.prop_map(|(kind, name, optional)| match optional {
        Some(optional) => json!({kind: {"name": name, "optional": optional}}),
        None => json!({kind: {"name": name}}),
    });
    vec(source, 0..3)
}

fn volume(name: &str, kind: u8) -> Value {
    match kind {
        0 => json!({"name": name, "emptyDir": {}}),
        1 => json!({"name": name, "secret": {"secretName": "s"}}),
        _ => json!({"name": name, "secret": {"secretName": "s", "defaultMode": 420}}),
    }
}

/// Volumes, and mounts of them, no two at one path.
fn volumes_and_mounts() -> impl Strategy<Value = (Vec<Value>, Vec<Value>)> {
    let volumes = btree_map("[vwx]", 0..3_u8, 0..3);
    let mounts = btree_map("/[abc]", any::<prop::sample::Index>(), 0..3);
    (volumes, mounts).prop_map(|(volumes, mounts)| {
        let names: Vec<&String> = volumes.keys().collect();
        let mounts = mounts.iter().filter(|_| !names.is_empty());
        let mounts = mounts
            .map(|(path, at)| json!({"name": names[at.index(names.len())], "mountPath": path}));
        let mounts = mounts.collect();
        (
            volumes
                .iter()
                .map(|(name, kind)| volume(name, *kind))
                .collect(),
            mounts,
        )
    })
}

fn container(name: String) -> impl Strategy<Value = Value> {
    (env(), env_from(), volumes_and_mounts(), any::<bool>()).prop_map(
        move |(env, from, (_, mounts), always)| {
            let mut container = json!({"name": name, "image": "i", "newer": {"kept": true}});
            for (list, items) in [("env", env), ("envFrom", from), ("volumeMounts", mounts)] {
                if !items.is_empty() {
                    container[list] = json!(items);
                }
            }
            if always {
                container["restartPolicy"] = json!("Always");
            }
            container
        },
    )
}

/// Some containers with these names, in their order.
fn containers(names: &'static [&'static str]) -> impl Strategy<Value = Vec<Value>> {
    let names = names.iter();
    let all: Vec<_> = names
        .map(|name| option::of(container((*name).to_owned())))
        .collect();
    all.prop_map(|all| all.into_iter().flatten().collect())
}

fn pod() -> impl Strategy<Value = Value> {
    let parts = (
        containers(&["web", "proxy"]),
        containers(&["setup", "logs"]),
        volumes_and_mounts(),
    );
    parts.prop_map(|(containers, init, (volumes, _))| {
        let mut spec = json!({"containers": containers, "newerField": [1, {"a": null}]});
        if !init.is_empty() {
            spec["initContainers"] = json!(init);
        }
        if !volumes.is_empty() {
            spec["volumes"] = json!(volumes);
        }
        json!({"kind": "Pod", "metadata": {"labels": {"app": "web"}, "annotations": {"own": "x"}}, "spec": spec})
    })
}

fn spec() -> impl Strategy<Value = Value> {
    let policies = vec!["Skip", "Skip", "Skip", "KeepExisting", "Override", "Deny"];
    let targets = vec![
        json!({}),
        json!({}),
        json!({"names": ["web"]}),
        json!({"types": ["Init"]}),
        json!({"types": ["App", "Sidecar"], "exclude": ["proxy"]}),
    ];
    let parts = (
        env(),
        env_from(),
        volumes_and_mounts(),
        select(policies),
        select(targets),
        any::<bool>(),
    );
    parts.prop_map(|(env, from, (volumes, mounts), policy, target, multi)| {
        let mut spec = json!({
            "selector": {"matchLabels": {"app": "web"}},
            "env": env,
            "envFrom": from,
            "volumes": volumes,
            "volumeMounts": mounts,
            "conflictPolicy": policy,
            "containers": target,
            "multiMount": multi,
        });
        if ["env", "envFrom", "volumes"]
            .iter()
            .all(|list| spec[list] == json!([]))
        {
            spec["env"] = json!([{"name": "A", "value": "0"}]);
        }
        spec
    })
}

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
