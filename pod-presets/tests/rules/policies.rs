//! What follows from conflicts, by what a preset says about them.

use pod_presets::{Opponent, Preset, Settled};
use serde_json::{Value, json};

use crate::build::{injected, messages, one, pod, preset, result};
use crate::mounts::{mount, mounting};

fn policy(policy: &str, mut spec: Value) -> Value {
    spec["conflictPolicy"] = json!(policy);
    spec
}

fn env(value: &str) -> Value {
    json!({"env": [{"name": "A", "value": value}, {"name": "B"}]})
}

#[test]
fn who_keeps_what_is_there_adds_the_rest() {
    let own = one(&json!({"env": [{"name": "A", "value": "mine"}]}));
    let injection = injected(
        &own,
        &[&preset("p", &policy("KeepExisting", env("theirs")))],
    );
    let after = injection.pod.unwrap();
    let expected = json!([{"name": "A", "value": "mine"}, {"name": "B"}]);
    assert_eq!(after["spec"]["containers"][0]["env"], expected);
    let [conflict] = &injection.conflicts[..] else {
        panic!("one conflict");
    };
    assert_eq!(
        (conflict.settled, &conflict.with),
        (Settled::Kept, &Opponent::Pod)
    );
    assert_eq!(conflict.container.as_deref(), Some("web"));
    assert_eq!(injection.warnings, [""; 0]);
    let added: Vec<&str> = injection.applied[0]
        .added
        .iter()
        .map(|it| &*it.key)
        .collect();
    assert_eq!(added, ["B"]);
}

#[test]
fn who_overrides_what_is_there_takes_its_place() {
    let own = one(&json!({"env": [{"name": "A", "value": "mine"}, {"name": "Z"}]}));
    let injection = injected(&own, &[&preset("p", &policy("Override", env("theirs")))]);
    let after = injection.pod.unwrap();
    let expected = json!([{"name": "A", "value": "theirs"}, {"name": "Z"}, {"name": "B"}]);
    assert_eq!(after["spec"]["containers"][0]["env"], expected);
    assert_eq!(injection.conflicts[0].settled, Settled::Overridden);
}

#[test]
fn who_denies_has_the_pod_refused() {
    let own = one(&json!({"env": [{"name": "A", "value": "mine"}]}));
    let injection = injected(&own, &[&preset("p", &policy("Deny", env("theirs")))]);
    assert_eq!(injection.pod, None);
    let denied = injection.denied.unwrap();
    assert_eq!(
        denied,
        "PodPreset p: Conflict on pod preset. Duplicate env A."
    );
    let content = one(&json!({"env": [{"name": "A", "value": "theirs"}]}));
    let injection = injected(&content, &[&preset("p", &policy("Deny", env("theirs")))]);
    assert!(injection.denied.is_none() && injection.pod.is_some());
}

#[test]
fn one_that_skips_keeps_all_out_whatever_others_say() {
    let own = one(&json!({"env": [{"name": "A", "value": "mine"}]}));
    let keeps = preset("a", &policy("KeepExisting", env("theirs")));
    let overrides = preset("b", &policy("Override", json!({"env": [{"name": "C"}]})));
    let skips = preset("c", &json!({"env": [{"name": "A", "value": "other"}]}));
    let injection = injected(&own, &[&keeps, &overrides, &skips]);
    assert_eq!((injection.pod, injection.applied), (None, vec![]));
}

