//! Objects that the Go controller left: no annotations, Update entries of a manager that has the name of its binary, and a
//! status.

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

fn run(name: &str, value: &Value) -> Value {
    json!({"apiVersion": "test.run/v1alpha1", "kind": "Test", "metadata": {"name": name}, "spec": {"value": value}})
}

/// A namespace in which the Go controller has realized workload `app`.
async fn go_was_here(stage: &Stage, binary: &str) {
    stage.apply(BLUEPRINT).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    let workload = stage.workload("app").await;
    let source = ["ClusterSourceTemplate", "run", "immutable"];
    let mut older = stage.left_by_go(
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
    go_has_realized(stage, binary, &workload).await;
}

/// The newest objects of all steps, and a value in the mutable one that somebody else has set.
async fn go_has_realized(stage: &Stage, binary: &str, workload: &Value) {
    let app = workload["metadata"]["name"].as_str().unwrap();
    let left = |step: &str, template, object| stage.left_by_go(workload, step, template, object);
    let newer = format!("{app}-run-newer");
    let source = ["ClusterSourceTemplate", "run", "immutable"];
    let object = left("run", source, run(&newer, &json!({"branch": "a"})));
    stage.create_as(binary, object).await;
    let done =
        json!({"url": "url-a", "rev": "1", "conditions": [{"type": "Ready", "status": "True"}]});
    stage.report(&newer, done).await;
    let check = run(&format!("{app}-check-xyz"), &json!({"url": "url-a"}));
    let option = ["ClusterTemplate", "", "immutable"];
    stage.create_as(binary, left("check", option, check)).await;
    let name = format!("{app}-sink");
    let sink = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": {"dropped": "later"}},
        "data": {"url": "url-a", "dropped": "later"},
    });
    let plain = ["ClusterTemplate", "sink", "mutable"];
    stage.create_as(binary, left("publish", plain, sink)).await;
    let mine = json!({"data": {"mine": "1"}, "metadata": {"annotations": {"mine": "1"}}});
    stage.edit("v1", "ConfigMap", &name, mine).await;
}

