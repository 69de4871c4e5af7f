//! Mounts.

use pod_presets::Conflict;
use serde_json::{Value, json};

use crate::build::{injected, messages, one, preset, result};

pub(crate) fn mount(name: &str, path: &str) -> Value {
    json!({"name": name, "mountPath": path})
}

/// A spec with these mounts, and the volumes for them.
pub(crate) fn mounting(mounts: &[Value]) -> Value {
    let mut volumes: Vec<Value> = mounts
        .iter()
        .map(|mount| json!({"name": mount["name"], "emptyDir": {}}))
        .collect();
    volumes.dedup();
    json!({"volumes": volumes, "volumeMounts": mounts})
}

#[test]
fn mounts_are_appended_in_order_and_equal_ones_are_left_out() {
    for (name, own, wished, expected) in [
        (
            "empty original",
            vec![],
            vec![mount("a", "/a")],
            vec![mount("a", "/a")],
        ),
        (
            "good merge",
            vec![mount("a", "/a"), mount("b", "/b")],
            vec![mount("c", "/c"), mount("b", "/b"), mount("d", "/d")],
            vec![
                mount("a", "/a"),
                mount("b", "/b"),
                mount("c", "/c"),
                mount("d", "/d"),
            ],
        ),
        (
            "one is exact same",
            vec![mount("a", "/a")],
            vec![mount("a", "/a")],
            vec![mount("a", "/a")],
        ),
        (
            "not read-only is not said",
            vec![json!({"name": "a", "mountPath": "/a", "readOnly": false})],
            vec![mount("a", "/a")],
            vec![json!({"name": "a", "mountPath": "/a", "readOnly": false})],
        ),
        (
            "the same is there, and the volume elsewhere, too",
            vec![mount("a", "/a"), mount("a", "/elsewhere")],
            vec![mount("a", "/a")],
            vec![mount("a", "/a"), mount("a", "/elsewhere")],
        ),
        (
            "paths are texts",
            vec![mount("a", "/opt")],
            vec![mount("b", "/opt/")],
            vec![mount("a", "/opt"), mount("b", "/opt/")],
        ),
        (
            "paths of Windows",
            vec![mount("a", r"C:\data")],
            vec![mount("b", r"C:\Data")],
            vec![mount("a", r"C:\data"), mount("b", r"C:\Data")],
        ),
    ] {
        let preset = preset("p", &mounting(&wished));
        let after = result(&one(&json!({"volumeMounts": own})), &[&preset]);
        assert_eq!(
            after["spec"]["containers"][0]["volumeMounts"],
            json!(expected),
            "{name}"
        );
    }
}

#[test]
fn a_volume_at_another_path_and_another_volume_at_the_path_are_conflicts() {
    let name_a = "Conflict on pod preset. Duplicate volumeMount a.";
    let path_a = "Conflict on pod preset. Duplicate mountPath /a.";
    for (name, own, wished, expected) in [
        (
            "conflict",
            vec![mount("a", "/b")],
            vec![mount("a", "/a")],
            vec![name_a],
        ),
        (
            "conflict on mount path",
            vec![mount("b", "/a")],
            vec![mount("a", "/a")],
            vec![path_a],
        ),
        (
            "read-only",
            vec![mount("a", "/a")],
            vec![json!({"name": "a", "mountPath": "/a", "readOnly": true})],
            vec![name_a, path_a],
        ),
        (
            "within the volume",
            vec![mount("a", "/a")],
            vec![json!({"name": "a", "mountPath": "/a", "subPath": "x"})],
            vec![name_a, path_a],
        ),
        (
            "a path of one and a name of another",
            vec![mount("a", "/x"), mount("b", "/a")],
            vec![mount("a", "/a")],
            vec![name_a, path_a],
        ),
        (
            "a volume twice",
            vec![],
            vec![mount("a", "/x"), mount("a", "/y")],
            vec![name_a],
        ),
    ] {
        let preset = preset("p", &mounting(&wished));
        let injection = injected(&one(&json!({"volumeMounts": own})), &[&preset]);
        assert_eq!(messages(&injection), expected, "{name}");
        assert_eq!(injection.pod, None, "{name}");
    }
}