#[test]
fn of_presets_that_differ_the_one_that_overrides_wins_and_the_one_that_keeps_does_not() {
    let value = |presets: &[(&str, &str, &str)]| {
        let of = |(name, is, value): &(&str, &str, &str)| {
            preset(
                name,
                &policy(is, json!({"env": [{"name": "A", "value": value}]})),
            )
        };
        let presets: Vec<_> = presets.iter().map(of).collect();
        let presets: Vec<_> = presets.iter().collect();
        let after = result(&one(&json!({})), &presets);
        after["spec"]["containers"][0]["env"][0]["value"].clone()
    };
    assert_eq!(value(&[("a", "Skip", "1"), ("b", "Override", "2")]), "2");
    assert_eq!(
        value(&[("a", "Override", "1"), ("b", "Override", "2")]),
        "2"
    );
    assert_eq!(
        value(&[("a", "Skip", "1"), ("b", "KeepExisting", "2")]),
        "1"
    );
    assert_eq!(
        value(&[("a", "Override", "1"), ("b", "KeepExisting", "2")]),
        "1"
    );
    assert_eq!(
        value(&[("a", "Override", "1"), ("b", "Skip", "2")]),
        Value::Null
    );
}

#[test]
fn what_mounts_a_volume_that_stayed_another_is_not_injected() {
    let spec = json!({
        "volumes": [{"name": "v", "secret": {"secretName": "s"}}, {"name": "w"}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}],
        "env": [{"name": "A"}],
    });
    let own =
        pod(&json!({"containers": [{"name": "web"}], "volumes": [{"name": "v", "emptyDir": {}}]}));
    let after = result(&own, &[&preset("p", &policy("KeepExisting", spec.clone()))]);
    let container = &after["spec"]["containers"][0];
    assert_eq!(
        container["volumeMounts"],
        json!([{"name": "w", "mountPath": "/w"}])
    );
    assert_eq!(container["env"], json!([{"name": "A"}]));
    assert_eq!(
        after["spec"]["volumes"][0],
        json!({"name": "v", "emptyDir": {}})
    );

    let after = result(&own, &[&preset("p", &policy("Override", spec.clone()))]);
    assert_eq!(after["spec"]["volumes"], spec["volumes"]);
    assert_eq!(
        after["spec"]["containers"][0]["volumeMounts"],
        spec["volumeMounts"]
    );
}

#[test]
fn a_mount_is_overridden_at_its_path_and_others_of_the_volume_stay() {
    let own = one(&json!({"volumeMounts": [mount("v", "/keep"), mount("w", "/v")]}));
    let spec = json!({"volumes": [{"name": "v"}], "volumeMounts": [mount("v", "/v")]});
    let after = result(&own, &[&preset("p", &policy("Override", spec))]);
    assert_eq!(
        after["spec"]["containers"][0]["volumeMounts"],
        json!([mount("v", "/keep"), mount("v", "/v")])
    );
}

/// The mounts of the container, to which nothing comes when the webhook is called again because another changed the pod.
fn mounts(own: &Value, presets: &[&Preset]) -> Value {
    let mut after = result(own, presets);
    assert_eq!(injected(&after, presets).pod, None);
    after["spec"]["containers"][0]["volumeMounts"].take()
}

#[test]
fn what_one_preset_replaces_is_no_conflict_of_another() {
    let own = one(&json!({"volumeMounts": [mount("v", "/a")]}));
    let replaces = policy("Override", mounting(&[mount("w", "/a")]));
    let replaces = preset("replaces", &replaces);
    for other in ["Skip", "KeepExisting", "Deny"] {
        // It comes first, and without the other the pod's mount of its volume is in its way.
        let first = preset("first", &policy(other, mounting(&[mount("v", "/b")])));
        let expected = json!([mount("w", "/a"), mount("v", "/b")]);
        assert_eq!(mounts(&own, &[&first, &replaces]), expected, "{other}");
    }
}

#[test]
fn who_replaces_something_of_the_pod_is_in_the_way_of_no_preset_before_him() {
    let own = one(&json!({"volumeMounts": [mount("x", "/b")]}));
    let second = policy("Override", mounting(&[mount("v", "/b")]));
    let second = preset("second", &second);
    for other in ["Skip", "KeepExisting", "Deny"] {
        let first = preset("first", &policy(other, mounting(&[mount("v", "/a")])));
        let expected = json!([mount("v", "/b"), mount("v", "/a")]);
        assert_eq!(mounts(&own, &[&first, &second]), expected, "{other}");
    }
}

