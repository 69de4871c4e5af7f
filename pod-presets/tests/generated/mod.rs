//! Any presets and any pods.

use proptest::collection::{btree_map, vec};
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

/// Volumes, and mounts of them, no two at one path. Paths may differ in a slash at the end only.
fn volumes_and_mounts() -> impl Strategy<Value = (Vec<Value>, Vec<Value>)> {
    let volumes = btree_map("[vwx]", 0..3_u8, 0..3);
    let mounts = btree_map("/[abc]/?", any::<prop::sample::Index>(), 0..3);
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

pub(crate) fn pod() -> impl Strategy<Value = Value> {
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

pub(crate) fn spec() -> impl Strategy<Value = Value> {
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
