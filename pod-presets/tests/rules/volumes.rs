//! Volumes.

use serde_json::{Value, json};

use crate::build::{injected, messages, pod, preset, result};

fn with_volumes(volumes: &Value) -> Value {
    pod(&json!({"containers": [{"name": "web"}], "volumes": volumes}))
}

#[test]
fn volumes_are_appended_in_order_and_equal_ones_are_left_out() {
    let empty = |name: &str| json!({"name": name, "emptyDir": {}});
    for (name, own, wished, expected) in [
        (
            "empty original",
            json!(null),
            json!([empty("a")]),
            json!([empty("a")]),
        ),
        (
            "good merge",
            json!([empty("a"), empty("b")]),
            json!([empty("c"), empty("b"), empty("d")]),
            json!([empty("a"), empty("b"), empty("c"), empty("d")]),
        ),
        (
            "one is exact same",
            json!([empty("a")]),
            json!([empty("a")]),
            json!([empty("a")]),
        ),
    ] {
        let preset = preset("p", &json!({"volumes": wished}));
        let after = result(&with_volumes(&own), &[&preset]);
        assert_eq!(after["spec"]["volumes"], expected, "{name}");
    }
}

#[test]
fn no_list_of_volumes_is_made_for_none() {
    let preset = preset("p", &json!({"env": [{"name": "A"}]}));
    let after = result(&pod(&json!({"containers": [{"name": "web"}]})), &[&preset]);
    assert_eq!(after["spec"].get("volumes"), None);
    let container = after["spec"]["containers"][0].as_object().unwrap();
    assert_eq!(container.keys().collect::<Vec<_>>(), ["env", "name"]);
}

#[test]
fn equal_is_what_is_equal_with_what_the_api_server_fills_in() {
    let token = |fields: Value| json!({"projected": {"defaultMode": 420, "sources": [{"serviceAccountToken": fields}]}});
    for (stored, written, is_equal) in [
        (
            json!({"secret": {"secretName": "s", "defaultMode": 420}}),
            json!({"secret": {"secretName": "s"}}),
            true,
        ),
        (
            json!({"secret": {"secretName": "s", "defaultMode": 256}}),
            json!({"secret": {"secretName": "s"}}),
            false,
        ),
        (
            json!({"configMap": {"name": "c", "defaultMode": 420}}),
            json!({"configMap": {"name": "c"}}),
            true,
        ),
        (
            json!({"configMap": {"name": "c", "defaultMode": 420, "optional": false}}),
            json!({"configMap": {"name": "c"}}),
            true,
        ),
        (
            token(json!({"path": "t", "expirationSeconds": 3600})),
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
            true,
        ),
        (
            token(json!({"path": "t", "expirationSeconds": 600})),
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
            false,
        ),
        (
            json!({"downwardAPI": {"defaultMode": 420, "items": [{"path": "p", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}]}}),
            json!({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}}),
            true,
        ),
        (
            json!({"hostPath": {"path": "/a", "type": ""}}),
            json!({"hostPath": {"path": "/a"}}),
            true,
        ),
        (json!({"emptyDir": {}}), json!({}), true),
        (json!({"emptyDir": {"medium": "Memory"}}), json!({}), false),
        (
            json!({"emptyDir": {"sizeLimit": "1Gi"}}),
            json!({"emptyDir": {"sizeLimit": "1024Mi"}}),
            true,
        ),
        (
            json!({"emptyDir": {"sizeLimit": "1Gi"}}),
            json!({"emptyDir": {"sizeLimit": "1G"}}),
            false,
        ),
        (
            json!({"emptyDir": {}}),
            json!({"hostPath": {"path": "/a"}}),
            false,
        ),
        (
            json!({"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0, "iscsiInterface": "default"}}),
            json!({"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}}),
            true,
        ),
        (
            json!({"rbd": {"monitors": ["m"], "image": "i", "pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
            json!({"rbd": {"monitors": ["m"], "image": "i"}}),
            true,
        ),
        (
            json!({"azureDisk": {"diskName": "d", "diskURI": "u", "cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"}}),
            json!({"azureDisk": {"diskName": "d", "diskURI": "u"}}),
            true,
        ),
        (
            json!({"scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "n"}, "storageMode": "ThinProvisioned", "fsType": "xfs"}}),
            json!({"scaleIO": {"gateway": "g", "system": "s", "secretRef": {"name": "n"}}}),
            true,
        ),
        (
            json!({"image": {"reference": "a/b:1", "pullPolicy": "IfNotPresent"}}),
            json!({"image": {"reference": "a/b:1"}}),
            true,
        ),
        (
            json!({"image": {"reference": "a:5/b", "pullPolicy": "Always"}}),
            json!({"image": {"reference": "a:5/b"}}),
            true,
        ),
        (json!({"newer": {"a": 1}}), json!({"newer": {"a": 1}}), true),
        (
            json!({"newer": {"a": 1}}),
            json!({"newer": {"a": 2}}),
            false,
        ),
    ] {
        let named = |mut volume: Value| {
            volume["name"] = json!("v");
            volume
        };
        let preset = preset("p", &json!({"volumes": [named(written.clone())]}));
        let injection = injected(&with_volumes(&json!([named(stored.clone())])), &[&preset]);
        assert_eq!(
            injection.conflicts.is_empty(),
            is_equal,
            "{stored} {written}"
        );
    }
}

#[test]
fn another_source_is_a_conflict() {
    let own = json!([{"name": "v", "emptyDir": {}}]);
    let preset = preset(
        "p",
        &json!({"volumes": [{"name": "v", "hostPath": {"path": "/a"}}]}),
    );
    let injection = injected(&with_volumes(&own), &[&preset]);
    assert_eq!(
        messages(&injection),
        ["Conflict on pod preset. Duplicate volume v."]
    );
    let explanation = injection.conflicts[0].explanation();
    assert!(explanation.starts_with("merging volumes for p has a conflict on v: \n"));
    assert_eq!(injection.pod, None);
}

#[test]
fn a_volume_is_injected_as_its_author_wrote_it() {
    let volume = json!({"name": "v", "secret": {"secretName": "s", "newer": {"kept": true}}});
    let preset = preset("p", &json!({"volumes": [volume]}));
    let after = result(&with_volumes(&json!([])), &[&preset]);
    assert_eq!(after["spec"]["volumes"], json!([volume]));
}