#[test]
fn who_overrides_and_counts_all_but_a_slash_replaces_all_that_differs_in_it_only() {
    let both = mounting(&[mount("v", "/b"), mount("v", "/b/")]);
    let first = preset("first", &policy("Override", both.clone()));
    let mut spec = mounting(&[mount("w", "/b/")]);
    spec["multiMount"] = json!(true);
    let second = preset("second", &policy("Override", spec));
    for own in [json!({}), json!({"volumeMounts": both["volumeMounts"]})] {
        let expected = json!([mount("w", "/b/")]);
        assert_eq!(mounts(&one(&own), &[&first, &second]), expected);
    }
}

#[test]
fn who_only_looks_changes_nothing_and_says_what_would_be() {
    let mut spec = env("theirs");
    spec["mode"] = json!("Audit");
    let looks = preset("looks", &spec);
    let other = preset("other", &json!({"env": [{"name": "C"}]}));
    let injection = injected(&one(&json!({})), &[&looks, &other]);
    let after = injection.pod.unwrap();
    assert_eq!(
        after["spec"]["containers"][0]["env"],
        json!([{"name": "C"}])
    );
    let markers = after["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(
        markers.keys().collect::<Vec<_>>(),
        ["podpreset.admission.kubernetes.io/podpreset-other"]
    );
    let [audited] = &injection.audited[..] else {
        panic!("one preset looked");
    };
    assert_eq!(audited.applied.preset.name, "looks");
    let keys: Vec<&str> = audited.applied.added.iter().map(|it| &*it.key).collect();
    assert_eq!(keys, ["A", "B"]);

    // What it comes across keeps nobody else out.
    let own = one(&json!({"env": [{"name": "A", "value": "mine"}]}));
    let injection = injected(&own, &[&looks, &other]);
    assert!(injection.pod.is_some() && injection.conflicts.is_empty());
    assert_eq!(injection.audited[0].conflicts.len(), 1);
    assert_eq!(messages(&injection), [""; 0]);
    // Nor does it have a pod refused.
    let mut spec = policy("Deny", env("theirs"));
    spec["mode"] = json!("Audit");
    assert_eq!(injected(&own, &[&preset("looks", &spec)]).denied, None);
}

#[test]
fn warnings_are_few_and_short() {
    let many: Vec<Value> = (0..500)
        .map(|it| json!({"name": format!("V{it}{}", "x".repeat(1000)), "value": "1"}))
        .collect();
    let other: Vec<Value> = many.iter().map(|it| json!({"name": it["name"]})).collect();
    let preset = preset("p", &json!({"env": many}));
    let injection = injected(&one(&json!({"env": other})), &[&preset]);
    assert_eq!(injection.conflicts.len(), 20, "the first ones are told");
    let told: usize = injection.warnings.iter().map(String::len).sum();
    assert!(told > 0 && told < 4096, "{told}");
    assert!(injection.warnings.iter().all(|it| it.len() <= 256));
}

/// The place of what was replaced is not the other's any more.
#[test]
fn what_was_replaced_is_in_nobodys_way() {
    let own = pod(&json!({
        "containers": [{"name": "web", "volumeMounts": [{"name": "old", "mountPath": "/a"}]}],
        "volumes": [{"name": "old", "emptyDir": {}}],
    }));
    let spec = |name: &str, path: &str| {
        json!({
            "volumes": [{"name": name, "emptyDir": {}}],
            "volumeMounts": [{"name": name, "mountPath": path}],
        })
    };
    let overrides = preset("a", &policy("Override", spec("new", "/a")));
    let skips = preset("b", &spec("old", "/b"));
    let after = result(&own, &[&overrides, &skips]);
    let expected = json!([
        {"name": "new", "mountPath": "/a"},
        {"name": "old", "mountPath": "/b"},
    ]);
    assert_eq!(after["spec"]["containers"][0]["volumeMounts"], expected);
}
