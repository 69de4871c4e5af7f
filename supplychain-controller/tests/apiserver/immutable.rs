//! Immutable steps: one object per rendering, and never two for the same
//! (docs/behaviour/objects.md#immutable, docs/behaviour/examples.md#immutable-life).

use std::sync::atomic::{AtomicBool, Ordering};

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::{LossyProxy, eventually};

use crate::stage::{PATIENCE, Stage, condition, step};

/// An immutable source whose outputs another controller reports, and a sink for them.
pub(crate) const RUNS: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: run}
spec:
  lifecycle: immutable
  urlPath: .status.url
  revisionPath: .status.rev
  healthRule: {singleConditionType: Ready}
  retentionPolicy: {maxSuccessfulRuns: 1, maxFailedRuns: 1}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {generateName: $(workload.metadata.name)$-}
    spec: {value: {branch: $(workload.spec.source.git.ref.branch)$}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-sink}
    data: {url: $(source.url)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: runs}
spec:
  selector: {type: web}
  resources:
    - {name: run, templateRef: {kind: ClusterSourceTemplate, name: run}}
    - name: publish
      templateRef: {kind: ClusterTemplate, name: sink}
      sources: [{resource: run, name: code}]
";

pub(crate) const WORKLOAD: &str = r"
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {serviceAccountName: sa, source: {git: {url: https://git.example/app, ref: {branch: a}}}}
";

pub(crate) fn branch(name: &str) -> Value {
    json!({"spec": {"source": {"git": {"ref": {"branch": name}}}}})
}

fn done(url: &str) -> Value {
    json!({"url": url, "rev": "1", "conditions": [{"type": "Ready", "status": "True"}]})
}

fn failed(url: &str) -> Value {
    json!({"url": url, "rev": "1", "conditions": [{"type": "Ready", "status": "False"}]})
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

/// Waits until the newest run was made for this branch, and returns all.
pub(crate) async fn runs_up_to(stage: &Stage, branch: &str) -> Vec<Value> {
    eventually(&format!("a run of branch {branch}"), PATIENCE, async || {
        let runs = stage.tests().await;
        let newest = runs.last()?;
        (newest["spec"]["value"]["branch"] == branch).then_some(runs)
    })
    .await
}

/// Waits until what the run of this Workload came to has been handed on.
pub(crate) async fn sink_of(stage: &Stage, workload: &str, url: &str) {
    let sink = format!("{workload}-sink");
    eventually(&format!("{sink} has {url}"), PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", &sink).await?;
        (sink["data"]["url"] == url).then_some(())
    })
    .await;
}

pub(crate) async fn sink(stage: &Stage, url: &str) {
    sink_of(stage, "app", url).await;
}

async fn sink_url(stage: &Stage) -> Value {
    let sink = stage.get("v1", "ConfigMap", "app-sink").await;
    sink.map(|sink| sink["data"]["url"].clone())
        .unwrap_or_default()
}

/// What table docs/behaviour/examples.md#immutable-life has columns for: run in stampedRef,
/// Healthy, url output, what downstream holds.
async fn row(stage: &Stage, healthy: &str, run: &str, output: Option<&str>, downstream: Value) {
    let seen = stage
        .until("app", &format!("{run} is {healthy}"), |workload| {
            let entry = step(workload, "run");
            condition(&entry, "Healthy")["status"] == healthy
                && entry["stampedRef"]["name"] == run
                && entry["outputs"][0]["preview"].as_str().map(str::trim_end) == output
        })
        .await;
    stage.idle().await;
    assert_eq!(sink_url(stage).await, downstream, "{seen}");
}

#[tokio::test]
async fn an_immutable_step_lives_as_the_table_says() {
    let mut stage = Stage::open().await;
    stage.apply(RUNS).await;
    stage.apply(WORKLOAD).await;
    let a = name(&runs_up_to(&stage, "a").await[0]).to_owned();
    assert!(a.starts_with("app-") && a.len() > 4, "{a}");
    row(&stage, "Unknown", &a, None, Value::Null).await;
    let waiting = stage.ready("app", "Unknown", "MissingValueAtPath").await;
    let namespace = stage.namespace.clone();
    assert_eq!(
        condition(&waiting["status"], "Ready")["message"],
        format!(
            "waiting to read value [.status.url] from object [tests.test.run/{a}] in namespace [{namespace}]"
        )
    );

    stage.report(&a, done("url-a")).await;
    sink(&stage, "url-a").await;
    row(&stage, "True", &a, Some("url-a"), json!("url-a")).await;
    stage.ready("app", "True", "Ready").await;

    stage.edit_workload("app", branch("b")).await;
    let b = name(&runs_up_to(&stage, "b").await[1]).to_owned();
    row(&stage, "Unknown", &b, Some("url-a"), json!("url-a")).await;

    stage.report(&b, failed("url-b")).await;
    row(&stage, "False", &b, Some("url-a"), json!("url-a")).await;
    stage
        .until("app", "Ready is False", |workload| {
            condition(&workload["status"], "Ready")["status"] == "False"
        })
        .await;

    stage.report(&b, done("url-b")).await;
    sink(&stage, "url-b").await;
    row(&stage, "True", &b, Some("url-b"), json!("url-b")).await;
    eventually("a is deleted by retention", PATIENCE, async || {
        stage.tests().await.len() == 1
    })
    .await;
    stage.ready("app", "True", "Ready").await;
    // What is still held back would be written after the restart.
    stage.settle("app").await;

    let before = (stage.tests().await, stage.workload("app").await);
    let requests = stage.requests().len();
    stage.kill_controller();
    stage.start_controller();
    stage.reconcile("app").await;
    assert_eq!(
        stage.requests()[requests..],
        [] as [String; 0],
        "a restart submits nothing"
    );
    assert_eq!(stage.tests().await, before.0);
    assert_eq!(stage.workload("app").await["status"], before.1["status"]);

    stage.report(&b, failed("url-b")).await;
    row(&stage, "False", &b, None, json!("url-b")).await;
    let unreadable = stage.workload("app").await;
    assert_eq!(
        condition(&step(&unreadable, "run"), "ResourceSubmitted")["message"],
        format!(
            "cannot read value [.status.url] from unhealthy object [tests.test.run/{b}] in namespace [{namespace}], \
             examine object, particularly whether it is receiving proper inputs"
        )
    );

    // A second time a: what ran before is not what runs now.
    stage.edit_workload("app", branch("a")).await;
    let third = runs_up_to(&stage, "a").await;
    assert!(
        name(third.last().unwrap()) != a && third.len() == 2,
        "{third:?}"
    );

    stage.idle().await;
    let of_owner = format!("system:serviceaccount:{namespace}:sa");
    let strangers: Vec<_> = stage
        .audited()
        .into_iter()
        .filter(|event| event.is_write() && event.object_ref.as_ref().unwrap().resource == "tests")
        .filter(|event| event.user.username != of_owner)
        .collect();
    assert_eq!(
        strangers,
        [],
        "runs are created and deleted with the owner's rights"
    );
    let deletions = stage
        .writes()
        .iter()
        .filter(|write| write.starts_with("delete tests/"))
        .count();
    assert_eq!(deletions, 1);
}

/// Outputs at once, so that nobody has to report anything.
pub(crate) fn instant(retention: u32) -> String {
    RUNS.replace(".status.url", ".spec.value.branch")
        .replace(".status.rev", ".spec.value.branch")
        .replace("  healthRule: {singleConditionType: Ready}\n", "")
        .replace(
            "maxSuccessfulRuns: 1",
            &format!("maxSuccessfulRuns: {retention}"),
        )
}

#[tokio::test]
async fn many_runs_within_a_second_leave_the_newest() {
    let stage = Stage::open().await;
    stage.apply(&instant(1)).await;
    stage.apply(WORKLOAD).await;
    sink(&stage, "a").await;
    let mut seconds = Vec::new();
    // On a slow machine it takes more until two fall into one second.
    while seconds.len() < 20 || seconds.windows(2).all(|pair| pair[0] != pair[1]) {
        let branch_name = format!("b{}", seconds.len() + 1);
        stage.edit_workload("app", branch(&branch_name)).await;
        let runs = runs_up_to(&stage, &branch_name).await;
        seconds.push(runs.last().unwrap()["metadata"]["creationTimestamp"].clone());
        assert!(seconds.len() < 200, "no two within a second: {seconds:?}");
    }
    let rounds = seconds.len();
    let last = format!("b{rounds}");
    sink(&stage, &last).await;
    let settled = eventually("one run is left", PATIENCE, async || {
        let runs = stage.tests().await;
        (runs.len() == 1).then_some(runs)
    })
    .await;
    assert_eq!(settled[0]["spec"]["value"]["branch"], *last);
    stage.idle().await;
    let writes = stage.writes();
    let count = |start: &str| {
        writes
            .iter()
            .filter(|write| write.starts_with(start))
            .count()
    };
    assert_eq!(
        (count("create tests/"), count("delete tests/")),
        (rounds + 1, rounds),
        "{writes:?}"
    );
    assert_eq!(
        stage.requests_of_reconciles("app", 3).await,
        [] as [String; 0]
    );
}

#[tokio::test]
async fn a_create_whose_reply_was_lost_is_adopted() {
    let mut stage = Stage::set().await;
    let first = AtomicBool::new(true);
    let loses = move |request: &http::request::Parts| {
        let creates_a_run =
            request.method == http::Method::POST && request.uri.path().ends_with("/tests");
        creates_a_run && first.swap(false, Ordering::SeqCst)
    };
    let network = LossyProxy::start(&stage.plane, loses).await.unwrap();
    stage.start_controller_as(network.kubeconfig());
    stage.apply(&instant(3)).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(network.lost().len(), 1);
    assert_eq!(stage.tests().await.len(), 1);
    assert_eq!(
        stage.requests_of_reconciles("app", 3).await,
        [] as [String; 0]
    );
}

#[tokio::test]
async fn a_create_that_nothing_shows_is_adopted() {
    let mut stage = Stage::open().await;
    // Of a run that has not ended: what one has come to is known, so that nobody has to find it.
    let going = instant(3).replace(".spec.value.branch", ".status.url");
    stage.apply(&going).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "Unknown", "MissingValueAtPath").await;
    stage.settle("app").await;
    let run = stage.tests().await.remove(0);

    // Nothing shows the run, as when neither reply nor event has arrived: the create is repeated.
    let without_label = json!({"metadata": {"labels": {"carto.run/workload-name": null}}});
    stage
        .edit("test.run/v1alpha1", "Test", name(&run), without_label)
        .await;
    eventually("the create is repeated", PATIENCE, async || {
        stage
            .writes()
            .iter()
            .any(|write| write.starts_with("create tests/") && write.ends_with(" 409"))
    })
    .await;
    let healed = eventually("the label is back", PATIENCE, async || {
        let run = stage.tests().await.remove(0);
        (run["metadata"]["labels"]["carto.run/workload-name"] == "app").then_some(run)
    })
    .await;
    assert_eq!(healed["metadata"]["uid"], run["metadata"]["uid"]);
    assert_eq!(stage.tests().await.len(), 1);
    stage.settle("app").await;
    assert_eq!(
        stage.requests_of_reconciles("app", 3).await,
        [] as [String; 0]
    );

    // Killed after the create and before anything was recorded.
    stage.kill_controller();
    stage
        .api("carto.run/v1alpha1", "Workload")
        .patch_status(
            "app",
            &PatchParams::default(),
            &Patch::Merge(json!({"status": null})),
        )
        .await
        .unwrap();
    stage.delete("test.run/v1alpha1", "Test", name(&run)).await;
    let mut written = healed.clone();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
    ] {
        written["metadata"].as_object_mut().unwrap().remove(field);
    }
    let created = stage.create_as("carto-supplychain", written).await;
    let before = stage.writes().len();
    stage.start_controller();
    stage.reconcile("app").await;
    assert_eq!(stage.writes()[before..], [] as [String; 0]);
    assert_eq!(
        stage.tests().await[0]["metadata"]["uid"],
        created["metadata"]["uid"]
    );
    stage
        .report(name(&run), json!({"url": "a", "rev": "a"}))
        .await;
    stage.ready("app", "True", "Ready").await;
}

#[tokio::test]
async fn runs_beyond_retention_go_and_a_running_one_stays() {
    let stage = Stage::open().await;
    stage
        .apply(&RUNS.replace("maxFailedRuns: 1", "maxFailedRuns: 2"))
        .await;
    stage.apply(WORKLOAD).await;
    runs_up_to(&stage, "a").await;
    let mut names = Vec::new();
    for (index, status) in [failed("1"), failed("2"), json!({}), failed("4"), done("5")]
        .into_iter()
        .enumerate()
    {
        let branch_name = format!("r{index}");
        stage.edit_workload("app", branch(&branch_name)).await;
        let runs = runs_up_to(&stage, &branch_name).await;
        names.push(name(runs.last().unwrap()).to_owned());
        stage.report(names.last().unwrap(), status).await;
    }
    sink(&stage, "5").await;
    // The first run (of branch a) was never reported on, so it still runs.
    eventually("the oldest failure is gone", PATIENCE, async || {
        let left: Vec<String> = stage
            .tests()
            .await
            .iter()
            .map(|run| name(run).to_owned())
            .collect();
        let gone = !left.contains(&names[0]);
        if gone && left[1..] == names[1..] {
            Ok(())
        } else {
            Err(left)
        }
    })
    .await;
}
