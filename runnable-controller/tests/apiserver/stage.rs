//! The stage with the runnable controller on it, and runs of kind `Test`.

use kube::api::DeleteParams;
use serde_json::{Value, json};
use test_support::stage::{Cast, PATIENCE, condition};
use test_support::{Stage, all_objects, eventually};

pub(crate) const CAST: Cast = Cast {
    binary: env!("CARGO_BIN_EXE_runnable-controller"),
    user_agent: "carto-runnable",
    api_version: "carto.run/v1alpha1",
    owner_kind: "Runnable",
};

pub(crate) const TEMPLATE: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {name: tests}
spec:
  outputs: {result: .status.result}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {generateName: $(runnable.metadata.name)$-}
    spec: {value: {revision: $(runnable.spec.inputs.revision)$}}
";

/// A Runnable with more fields in its spec.
pub(crate) fn runnable(name: &str, more: &str) -> String {
    format!(
        "
apiVersion: carto.run/v1alpha1
kind: Runnable
metadata: {{name: {name}}}
spec:
  serviceAccountName: sa
  runTemplateRef: {{name: tests}}
  inputs: {{revision: a}}
{more}"
    )
}

/// With the template and a Runnable `app`.
pub(crate) async fn open(more: &str) -> Stage {
    let stage = Stage::open(CAST).await;
    stage.apply(TEMPLATE).await;
    stage.apply(&runnable("app", more)).await;
    stage
}

pub(crate) fn revision(name: &str) -> Value {
    json!({"spec": {"inputs": {"revision": name}}})
}

/// Waits until there are so many runs, and returns their names, oldest first.
pub(crate) async fn runs(stage: &Stage, count: usize) -> Vec<String> {
    eventually(&format!("{count} runs"), PATIENCE, async || {
        let runs = stage.tests().await;
        let mut named: Vec<(u64, String)> = runs.iter().map(order).collect();
        named.sort();
        let names: Vec<String> = named.into_iter().map(|(_, name)| name).collect();
        if names.len() == count {
            Ok(Some(names))
        } else {
            Err(names)
        }
    })
    .await
}

fn order(run: &Value) -> (u64, String) {
    let metadata = &run["metadata"];
    let sequence = metadata["annotations"]["carto.run/submission"]
        .as_str()
        .unwrap();
    (
        sequence.parse().unwrap(),
        metadata["name"].as_str().unwrap().to_owned(),
    )
}

/// A run ends.
pub(crate) async fn end(stage: &Stage, run: &str, status: &str, result: &str) {
    let condition = json!({"type": "Succeeded", "status": status, "message": format!("was {status}"),
        "lastTransitionTime": "2020-01-01T00:00:00Z"});
    stage
        .report(run, json!({"result": result, "conditions": [condition]}))
        .await;
}

/// Waits until the outputs are these.
pub(crate) async fn outputs(stage: &Stage, expected: Value) {
    stage
        .until("app", &format!("outputs are {expected}"), |runnable| {
            runnable["status"]["outputs"] == expected
        })
        .await;
}

/// Waits until the message of `RunTemplateReady` contains this.
pub(crate) async fn says(stage: &Stage, reason: &str, message: &str) {
    stage
        .until("app", &format!("{reason}: {message}"), |runnable| {
            let ready = condition(&runnable["status"], "RunTemplateReady");
            ready["reason"] == reason && ready["message"].as_str().unwrap().contains(message)
        })
        .await;
}

/// Takes the template away.
pub(crate) async fn delete_template(stage: &Stage) {
    all_objects(&stage.client, "carto.run/v1alpha1", "ClusterRunTemplate")
        .delete("tests", &DeleteParams::default())
        .await
        .unwrap();
}
