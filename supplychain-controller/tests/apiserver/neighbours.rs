//! What one owner leaves behind, and what it may cost the others.

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{PATIENCE, Stage};
use crate::unchanged::blueprint_of;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {a: b}
";
const RUN: &str = "
apiVersion: test.run/v1alpha1
kind: Test
metadata: {generateName: run-}
spec: {value: {url: $(workload.spec.source.git.ref.branch)$}}
";

/// The API server takes what a JSON parser refuses; it must not cost the others their listing.
#[tokio::test]
async fn a_workload_that_is_too_deep_to_read_harms_nobody_else() {
    let mut stage = Stage::set().await;
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    let deep = (0..200).fold(json!("x"), |inner, _| Value::Array(vec![inner]));
    let deep = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload",
        "metadata": {"name": "deep", "labels": {"type": "web"}},
        "spec": {"serviceAccountName": "sa", "params": [{"name": "p", "value": deep}]}});
    let path = format!(
        "/apis/carto.run/v1alpha1/namespaces/{}/workloads",
        stage.namespace
    );
    let create = http::Request::post(path)
        .header("content-type", "application/json")
        .body(deep.to_string().into_bytes())
        .unwrap();
    stage.client.request_text(create).await.unwrap();
    stage.apply(crate::chain::WORKLOAD).await;
    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
}

/// Status names the latest member of a family only; after a restart nothing else would lead to the others.
#[tokio::test]
async fn all_members_of_a_step_that_goes_while_nobody_looks_are_deleted() {
    let mut stage = Stage::open().await;
    let template = blueprint_of(&[("config", CONFIG), ("run", RUN)]).replacen(
        "  template:\n    apiVersion: test.run",
        "  lifecycle: immutable\n  template:\n    apiVersion: test.run",
        1,
    );
    stage.apply(&template).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage
        .edit_workload("app", crate::immutable::branch("b"))
        .await;
    eventually("there are two runs", PATIENCE, async || {
        (stage.tests().await.len() == 2).then_some(())
    })
    .await;
    stage.kill_controller();
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.start_controller();
    eventually("both runs are gone", PATIENCE, async || {
        let left = stage.tests().await;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}
