//! What the API server fills in where an author says nothing, as far as presets can hold it.
//!
//! A pod arrives with all of it; a preset in a custom resource has none. Without it, a volume that a pod and a preset both
//! define in the same words would be a conflict.

use serde_json::{Value, json};

/// Where in a volume a value is filled in: the way to the object, its field, and the text or number. `[]` is each item.
const OF_VOLUMES: [(&[&str], &str, Default); 22] = [
    (&["secret"], "defaultMode", Default::Number(420)),
    (&["configMap"], "defaultMode", Default::Number(420)),
    (&["downwardAPI"], "defaultMode", Default::Number(420)),
    (&["projected"], "defaultMode", Default::Number(420)),
    (
        &["downwardAPI", "items", "[]", "fieldRef"],
        "apiVersion",
        Default::Text("v1"),
    ),
    (
        &["projected", "sources", "[]", "serviceAccountToken"],
        "expirationSeconds",
        Default::Number(3600),
    ),
    (
        &[
            "projected",
            "sources",
            "[]",
            "downwardAPI",
            "items",
            "[]",
            "fieldRef",
        ],
        "apiVersion",
        Default::Text("v1"),
    ),
    (&["iscsi"], "iscsiInterface", Default::Text("default")),
    (&["rbd"], "pool", Default::Text("rbd")),
    (&["rbd"], "user", Default::Text("admin")),
    (&["rbd"], "keyring", Default::Text("/etc/ceph/keyring")),
    (&["azureDisk"], "cachingMode", Default::Text("ReadWrite")),
    (&["azureDisk"], "fsType", Default::Text("ext4")),
    (&["azureDisk"], "kind", Default::Text("Shared")),
    (&["azureDisk"], "readOnly", Default::False),
    (
        &["scaleIO"],
        "storageMode",
        Default::Text("ThinProvisioned"),
    ),
    (&["scaleIO"], "fsType", Default::Text("xfs")),
    (&["hostPath"], "type", Default::Text("")),
    (
        &["ephemeral", "volumeClaimTemplate", "spec"],
        "volumeMode",
        Default::Text("Filesystem"),
    ),
    (
        &["downwardAPI", "items", "[]", "resourceFieldRef"],
        "divisor",
        Default::Text("0"),
    ),
    (
        &[
            "projected",
            "sources",
            "[]",
            "downwardAPI",
            "items",
            "[]",
            "resourceFieldRef",
        ],
        "divisor",
        Default::Text("0"),
    ),
    (
        &["projected", "sources", "[]", "podCertificate"],
        "maxExpirationSeconds",
        Default::Number(86400),
    ),
];

/// The same for a variable.
const OF_ENV: [(&[&str], &str, Default); 2] = [
    (
        &["valueFrom", "fieldRef"],
        "apiVersion",
        Default::Text("v1"),
    ),
    (
        &["valueFrom", "resourceFieldRef"],
        "divisor",
        Default::Text("0"),
    ),
];

#[derive(Clone, Copy)]
enum Default {
    Text(&'static str),
    Number(i64),
    False,
}

impl Default {
    fn value(self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(number) => json!(number),
            Self::False => json!(false),
        }
    }
}

/// A volume as the API server would store it. One without a source is an empty directory.
pub(crate) fn volume(volume: &Value) -> Value {
    let mut filled = volume.clone();
    let has_source = volume.as_object().is_some_and(|fields| {
        fields
            .iter()
            .any(|(name, it)| name != "name" && !it.is_null())
    });
    if !has_source && filled.is_object() {
        filled["emptyDir"] = json!({});
    }
    if filled["image"]["pullPolicy"].is_null()
        && let Some(reference) = filled["image"]["reference"].as_str()
    {
        let policy = pull_policy(reference);
        filled["image"]["pullPolicy"] = json!(policy);
    }
    fill_all(&mut filled, &OF_VOLUMES);
    filled
}

/// A variable as the API server would store it.
pub(crate) fn env(variable: &Value) -> Value {
    let mut filled = variable.clone();
    fill_all(&mut filled, &OF_ENV);
    filled
}

fn fill_all(value: &mut Value, defaults: &[(&[&str], &str, Default)]) {
    for (way, field, default) in defaults {
        fill(value, way, field, *default);
    }
}

fn fill(value: &mut Value, way: &[&str], field: &str, default: Default) {
    match (way, value) {
        ([], Value::Object(fields)) => {
            let there = fields.entry(field).or_insert(Value::Null);
            if there.is_null() {
                *there = default.value();
            }
        }
        (["[]", rest @ ..], Value::Array(items)) => {
            for item in items {
                fill(item, rest, field, default);
            }
        }
        ([first, rest @ ..], Value::Object(fields)) => {
            if let Some(below) = fields.get_mut(*first) {
                fill(below, rest, field, default);
            }
        }
        _ => {}
    }
}

/// An image with the tag `latest`, or none, is pulled each time.
fn pull_policy(reference: &str) -> &'static str {
    let last = reference.rsplit('/').next().unwrap_or(reference);
    let is_latest = match (last.contains('@'), last.split_once(':')) {
        (true, _) => false,
        (false, Some((_, tag))) => tag == "latest",
        (false, None) => true,
    };
    if is_latest { "Always" } else { "IfNotPresent" }
}
