//! A template that runs a Runnable of its own comes to an end, and what it stamps knows who came before.

use serde_json::{Value, json};
use test_support::stage::{PATIENCE, condition};
use test_support::{Stage, eventually};

use crate::stage::CAST;

const OURS: &str = "carto.run/v1alpha1";

/// The most that may follow the first by default, and the one that runs nothing.
const MOST: usize = 8;

async fn set(kind: &str, spec: &str) -> Stage {
    let mut stage = Stage::set(CAST).await;
    let rules = "[{apiGroups: [carto.run], resources: [runnables, workloads], verbs: [create, get, list, patch, delete, watch]}]";
    stage.grant("owners", rules).await;
    stage
        .apply(&format!(
            "
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {{name: again}}
spec:
  template:
    apiVersion: carto.run/v1alpha1
    kind: {kind}
    metadata: {{generateName: loop-}}
    spec: {spec}
"
        ))
        .await;
    stage.start_controller();
    stage
}

fn runnable(more: &Value) -> Value {
    let mut runnable = json!({
        "apiVersion": OURS, "kind": "Runnable", "metadata": {"name": "app"},
        "spec": {"serviceAccountName": "sa", "runTemplateRef": {"name": "again"}},
    });
    for (field, value) in more.as_object().unwrap() {
        runnable["metadata"][field] = value.clone();
    }
    runnable
}

#[tokio::test]
async fn a_template_that_runs_a_runnable_of_its_own_comes_to_an_end() {
    let stage = set(
        "Runnable",
        "{serviceAccountName: sa, runTemplateRef: {name: again}}",
    )
    .await;
    stage.create_as("test", runnable(&json!({}))).await;
    let is_too_deep =
        |runnable: &Value| condition(&runnable["status"], "Ready")["reason"] == "StampedTooDeep";
    let last = eventually("a Runnable is too deep", PATIENCE, async || {
        let runnables = stage.all(OURS, "Runnable").await;
        let count = runnables.len();
        runnables
            .into_iter()
            .find(is_too_deep)
            .map(Some)
            .ok_or(count)
    })
    .await;
    stage.idle().await;
    assert_eq!(stage.all(OURS, "Runnable").await.len(), 1 + MOST + 1);
    assert_eq!(
        last["status"]["stampedFor"].as_array().unwrap().len(),
        MOST + 1
    );
    assert_eq!(last["status"]["stampedFor"][0], "Runnable/app");
}

#[tokio::test]
async fn what_a_runnable_of_a_workload_stamps_knows_of_the_workload() {
    let stage = set("Workload", "{serviceAccountName: sa}").await;
    let reference = json!({"apiVersion": OURS, "kind": "Workload", "name": "w", "uid": "of-w", "controller": true});
    let of_workload = runnable(&json!({"ownerReferences": [reference]}));
    stage.create_as("test", of_workload).await;
    let made = eventually("the Workload is stamped", PATIENCE, async || {
        let mut workloads = stage.all(OURS, "Workload").await;
        workloads.pop()
    })
    .await;
    assert_eq!(
        made["metadata"]["annotations"]["carto.run/stamped-for"],
        "Workload/w"
    );
    stage
        .until("app", "its lineage stands in its status", |runnable| {
            runnable["status"]["stampedFor"] == json!(["Workload/w"])
        })
        .await;
}

#[tokio::test]
async fn what_a_runnable_stamps_that_nobody_stamped_is_as_it_always_was() {
    let stage = set("Workload", "{serviceAccountName: sa}").await;
    stage.create_as("test", runnable(&json!({}))).await;
    let made = eventually("the Workload is stamped", PATIENCE, async || {
        let mut workloads = stage.all(OURS, "Workload").await;
        workloads.pop()
    })
    .await;
    let annotations = made["metadata"]["annotations"].as_object().unwrap();
    assert!(
        !annotations.contains_key("carto.run/stamped-for"),
        "{annotations:?}"
    );
    stage.idle().await;
    assert_eq!(
        stage.owner("app").await["status"]["stampedFor"],
        Value::Null
    );
}