#[test]
fn conflicts_of_mounts_have_the_words_of_the_admission_plugin() {
    let own = json!({"volumeMounts": [mount("a", "/x"), mount("b", "/a")]});
    let preset = preset("p", &mounting(&[mount("a", "/a")]));
    let injection = injected(&one(&own), &[&preset]);
    let explanations: Vec<String> = injection
        .conflicts
        .iter()
        .map(Conflict::explanation)
        .collect();
    assert!(explanations[0].starts_with("merging volume mounts for p has a conflict on a: \n"));
    assert!(
        explanations[1]
            .starts_with("merging volume mounts for p has a conflict on mount path /a: \n")
    );
}

#[test]
fn who_wants_several_mounts_of_a_volume_says_so_and_paths_count_alone() {
    let multi = |mounts: &[Value]| {
        let mut spec = mounting(mounts);
        spec["multiMount"] = json!(true);
        preset("p", &spec)
    };
    let twice = multi(&[mount("a", "/x"), mount("a", "/y")]);
    let after = result(
        &one(&json!({"volumeMounts": [mount("a", "/z")]})),
        &[&twice],
    );
    assert_eq!(
        after["spec"]["containers"][0]["volumeMounts"],
        json!([mount("a", "/z"), mount("a", "/x"), mount("a", "/y")])
    );
    // A slash at the end makes no other path.
    let own = one(&json!({"volumeMounts": [mount("a", "/opt/")]}));
    let same = injected(&own, &[&multi(&[mount("a", "/opt")])]);
    assert_eq!(same.conflicts, []);
    assert_eq!(same.applied[0].added.len(), 1, "{:?}", same.applied);
    // Where the pod has both, the one that is wished counts.
    let both = json!({"volumeMounts": [mount("a", "/opt/"), mount("b", "/opt")]});
    let same = injected(&one(&both), &[&multi(&[mount("a", "/opt/")])]);
    assert_eq!(same.conflicts, []);
    let other = injected(&own, &[&multi(&[mount("b", "/opt")])]);
    assert_eq!(
        messages(&other),
        ["Conflict on pod preset. Duplicate mountPath /opt."]
    );
}

#[test]
fn a_volume_that_two_presets_mount_at_two_paths_is_a_conflict_unless_the_second_allows_it() {
    let first = preset("a", &mounting(&[mount("v", "/x")]));
    let mut spec = mounting(&[mount("v", "/y")]);
    let strict = preset("b", &spec);
    assert_eq!(injected(&one(&json!({})), &[&first, &strict]).pod, None);
    spec["multiMount"] = json!(true);
    let lenient = preset("b", &spec);
    assert!(
        injected(&one(&json!({})), &[&first, &lenient])
            .pod
            .is_some()
    );
}

#[test]
fn a_path_of_a_device_is_taken_and_so_is_its_volume() {
    let devices = json!({"volumeDevices": [{"name": "disk", "devicePath": "/dev/a"}]});
    let taken = |wished: Value| {
        let injection = injected(&one(&devices), &[&preset("p", &mounting(&[wished]))]);
        assert_eq!(injection.pod, None);
        messages(&injection)
    };
    assert_eq!(
        taken(mount("v", "/dev/a")),
        ["Conflict on pod preset. Duplicate mountPath /dev/a."]
    );
    assert_eq!(
        taken(mount("disk", "/b")),
        ["Conflict on pod preset. Duplicate volumeMount disk."]
    );
    let mut spec = mounting(&[mount("v", "/dev/a")]);
    spec["conflictPolicy"] = json!("Override");
    let after = result(&one(&devices), &[&preset("p", &spec)]);
    let container = &after["spec"]["containers"][0];
    assert_eq!(container.get("volumeMounts"), None);
    assert_eq!(container["volumeDevices"], devices["volumeDevices"]);
}
