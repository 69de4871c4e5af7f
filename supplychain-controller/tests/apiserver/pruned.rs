//! Runs that somebody else deletes are not run again (docs/adr/0013).

use serde_json::{Value, json};
use test_support::stage::History;
use test_support::{ControlPlane, eventually};

use crate::immutable::{RUNS, WORKLOAD, branch, sink};
use crate::stage::{NOTHING, PATIENCE, Stage, step};

fn name(run: &Value) -> String {
    run["metadata"]["name"].as_str().unwrap().to_owned()
}

fn done(url: &str) -> Value {
    json!({"url": url, "rev": "1", "conditions": [{"type": "Ready", "status": "True"}]})
}

async fn the_run(stage: &Stage) -> Value {
    eventually("there is a run", PATIENCE, async || {
        stage.tests().await.pop()
    })
    .await
}

#[tokio::test]
async fn a_run_that_succeeded_is_not_run_again_when_it_is_deleted_not_even_by_the_next_process() {
    let mut stage = Stage::open().await;
    stage.apply(RUNS).await;
    stage.apply(WORKLOAD).await;
    let run = the_run(&stage).await;
    stage.report(&name(&run), done("one")).await;
    sink(&stage, "one").await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    let known = stage.workload("app").await["status"].clone();
    let runs = &step(&json!({"status": known}), "run")["runs"];
    assert_eq!(runs[0]["result"], "Succeeded");
    assert_eq!(runs[0]["outputs"], json!({"url": "one", "revision": "1"}));

    stage.delete("test.run/v1alpha1", "Test", &name(&run)).await;
    stage.reconcile("app").await;
    stage.settle("app").await;
    assert_eq!(stage.tests().await, [] as [Value; 0]);
    assert_eq!(stage.workload("app").await["status"], known);
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    stage.kill_controller();
    stage.delete("v1", "ConfigMap", "app-sink").await;
    stage.start_controller();
    sink(&stage, "one").await;
    stage.settle("app").await;
    assert_eq!(stage.tests().await, [] as [Value; 0]);

    stage.edit_workload("app", branch("b")).await;
    let next = the_run(&stage).await;
    assert_eq!(next["spec"]["value"]["branch"], "b");
    stage.report(&name(&next), done("two")).await;
    sink(&stage, "two").await;
}

#[tokio::test]
async fn a_pruner_that_leaves_nothing_standing_has_each_input_run_once() {
    const INPUTS: [&str; 3] = ["a", "b", "c"];
    let stage = Stage::open().await;
    let history = History::of_tests(&stage).await;
    stage.apply(RUNS).await;
    stage.apply(WORKLOAD).await;
    for input in INPUTS {
        stage.edit_workload("app", branch(input)).await;
        let run = eventually("it is run", PATIENCE, async || {
            let runs = stage.tests().await;
            runs.into_iter()
                .find(|run| run["spec"]["value"]["branch"] == input)
        })
        .await;
        // It ends and goes in the same moment: often no reconcile comes between.
        stage.report(&name(&run), done(input)).await;
        stage.delete("test.run/v1alpha1", "Test", &name(&run)).await;
        sink(&stage, input).await;
        stage.settle("app").await;
        stage.reconcile("app").await;
    }
    stage.settle("app").await;
    let counts = history.created_and_deleted(&stage).await;
    assert_eq!(counts, (INPUTS.len(), INPUTS.len()));
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn a_run_that_is_deleted_before_its_end_is_run_again() {
    let stage = Stage::open().await;
    stage.apply(RUNS).await;
    stage.apply(WORKLOAD).await;
    let run = the_run(&stage).await;
    stage.settle("app").await;
    stage.delete("test.run/v1alpha1", "Test", &name(&run)).await;
    let again = eventually("it is run again", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.into_iter()
            .find(|again| again["metadata"]["uid"] != run["metadata"]["uid"])
    })
    .await;
    assert_eq!(name(&again), name(&run), "the same submission");
    stage.report(&name(&again), done("one")).await;
    sink(&stage, "one").await;
}

/// Jobs that are complete at once: they want no Pod.
const JOBS: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: job}
spec:
  lifecycle: immutable
  healthRule:
    multiMatch:
      healthy: {matchConditions: [{type: Complete, status: 'True'}]}
      unhealthy: {matchConditions: [{type: Failed, status: 'True'}]}
  template:
    apiVersion: batch/v1
    kind: Job
    metadata: {generateName: $(workload.metadata.name)$-}
    spec:
      completions: 0
      ttlSecondsAfterFinished: 1
      template:
        metadata: {annotations: {branch: $(workload.spec.source.git.ref.branch)$}}
        spec: {restartPolicy: Never, containers: [{name: a, image: registry.example/a}]}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: runs}
spec:
  selector: {type: web}
  resources:
    - {name: job, templateRef: {kind: ClusterTemplate, name: job}}
";

/// The Job controller and the TTL controller of Kubernetes do what they do in any cluster.
#[tokio::test]
async fn a_job_that_its_ttl_deletes_is_not_run_again() {
    let plane = ControlPlane::builder()
        .audit()
        .jobs()
        .start()
        .await
        .unwrap();
    let mut stage = Stage::on(plane).await;
    stage.start_controller();
    stage
        .grant(
            "jobs",
            "[{apiGroups: [batch], resources: [jobs], verbs: [get, list, create, patch, delete]}]",
        )
        .await;
    stage.apply(JOBS).await;
    stage.apply(WORKLOAD).await;
    for (count, input) in ["a", "b"].into_iter().enumerate() {
        stage.edit_workload("app", branch(input)).await;
        let created = || {
            let writes = stage.writes();
            let creates =
                |write: &&String| write.starts_with("create jobs/") && write.ends_with("201");
            writes.iter().filter(creates).count()
        };
        eventually("a Job is made", PATIENCE, async || created() == count + 1).await;
        eventually("its TTL has deleted it", PATIENCE, async || {
            stage.all("batch/v1", "Job").await.is_empty()
        })
        .await;
        stage.ready("app", "True", "Ready").await;
        stage.settle("app").await;
        stage.reconcile("app").await;
        stage.settle("app").await;
        assert_eq!(created(), count + 1, "{input} is run once");
    }
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}
