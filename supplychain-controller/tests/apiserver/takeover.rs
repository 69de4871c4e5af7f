//! Objects that the Go controller left: no annotations, Update entries of manager `cartographer`, and a status.

use serde_json::{Value, json};
use test_support::{all_objects, eventually};

use crate::stage::{PATIENCE, Stage};

const BLUEPRINT: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: run}
spec:
  lifecycle: immutable
  urlPath: .status.url
  revisionPath: .status.rev
  healthRule: {singleConditionType: Ready}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {generateName: $(workload.metadata.name)$-run-}
    spec: {value: {branch: $(workload.spec.source.git.ref.branch)$, empty: {}}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: check}
spec:
  lifecycle: immutable
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {generateName: $(workload.metadata.name)$-check-}
    spec: {value: {url: $(source.url)$}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-sink, annotations: {dropped: later}}
    data: {url: $(source.url)$, dropped: later}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: run, templateRef: {kind: ClusterSourceTemplate, name: run}}
    - name: check
      templateRef:
        kind: ClusterTemplate
        options:
          - {name: check, selector: {matchFields: [{key: spec.source.git.url, operator: Exists}]}}
          - {name: sink, selector: {matchFields: [{key: spec.source.git.url, operator: DoesNotExist}]}}
      sources: [{resource: run, name: code}]
    - name: publish
      templateRef: {kind: ClusterTemplate, name: sink}
      sources: [{resource: run, name: code}]
";

/// What the Go controller puts on every object; the template's name is empty for a step with options.
pub(crate) fn left_by_go(
    stage: &Stage,
    workload: &Value,
    step: &str,
    template: [&str; 3],
    mut object: Value,
) -> Value {
    let [kind, name, lifecycle] = template;
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.insert("namespace".into(), json!(stage.namespace));
    metadata.insert(
        "labels".into(),
        json!({
            "carto.run/workload-name": "app", "carto.run/workload-namespace": stage.namespace,
            "carto.run/supply-chain-name": "chain", "carto.run/resource-name": step, "carto.run/template-kind": kind,
            "carto.run/cluster-template-name": name, "carto.run/template-lifecycle": lifecycle,
        }),
    );
    metadata.insert(
        "ownerReferences".into(),
        json!([{
            "apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": "app", "uid": workload["metadata"]["uid"],
            "controller": true, "blockOwnerDeletion": true,
        }]),
    );
    object
}

fn run(name: &str, value: &Value) -> Value {
    json!({"apiVersion": "test.run/v1alpha1", "kind": "Test", "metadata": {"name": name}, "spec": {"value": value}})
}

/// A namespace in which the Go controller has realized workload `app`.
async fn go_was_here(stage: &Stage) {
    stage.apply(BLUEPRINT).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    let workload = stage.workload("app").await;
    let source = ["ClusterSourceTemplate", "run", "immutable"];
    let mut older = left_by_go(
        stage,
        &workload,
        "run",
        source,
        run("app-run-older", &json!({"branch": "before"})),
    );
    older["metadata"]["creationTimestamp"] = json!("2023-05-01T00:00:00Z");
    older["metadata"]["uid"] = json!("5d2a8c9e-0000-4000-8000-000000000001");
    older["status"] = json!({"url": "url-before", "rev": "0", "conditions": [{"type": "Ready", "status": "True"}]});
    let key = format!("/registry/test.run/tests/{}/app-run-older", stage.namespace);
    stage
        .plane
        .put_raw(&key, older.to_string().as_bytes())
        .await
        .unwrap();
    let newer = run("app-run-newer", &json!({"branch": "a"}));
    stage
        .create_as(
            "cartographer",
            left_by_go(stage, &workload, "run", source, newer),
        )
        .await;
    let done =
        json!({"url": "url-a", "rev": "1", "conditions": [{"type": "Ready", "status": "True"}]});
    stage.report("app-run-newer", done).await;
    let check = run("app-check-xyz", &json!({"url": "url-a"}));
    let option = ["ClusterTemplate", "", "immutable"];
    stage
        .create_as(
            "cartographer",
            left_by_go(stage, &workload, "check", option, check),
        )
        .await;
    let sink = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app-sink", "annotations": {"dropped": "later"}},
        "data": {"url": "url-a", "dropped": "later"},
    });
    let plain = ["ClusterTemplate", "sink", "mutable"];
    stage
        .create_as(
            "cartographer",
            left_by_go(stage, &workload, "publish", plain, sink),
        )
        .await;
    let mine = json!({"data": {"mine": "1"}, "metadata": {"annotations": {"mine": "1"}}});
    stage.edit("v1", "ConfigMap", "app-sink", mine).await;
}

async fn uids(stage: &Stage) -> Vec<(String, Value)> {
    let mut objects = stage.tests().await;
    objects.extend(stage.get("v1", "ConfigMap", "app-sink").await);
    let mut uids: Vec<_> = objects
        .iter()
        .map(|object| {
            (
                object["metadata"]["name"].to_string(),
                object["metadata"]["uid"].clone(),
            )
        })
        .collect();
    uids.sort_by(|left, right| left.0.cmp(&right.0));
    uids
}

#[tokio::test]
async fn what_the_go_controller_left_is_taken_over_and_nothing_runs_twice() {
    let mut stage = Stage::set().await;
    go_was_here(&stage).await;
    let before = uids(&stage).await;
    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
    assert_eq!(
        stage.requests_of_reconciles("app", 3).await,
        [] as [String; 0]
    );
    assert_eq!(uids(&stage).await, before);
    let created: Vec<String> = stage
        .writes()
        .into_iter()
        .filter(|write| !write.starts_with("patch"))
        .collect();
    assert_eq!(created, [] as [String; 0], "nothing is created or deleted");

    // A field that the template drops goes, although another manager wrote it; what is somebody else's stays.
    let template = json!({"spec": {"template": {"metadata": {"annotations": null}, "data": {"dropped": null}}}});
    all_objects(&stage.client, "carto.run/v1alpha1", "ClusterTemplate")
        .patch(
            "sink",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(template),
        )
        .await
        .unwrap();
    let sink = eventually("the dropped field is gone", PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", "app-sink").await?;
        sink["data"]["dropped"].is_null().then_some(sink)
    })
    .await;
    assert_eq!(sink["data"], json!({"url": "url-a", "mine": "1"}));
    assert_eq!(sink["metadata"]["annotations"]["dropped"], Value::Null);
    assert_eq!(sink["metadata"]["annotations"]["mine"], "1");
    assert_eq!(uids(&stage).await, before);

    // What was applied stands in the status now, by which the next process knows it.
    stage.settle("app").await;
    let writes = stage.writes().len();
    stage.kill_controller();
    stage.start_controller();
    stage.reconcile("app").await;
    assert_eq!(stage.writes()[writes..], [] as [String; 0]);

    // From here on the runs are counted: the next one is newer than all of the Go controller's.
    stage
        .edit_workload("app", crate::immutable::branch("b"))
        .await;
    let runs = crate::immutable::runs_up_to(&stage, "b").await;
    assert_eq!(runs.len(), 4);
    assert_eq!(
        runs[3]["metadata"]["annotations"]["carto.run/submission"], "2",
        "the first is the Go controller's newest"
    );
}
