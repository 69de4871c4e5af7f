//! Pods as a whole: all or nothing, markers, what is left alone.

use pod_presets::{Untouched, passes_gate};
use serde_json::json;

use crate::build::{injected, messages, one, pod, preset, result};

#[test]
fn each_preset_leaves_a_marker_also_where_it_adds_nothing() {
    let [a, b] = ["a", "b"].map(|name| preset(name, &json!({"env": [{"name": "A"}]})));
    let after = result(&one(&json!({"env": [{"name": "A"}]})), &[&a, &b]);
    let annotations = &after["metadata"]["annotations"];
    assert_eq!(
        annotations,
        &json!({
            "podpreset.admission.kubernetes.io/podpreset-a": a.resource_version(),
            "podpreset.admission.kubernetes.io/podpreset-b": b.resource_version(),
        })
    );
    assert_ne!(a.resource_version(), b.resource_version());
}

#[test]
fn one_preset_that_conflicts_keeps_all_out() {
    let [a, b] = [("a", "A"), ("b", "B")]
        .map(|(name, env)| preset(name, &json!({"env": [{"name": env, "value": "1"}]})));
    let pod = one(&json!({"env": [{"name": "B", "value": "2"}]}));
    let injection = injected(&pod, &[&a, &b]);
    assert_eq!((injection.pod, injection.denied), (None, None));
    let of_a = injected(&pod, &[&a]);
    assert!(of_a.pod.is_some());
}

#[test]
fn two_presets_that_want_different_things_conflict_with_one_another() {
    let [a, b] = ["1", "2"].map(|value| {
        preset(
            &format!("p{value}"),
            &json!({"env": [{"name": "A", "value": value}]}),
        )
    });
    let injection = injected(&one(&json!({})), &[&a, &b]);
    assert_eq!(injection.pod, None);
    assert_eq!(
        messages(&injection),
        ["Conflict on pod preset. Duplicate env A."]
    );
    assert_eq!(injection.conflicts[0].preset.name, "p2");
}

#[test]
fn no_preset_leaves_no_trace() {
    let injection = injected(&one(&json!({})), &[]);
    assert_eq!((injection.pod, injection.applied), (None, vec![]));
}

#[test]
fn mirror_pods_and_those_that_exclude_presets_are_left_alone() {
    let annotated = |key: &str, value: &str| {
        let mut pod = pod(&json!({"containers": []}));
        pod["metadata"]["annotations"] = json!({key: value});
        passes_gate(&pod)
    };
    let exclude = "podpreset.admission.kubernetes.io/exclude";
    let mirror = "kubernetes.io/config.mirror";
    for (key, value, expected) in [
        (exclude, "true", Err(Untouched::Excluded)),
        (exclude, "True", Ok(())),
        (exclude, "true ", Ok(())),
        (exclude, "false", Ok(())),
        (exclude, "", Ok(())),
        (mirror, "x", Err(Untouched::Mirror)),
        (mirror, "", Err(Untouched::Mirror)),
        ("other", "true", Ok(())),
    ] {
        assert_eq!(annotated(key, value), expected, "{key}={value:?}");
    }
    for no_pod in [
        json!(null),
        json!({}),
        json!({"kind": "Service", "spec": {}}),
        json!({"kind": "Pod"}),
    ] {
        assert_eq!(passes_gate(&no_pod), Err(Untouched::NotAPod), "{no_pod}");
    }
    let text = Untouched::NotAPod.to_string();
    assert_eq!(
        text,
        "Resource was marked with kind Pod but was unable to be converted"
    );
}