async fn sinks(stage: &Stage) -> Vec<Value> {
    let mut objects = stage.all("v1", "ConfigMap").await;
    objects.retain(|object| name(object).ends_with("-sink"));
    objects
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

async fn uids(stage: &Stage) -> Vec<(String, Value)> {
    let mut objects = stage.tests().await;
    objects.extend(sinks(stage).await);
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

async fn drop_fields_from_template(stage: &Stage) {
    let template = json!({"spec": {"template": {"metadata": {"annotations": null}, "data": {"dropped": null}}}});
    all_objects(&stage.client, "carto.run/v1alpha1", "ClusterTemplate")
        .patch(
            "sink",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(template),
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn what_the_go_controller_left_is_taken_over_and_nothing_runs_twice() {
    let mut stage = Stage::set().await;
    go_was_here(&stage, "cartographer").await;
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
    drop_fields_from_template(&stage).await;
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

/// What the Go controller makes while it is back: a run of other inputs, and a status without what carto remembers.
async fn go_is_back(stage: &Stage, branch: &str) {
    stage
        .edit_workload("app", crate::immutable::branch(branch))
        .await;
    let workload = stage.workload("app").await;
    let source = ["ClusterSourceTemplate", "run", "immutable"];
    let made = run("app-run-back", &json!({"branch": branch}));
    let mut made = stage.left_by_go(&workload, "run", source, made);
    // It is the last one, whatever the seconds of this test are.
    made["metadata"]["creationTimestamp"] = json!("2099-05-01T00:00:00Z");
    made["metadata"]["uid"] = json!("5d2a8c9e-0000-4000-8000-000000000002");
    made["status"] =
        json!({"url": "url-a", "rev": "2", "conditions": [{"type": "Ready", "status": "True"}]});
    let key = format!("/registry/test.run/tests/{}/app-run-back", stage.namespace);
    let text = made.to_string();
    stage.plane.put_raw(&key, text.as_bytes()).await.unwrap();
    let mut status = workload["status"].clone();
    for entry in status["resources"].as_array_mut().unwrap() {
        let entry = entry.as_object_mut().unwrap();
        entry.remove("runs");
        entry.remove("applied");
    }
    stage.set_owner_status("app", status).await;
}

#[tokio::test]
async fn after_a_way_back_the_run_that_the_go_controller_made_meanwhile_is_adopted() {
    let mut stage = Stage::set().await;
    go_was_here(&stage, "cartographer").await;
    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
    stage
        .edit_workload("app", crate::immutable::branch("b"))
        .await;
    crate::immutable::runs_up_to(&stage, "b").await;
    stage.kill_controller();

    go_is_back(&stage, "c").await;
    let before = uids(&stage).await;
    stage.start_controller();
    stage
        .until("app", "the run made meanwhile is adopted", |owner| {
            let step = test_support::stage::step(owner, "run");
            step["stampedRef"]["name"] == "app-run-back"
        })
        .await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(uids(&stage).await, before, "nothing runs again");
}

/// What the Go controller's binary may be called, and with it the field manager of what it wrote: as it is released, as `go
/// build` calls it, as others package it.
const BINARIES: [&str; 3] = ["cartographer", "cmd", "manager"];

/// So many owners are taken over; `make test-takeover` does it with 300.
#[expect(
    clippy::disallowed_methods,
    reason = "a test has no command line of its own"
)]
fn owners() -> usize {
    let asked = std::env::var("CARTO_TAKEOVER_OWNERS").ok();
    asked.map_or(24, |asked| asked.parse().unwrap())
}

async fn ready_owners(stage: &Stage) -> usize {
    let owners = stage.all("carto.run/v1alpha1", "Workload").await;
    let is_ready = |owner: &&Value| {
        let ready = test_support::stage::condition(&owner["status"], "Ready");
        ready["status"] == "True"
            && owner["status"]["observedGeneration"] == owner["metadata"]["generation"]
    };
    owners.iter().filter(is_ready).count()
}

#[tokio::test]
async fn many_owners_are_taken_over_whatever_the_binary_was_called_and_nothing_runs_or_is_lost() {
    let mut stage = Stage::set().await;
    stage.apply(BLUEPRINT).await;
    let owners = owners();
    for owner in 0..owners {
        let manifest =
            crate::immutable::WORKLOAD.replace("name: app,", &format!("name: app-{owner},"));
        stage.apply(&manifest).await;
        let workload = stage.workload(&format!("app-{owner}")).await;
        go_has_realized(&stage, BINARIES[owner % BINARIES.len()], &workload).await;
    }
    let (before, runs) = (uids(&stage).await, stage.tests().await);
    assert_eq!(before.len(), 3 * owners);

    stage.start_controller();
    eventually("all owners are ready", PATIENCE, async || {
        let ready = ready_owners(&stage).await;
        if ready == owners {
            Ok(Some(()))
        } else {
            Err(format!("{ready} of {owners}"))
        }
    })
    .await;
    stage.idle().await;
    assert_eq!(
        uids(&stage).await,
        before,
        "no run is made again, and no object anew"
    );
    for (run, now) in runs.iter().zip(stage.tests().await) {
        for field in ["spec", "status"] {
            assert_eq!(run[field], now[field], "{}", name(run));
        }
    }
    let all = json!({"url": "url-a", "dropped": "later", "mine": "1"});
    for sink in sinks(&stage).await {
        assert_eq!(sink["data"], all, "{}", name(&sink));
        assert_eq!(sink["metadata"]["annotations"]["mine"], "1");
    }

    drop_fields_from_template(&stage).await;
    let kept = json!({"url": "url-a", "mine": "1"});
    eventually("the dropped field is gone from all", PATIENCE, async || {
        let sinks = sinks(&stage).await;
        let left = sinks.iter().filter(|sink| sink["data"] != kept);
        let left: Vec<&str> = left.map(name).collect();
        if left.is_empty() {
            Ok(Some(()))
        } else {
            Err(left.join(", "))
        }
    })
    .await;
    for sink in sinks(&stage).await {
        let annotations = &sink["metadata"]["annotations"];
        assert_eq!(
            (&annotations["dropped"], &annotations["mine"]),
            (&Value::Null, &json!("1"))
        );
    }
    assert_eq!(uids(&stage).await, before);
}
