//! Pods that have something else already.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{NOTHING, PATIENCE};

use super::stage::{Pods, open, pod};

const TEXT: &str = "Conflict on pod preset. Duplicate mountPath /cache.";

/// The preset of the design's example of a conflict.
async fn conflicting(pods: &Pods, policy: &str) {
    let spec = json!({
        "selector": {"matchLabels": {"role": "frontend"}}, "conflictPolicy": policy,
        "env": [{"name": "DB_PORT", "value": "6379"}],
        "volumeMounts": [{"mountPath": "/cache", "name": "other-volume"}],
        "volumes": [{"name": "other-volume", "emptyDir": {}}],
    });
    pods.preset("allow-database", spec).await;
    let harmless = pod("a", json!({"role": "frontend"}));
    pods.until_marked("allow-database", &harmless).await;
}

/// The pod of that example.
fn cached(name: &str) -> Value {
    let mut pod = pod(name, json!({"app": "website", "role": "frontend"}));
    pod["spec"]["containers"][0]["volumeMounts"] =
        json!([{"mountPath": "/cache", "name": "cache-volume"}]);
    pod["spec"]["volumes"] = json!([{"name": "cache-volume", "emptyDir": {}}]);
    pod
}

/// What is told of conflicts: about what, by whom, what; and whether it is a Warning.
async fn told(pods: &Pods) -> Vec<String> {
    let events = pods.all("v1", "Event").await;
    let conflicts = events.iter().filter(|event| event["reason"] == "conflict");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let told = conflicts.map(|event| {
        let about = &event["involvedObject"];
        let (kind, name) = (text(&about["kind"]), text(&about["name"]));
        let (by, message) = (text(&event["source"]["component"]), text(&event["message"]));
        format!("{} {kind}/{name} {by}: {message}", text(&event["type"]))
    });
    let mut told: Vec<String> = told.collect();
    told.sort();
    told
}

async fn replica_set(pods: &Pods) -> Value {
    let labels = json!({"role": "frontend"});
    let set = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "website"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}}},
    });
    pods.apply(&set.to_string()).await;
    pods.get("apps/v1", "ReplicaSet", "website").await.unwrap()
}

/// As its controller would make it.
fn of_set(set: &Value) -> Value {
    let mut pod = cached("");
    let metadata = pod["metadata"].as_object_mut().unwrap();
    metadata.remove("name");
    metadata.insert("generateName".to_owned(), json!("website-"));
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "website",
        "uid": set["metadata"]["uid"], "controller": true});
    metadata.insert("ownerReferences".to_owned(), json!([owner]));
    pod
}

#[tokio::test]
async fn a_conflict_leaves_the_pod_as_it_is_and_is_told_of_its_controller_and_the_preset() {
    let pods = open().await;
    conflicting(&pods, "Skip").await;
    let set = replica_set(&pods).await;
    // Of a dry run nobody is told: its events would be there before those of what comes after it.
    let tried = pods.try_pod(of_set(&set)).await.unwrap();
    assert_eq!(
        tried.warnings,
        [format!("PodPreset allow-database: {TEXT}")]
    );
    let tried = pods.try_pod(cached("tried")).await.unwrap();
    assert_eq!(tried.marker("allow-database"), None);

    let created = pods.create_pod(of_set(&set)).await;
    assert_eq!(
        created.warnings,
        [format!("PodPreset allow-database: {TEXT}")]
    );
    assert_eq!(created.marker("allow-database"), None);
    let container = &created.pod["spec"]["containers"][0];
    assert_eq!(container["env"], Value::Null);
    let mounts = json!([{"mountPath": "/cache", "name": "cache-volume"}]);
    assert_eq!(container["volumeMounts"][0], mounts[0]);

    pods.create_pod(cached("named")).await;
    let by = "podpreset.admission.kubernetes.io/allow-database";
    let expected = [
        "Pod/named",
        "PodPreset/allow-database",
        "ReplicaSet/website",
    ];
    let expected = expected.map(|about| format!("Warning {about} {by}: {TEXT}"));
    eventually("all are told", PATIENCE, async || {
        let told = told(&pods).await;
        if told == expected { Ok(()) } else { Err(told) }
    })
    .await;
    let noted = "PodPreset/allow-database: mountPath /cache";
    eventually("it stands in the audit log", PATIENCE, async || {
        let requests = pods.plane.audit_events().unwrap().into_iter();
        let mut notes = requests.flat_map(|request| request.annotations);
        let is_ours = |(key, note): (String, String)| {
            key == "pods.settings.carto.run/conflicts" && note == noted
        };
        if notes.any(is_ours) {
            Ok(())
        } else {
            Err("not yet")
        }
    })
    .await;
}

#[tokio::test]
async fn a_pod_is_denied_only_if_its_preset_says_so() {
    let pods = open().await;
    conflicting(&pods, "Deny").await;
    let refused = pods.post("", &cached("a")).await.unwrap_err();
    let expected = format!(
        "admission webhook \"pods.settings.carto.run\" denied the request: PodPreset allow-database: {TEXT}"
    );
    assert_eq!(refused, expected);
    assert_eq!(pods.all("v1", "Pod").await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_preset_may_keep_what_is_there_or_put_its_own_in_its_place() {
    let pods = open().await;
    conflicting(&pods, "KeepExisting").await;
    let kept = pods.until_marked("allow-database", &cached("a")).await;
    let container = &kept.pod["spec"]["containers"][0];
    assert_eq!(container["volumeMounts"][0]["name"], "cache-volume");
    assert_eq!(container["env"][0]["name"], "DB_PORT");
    assert_eq!(told(&pods).await, NOTHING);
}
