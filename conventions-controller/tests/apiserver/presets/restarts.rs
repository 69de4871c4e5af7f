//! Owners that are restarted because their pods have older presets.

use std::path::Path;

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::stage::PATIENCE;
use test_support::{CONTROLLERS_NAMESPACE, ControlPlane, eventually, objects_in, service_account};

use super::stage::{MARKER, Pods, pod, set_pods};
use crate::stage::set_on;

const WANTED: &str = "settings.carto.run/restart-on-preset-change";
const RESTARTED_FOR: &str = "settings.carto.run/presets";
const MANIFEST: &str = "../deploy/conventions/restart.yaml";

async fn set() -> Pods {
    let plane = ControlPlane::builder().deployments().audit().start().await;
    set_pods(set_on(plane.unwrap()).await)
}

fn deployment(name: &str, wanted: &str) -> Value {
    let labels = json!({"app": name, "a": "b"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "annotations": {WANTED: wanted}},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "web", "image": "web"}]},
        }},
    })
}

fn sets(value: &str) -> Value {
    json!({"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": value}]})
}

async fn until_pod(pods: &Pods, app: &str, value: &str) -> Value {
    let what = format!("there is a pod of {app} with {value}");
    eventually(&what, PATIENCE, async || {
        let all = pods.all("v1", "Pod").await;
        let is_it = |pod: &&Value| {
            let env = &pod["spec"]["containers"][0]["env"];
            pod["metadata"]["labels"]["app"] == app && env[0]["value"] == value
        };
        let found = all.iter().find(is_it).cloned();
        found.ok_or(all).map(Some)
    })
    .await
}

async fn restarted_for(pods: &Pods, name: &str) -> Value {
    let owner = pods.get("apps/v1", "Deployment", name).await.unwrap();
    owner["spec"]["template"]["metadata"]["annotations"][RESTARTED_FOR].clone()
}

#[tokio::test]
async fn owners_that_want_it_are_restarted_once_for_their_presets_and_no_others() {
    let mut pods = set().await;
    let flags = [
        "--report-stale-pods",
        "--restart-stale-owners=600",
        "--mutable-presets",
    ];
    pods.start_by(None, &flags).await;
    pods.preset("env", sets("1")).await;
    pods.until_marked("env", &pod("a", json!({"a": "b"}))).await;
    pods.apply(&deployment("wants", "true").to_string()).await;
    pods.apply(&deployment("does-not", "false").to_string())
        .await;
    let old = until_pod(&pods, "wants", "1").await;
    until_pod(&pods, "does-not", "1").await;
    assert_eq!(restarted_for(&pods, "wants").await, Value::Null);

    pods.preset("env", sets("2")).await;
    until_pod(&pods, "wants", "2").await;
    let version = restarted_for(&pods, "wants").await;
    assert!(version.is_string());
    assert_eq!(restarted_for(&pods, "does-not").await, Value::Null);
    let is_told = |event: &String| event.contains("pods carried older versions of their presets");
    eventually("an event tells it", PATIENCE, async || {
        let told = pods.events().await;
        told.iter().any(is_told).then_some(()).ok_or(told)
    })
    .await;

    // A pod that says it is of the Deployment and has an older preset, and one that really is: the
    // second is restarted after the first was looked at.
    let generation = |name: &'static str| {
        let pods = &pods;
        async move {
            let owner = pods.get("apps/v1", "Deployment", name).await.unwrap();
            owner["metadata"]["generation"].as_i64().unwrap()
        }
    };
    let before = generation("wants").await;
    let mut forged = pod("forged", json!({"pod-template-hash": "h"}));
    forged["metadata"]["annotations"] = json!({format!("{MARKER}env"): "1"});
    forged["metadata"]["ownerReferences"] = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet",
        "name": "wants-h", "uid": old["metadata"]["uid"], "controller": true}]);
    pods.create_pod(forged).await;
    let wants = json!({"metadata": {"annotations": {WANTED: "true"}}});
    pods.edit("apps/v1", "Deployment", "does-not", wants).await;
    until_pod(&pods, "does-not", "2").await;
    assert_eq!(generation("wants").await, before);
    assert_eq!(restarted_for(&pods, "wants").await, version);
}

#[tokio::test]
async fn with_the_right_to_restart_nothing_else_can_be_changed() {
    let pods = set().await;
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join(MANIFEST);
    let manifest = std::fs::read_to_string(manifest).unwrap();
    pods.plane.apply_yaml(&manifest).await.unwrap();
    let user = service_account(CONTROLLERS_NAMESPACE, "conventions-controller");
    let right = format!("patch deployments.apps in {} named wants", pods.namespace);
    pods.plane.until_it_may(&user, &right).await;
    let client = pods.plane.client_as_user(&user, &[]).unwrap();
    let all = objects_in(&client, &pods.namespace, "apps/v1", "Deployment");
    pods.apply(&deployment("wants", "true").to_string()).await;
    pods.apply(&deployment("does-not", "false").to_string())
        .await;
    let patched = async |name: &str, patch: &Value| {
        // What is there already would be no change.
        let params = PatchParams::default().dry_run();
        let patched = all.patch(name, &params, &Patch::Merge(patch)).await;
        patched.err().map(|error| error.to_string())
    };
    let of_template = |template: Value| json!({"spec": {"template": template}});
    let annotated =
        |key: &str, value: Value| of_template(json!({"metadata": {"annotations": {key: value}}}));
    let more = json!({"containers": [{"name": "web", "image": "other"}]});
    let refused = "may only write annotation settings.carto.run/presets";
    // The policy counts a moment after it is stored.
    eventually("the policy counts", PATIENCE, async || {
        let said = patched("wants", &json!({"spec": {"replicas": 2}})).await;
        let is_refused = said.as_ref().is_some_and(|said| said.contains(refused));
        is_refused.then_some(()).ok_or(said)
    })
    .await;
    for patch in [
        of_template(json!({"spec": more})),
        of_template(json!({"spec": {"serviceAccountName": "other"}})),
        of_template(json!({"spec": {"hostNetwork": true}})),
        annotated("other", json!("1")),
        json!({"spec": {"paused": true}}),
        json!({"spec": {"minReadySeconds": 7}}),
        json!({"metadata": {"annotations": {WANTED: null}}}),
        json!({"metadata": {"labels": {"a": "c"}}}),
    ] {
        let said = patched("wants", &patch).await.unwrap_or_default();
        assert!(said.contains(refused), "{patch}: {said}");
    }
    let restart = annotated(RESTARTED_FOR, json!("d1"));
    let said = patched("does-not", &restart).await.unwrap_or_default();
    assert!(said.contains(refused), "{said}");
    assert_eq!(patched("wants", &restart).await, None);
    let params = PatchParams::default();
    let stored = all.patch("wants", &params, &Patch::Merge(&restart)).await;
    stored.unwrap();
    assert_eq!(
        patched("wants", &annotated(RESTARTED_FOR, json!("d2"))).await,
        None
    );
    assert_eq!(restarted_for(&pods, "wants").await, "d1");
}
