//! Outputs that are tied to what made them, on a real API server: what goes downstream, whatever the object, its controller
//! and a tenant do.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::stage::Versions;
use test_support::{ControlPlane, Disturbance, LossyProxy, eventually};

use crate::immutable::{WORKLOAD, branch};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

pub(crate) const TESTS: &str = "test.run/v1alpha1";

/// The build keeps its latest good output, whatever it reconciles now, as kpack and Runnables do.
pub(crate) const CHAIN: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: src}
spec:
  urlPath: .data.url
  revisionPath: .data.revision
  alwaysSuccessful: true
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-src}
    data: {url: 'https://git.good/app', revision: $(workload.spec.image)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterImageTemplate
metadata: {name: build}
spec:
  imagePath: .status.latestGoodOutput
  observedCompletion:
    succeeded: [{key: '.status.conditions[?(@.type==\"Ready\")].status', value: 'True'}]
    failed: {key: '.status.conditions[?(@.type==\"Ready\")].status', value: 'False'}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-build}
    spec: {value: {revision: $(source.revision)$}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-deployed}
    data: {image: $(image)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
    - {name: build, templateRef: {kind: ClusterImageTemplate, name: build}, sources: [{name: source, resource: fetch}]}
    - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, images: [{name: image, resource: build}]}
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {image: '1', serviceAccountName: sa}
";

/// Revision 1 is built and deployed.
async fn built() -> Stage {
    built_by(CHAIN).await
}

/// The same by another chain of these steps.
pub(crate) async fn built_by(chain: &str) -> Stage {
    let stage = Stage::open().await;
    stage.apply(chain).await;
    submitted(&stage, "1").await;
    says(&stage, "True", Some("image@1")).await;
    deployed(&stage, "image@1").await;
    stage.settle("app").await;
    stage
}

pub(crate) async fn push(stage: &Stage, revision: &str) {
    stage
        .edit_workload("app", json!({"spec": {"image": revision}}))
        .await;
    submitted(stage, revision).await;
}

/// The build is to build this.
pub(crate) async fn submitted(stage: &Stage, revision: &str) {
    let what = format!("revision {revision} is submitted");
    eventually(&what, PATIENCE, async || {
        let build = stage.get(TESTS, "Test", "app-build").await?;
        (build["spec"]["value"]["revision"] == revision).then_some(())
    })
    .await;
}

/// The controller of the build has come to the present spec, and says this.
pub(crate) async fn says(stage: &Stage, ready: &str, output: Option<&str>) {
    let build = stage.get(TESTS, "Test", "app-build").await.unwrap();
    report(stage, &build["metadata"]["generation"], ready, output).await;
}

async fn report(stage: &Stage, generation: &Value, ready: &str, output: Option<&str>) {
    let build = stage.get(TESTS, "Test", "app-build").await.unwrap();
    let before = &build["status"]["latestGoodOutput"];
    let output = output.map_or_else(|| before.clone(), |output| json!(output));
    let mut status = json!({
        "observedGeneration": generation, "conditions": [{"type": "Ready", "status": ready}],
    });
    if !output.is_null() {
        status["latestGoodOutput"] = output;
    }
    stage.report("app-build", status).await;
}

pub(crate) async fn deployed(stage: &Stage, image: &str) {
    eventually(&format!("{image} is deployed"), PATIENCE, async || {
        let deployed = stage.get("v1", "ConfigMap", "app-deployed").await;
        match deployed {
            Some(deployed) if deployed["data"]["image"] == image => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// Starts a controller that cannot write the status of the Workload.
pub(crate) async fn start_without_status(stage: &mut Stage) -> LossyProxy {
    let network = LossyProxy::disturbing(&stage.plane, |parts| {
        let is_of_status = parts.uri.path().ends_with("/workloads/app/status");
        is_of_status.then_some(Disturbance::Broken)
    });
    let network = network.await.unwrap();
    stage.start_controller_as(network.kubeconfig());
    network
}

/// What the step says of its object is this, and status tells it.
pub(crate) async fn told(stage: &Stage, state: &str) -> Value {
    let owner = stage
        .until("app", &format!("the build is {state}"), |owner| {
            condition(&step(owner, "build"), "OutputsGood")["reason"] == state
        })
        .await;
    step(&owner, "build")
}

async fn image(stage: &Stage) -> Value {
    let deployed = stage.get("v1", "ConfigMap", "app-deployed").await.unwrap();
    deployed["data"]["image"].clone()
}

/// The first counter-example of the proposal.
#[tokio::test]
async fn an_output_that_one_of_several_updates_made_is_not_attributed_to_the_last_one() {
    let stage = built().await;
    push(&stage, "2").await;
    push(&stage, "3").await;
    says(&stage, "False", Some("image@2")).await;
    let build = told(&stage, "Failed").await;
    assert_eq!(build["outputs"][0]["value"], "image@1");
    assert_eq!(build["outputs"][0]["current"], false);
    assert_eq!(image(&stage).await, "image@1");
}

/// The second one.
#[tokio::test]
async fn an_output_of_the_former_spec_is_not_attributed_to_the_one_just_submitted() {
    let stage = built().await;
    let former = stage.get(TESTS, "Test", "app-build").await.unwrap();
    push(&stage, "2").await;
    let generation = &former["metadata"]["generation"];
    report(&stage, generation, "True", Some("image@1-rebuilt")).await;
    let build = told(&stage, "Reconciling").await;
    assert_eq!(build["outputs"][0]["value"], "image@1");
    stage.settle("app").await;
    assert_eq!(image(&stage).await, "image@1");
}

/// The third one.
#[tokio::test]
async fn an_output_that_stands_beside_a_failure_is_attributed_to_nobody() {
    let stage = built().await;
    push(&stage, "2").await;
    says(&stage, "False", Some("image@of-whom")).await;
    told(&stage, "Failed").await;
    assert_eq!(image(&stage).await, "image@1");
    says(&stage, "True", Some("image@2")).await;
    deployed(&stage, "image@2").await;
    let build = told(&stage, "Good").await;
    assert_eq!(build["outputs"][0]["current"], true);
    assert_eq!(build["underWay"], Value::Null);
}

#[tokio::test]
async fn the_last_good_output_outlives_the_process_and_nothing_is_written_for_it() {
    let mut stage = built().await;
    push(&stage, "2").await;
    told(&stage, "Reconciling").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    stage.kill_controller();
    stage.delete("v1", "ConfigMap", "app-deployed").await;
    let before = stage.workload("app").await;
    stage.start_controller();
    deployed(&stage, "image@1").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    let after = stage.workload("app").await;
    let outputs = |owner: &Value| step(owner, "build")["outputs"].clone();
    assert_eq!(outputs(&after), outputs(&before));
}

/// Objects are written before the status that tells of them.
#[tokio::test]
async fn an_output_that_was_handed_on_before_a_kill_is_not_taken_back() {
    let mut stage = built().await;
    stage.kill_controller();
    let _network = start_without_status(&mut stage).await;
    push(&stage, "2").await;
    says(&stage, "True", Some("image@2")).await;
    deployed(&stage, "image@2").await;
    stage.kill_controller();
    let owner = stage.workload("app").await;
    assert_eq!(step(&owner, "build")["outputs"][0]["value"], "image@1");

    says(&stage, "Unknown", None).await;
    let versions = Versions::of(&stage, "v1", "ConfigMap").await;
    stage.start_controller();
    let owner = stage
        .until("app", "what is deployed is left as it is", |owner| {
            let submitted = condition(&step(owner, "deploy"), "ResourceSubmitted");
            submitted["reason"] == "InputsNotReady"
        })
        .await;
    let message = condition(&step(&owner, "deploy"), "ResourceSubmitted")["message"].clone();
    let message = message.as_str().unwrap_or_default();
    assert!(
        message.contains("[build] hand on what status knows"),
        "{message}"
    );
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(image(&stage).await, "image@2");

    says(&stage, "True", None).await;
    let build = told(&stage, "Good").await;
    assert_eq!(build["outputs"][0]["value"], "image@2");
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    push(&stage, "3").await;
    says(&stage, "True", Some("image@3")).await;
    deployed(&stage, "image@3").await;
    let deployed = stage.get("v1", "ConfigMap", "app-deployed").await.unwrap();
    let seen = versions.up_to(&deployed).await;
    assert!(!format!("{seen:?}").contains("image@1"), "{seen:?}");
}

#[tokio::test]
async fn a_tenant_cannot_write_what_is_kept_nor_have_his_output_accepted() {
    let stage = built().await;
    let tenant = stage.tenant().await;
    let forged = json!({"status": {"resources": []}});
    let refused = tenant
        .patch_status("carto.run/v1alpha1", "Workload", "app", forged)
        .await;
    assert!(refused.is_err(), "{refused:?}");
    let before = step(&stage.workload("app").await, "build")["outputs"].clone();

    // While our controller does not look, the spec is changed, and what comes of it is built.
    let mut stage = stage;
    stage.kill_controller();
    let evil = json!({"spec": {"value": {"revision": "evil"}}});
    tenant
        .patch(TESTS, "Test", "app-build", evil)
        .await
        .unwrap();
    says(&stage, "True", Some("image@evil")).await;
    let versions = Versions::of(&stage, "v1", "ConfigMap").await;
    stage.start_controller();
    submitted(&stage, "1").await;
    told(&stage, "Reconciling").await;
    says(&stage, "True", Some("image@1")).await;
    let build = told(&stage, "Good").await;
    assert_eq!(build["outputs"], before, "it is the output that it was");
    let deployed = stage.get("v1", "ConfigMap", "app-deployed").await.unwrap();
    let seen = versions.up_to(&deployed).await;
    assert!(!format!("{seen:?}").contains("evil"), "{seen:?}");
}

/// A tenant writes twenty times a second, and the controller of the build builds whatever is there, while commits come.
#[tokio::test]
async fn nothing_of_a_tenant_who_never_stops_writing_gets_downstream() {
    let stage = built().await;
    let tenant = stage.tenant().await;
    let versions = Versions::of(&stage, "v1", "ConfigMap").await;
    let pace = |millis| tokio::time::interval(Duration::from_millis(millis));
    let adversary = async {
        let mut pace = pace(50);
        for round in 0.. {
            pace.tick().await;
            let evil = json!({
                "spec": {"value": {"revision": format!("evil-{round}")}},
                "metadata": {"annotations": {"carto.run/rendered-digest": format!("evil-{round}")}},
            });
            // It may come and go meanwhile.
            drop(tenant.patch(TESTS, "Test", "app-build", evil).await);
        }
    };
    let builder = async {
        let mut pace = pace(5);
        loop {
            pace.tick().await;
            let build = stage.get(TESTS, "Test", "app-build").await;
            let Some(build) = build else { continue };
            let generation = &build["metadata"]["generation"];
            let image = format!(
                "image@{}",
                build["spec"]["value"]["revision"].as_str().unwrap()
            );
            if build["status"]["observedGeneration"] != *generation {
                report(&stage, generation, "True", Some(&image)).await;
            }
        }
    };
    let commits = async {
        let mut pace = pace(500);
        for revision in 2..=10 {
            pace.tick().await;
            let patch = json!({"spec": {"image": revision.to_string()}});
            stage.edit_workload("app", patch).await;
        }
        // The last one, too, comes under attack.
        pace.tick().await;
    };
    tokio::select! {
        () = adversary => {}
        () = builder => {}
        () = commits => {}
    }
    // The adversary has gone: the last commit arrives, by itself but for who builds it.
    submitted(&stage, "10").await;
    says(&stage, "True", Some("image@10")).await;
    deployed(&stage, "image@10").await;
    let last = stage.get("v1", "ConfigMap", "app-deployed").await.unwrap();
    let seen = versions.up_to(&last).await;
    let images: BTreeSet<&str> = seen
        .iter()
        .filter_map(|object| object["data"]["image"].as_str())
        .collect();
    assert!(images.contains("image@10"), "{images:?}");
    assert!(
        images.iter().all(|image| !image.contains("evil")),
        "{images:?}"
    );
}

/// A run whose spec somebody changes, which kinds of runs need not forbid.
#[tokio::test]
async fn a_run_that_somebody_changed_yields_nothing() {
    a_changed_run_yields_nothing("kubectl").await;
}

/// The names of field managers are free text.
#[tokio::test]
async fn a_run_that_somebody_changed_under_our_name_yields_nothing() {
    a_changed_run_yields_nothing("carto-supplychain").await;
}

/// The build of a chain makes a run for each revision, and the first one is there.
pub(crate) async fn running(chain: &str) -> (Stage, Value) {
    let stage = Stage::open().await;
    let immutable = chain.replace("  imagePath:", "  lifecycle: immutable\n  imagePath:");
    let immutable = immutable.replace(
        "metadata: {name: $(workload.metadata.name)$-build}",
        "metadata: {generateName: $(workload.metadata.name)$-build-}",
    );
    stage.apply(&immutable).await;
    let run = eventually("the run is there", PATIENCE, async || {
        stage.tests().await.into_iter().next()
    })
    .await;
    (stage, run)
}

/// The run that is made after another one.
pub(crate) async fn run_after(stage: &Stage, run: &Value) -> Value {
    let uid = &run["metadata"]["uid"];
    eventually("another run is there", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.into_iter().find(|run| run["metadata"]["uid"] != *uid)
    })
    .await
}

/// Somebody asks a run for this.
async fn ask(stage: &Stage, run: &Value, field_manager: &str, revision: &str) -> Value {
    let tenant = stage.tenant().await;
    let name = &run["metadata"]["name"];
    let asked = json!({
        "apiVersion": TESTS, "kind": "Test", "metadata": {"name": name},
        "spec": {"value": {"revision": revision}},
    });
    tenant.patch_as(field_manager, &asked).await.unwrap()
}

/// The controller of runs has come to one.
async fn ends(stage: &Stage, run: &Value, image: &str) {
    let good = json!({
        "latestGoodOutput": image, "conditions": [{"type": "Ready", "status": "True"}],
    });
    let name = run["metadata"]["name"].as_str().unwrap();
    stage.report(name, good).await;
}

async fn a_changed_run_yields_nothing(field_manager: &str) {
    let (stage, run) = running(CHAIN).await;
    ask(&stage, &run, field_manager, "evil").await;
    ends(&stage, &run, "image@evil").await;
    is_made_again(&stage, &run).await;
}

/// The run is not read; as the condition says, it is deleted, and made again.
async fn is_made_again(stage: &Stage, run: &Value) {
    is_not_read(stage).await;
    let name = run["metadata"]["name"].as_str().unwrap();
    stage.delete(TESTS, "Test", name).await;
    let again = run_after(stage, run).await;
    assert_eq!(again["spec"]["value"]["revision"], "1");
    ends(stage, &again, "image@1").await;
    deployed(stage, "image@1").await;
}

async fn is_not_read(stage: &Stage) {
    let what = "the changed run is not read";
    stage
        .until("app", what, |owner| {
            let told = condition(&step(owner, "build"), "OutputsGood");
            let message = told["message"].as_str().unwrap_or_default();
            message.contains("does not hold what is rendered")
        })
        .await;
    assert_eq!(stage.get("v1", "ConfigMap", "app-deployed").await, None);
}

const OUR_NAME: &str = "carto-supplychain";

/// All that is ours is as it was then. What its controller has made of it in between stays.
#[tokio::test]
async fn a_run_that_somebody_changed_and_changed_back_under_our_name_yields_nothing() {
    let (mut stage, run) = running(CHAIN).await;
    ask(&stage, &run, OUR_NAME, "evil").await;
    ask(&stage, &run, OUR_NAME, "1").await;
    ends(&stage, &run, "image@evil").await;
    is_not_read(&stage).await;
    stage.settle("app").await;
    stage.kill_controller();
    stage.start_controller();
    stage.settle("app").await;
    is_made_again(&stage, &run).await;
}

#[tokio::test]
async fn a_run_that_was_changed_and_changed_back_while_no_controller_ran_yields_nothing() {
    let (mut stage, run) = running(CHAIN).await;
    stage.settle("app").await;
    stage.kill_controller();
    let time = |run: &Value| {
        let entries = run["metadata"]["managedFields"].as_array().unwrap();
        let ours = entries.iter().find(|entry| entry["manager"] == OUR_NAME);
        ours.unwrap()["time"].clone()
    };
    // The API server counts seconds.
    eventually("our fields have another time", PATIENCE, async || {
        ask(&stage, &run, OUR_NAME, "evil").await;
        let restored = ask(&stage, &run, OUR_NAME, "1").await;
        time(&restored) != time(&run)
    })
    .await;
    ends(&stage, &run, "image@evil").await;
    stage.start_controller();
    is_made_again(&stage, &run).await;
}

/// A Job that tests the source, and hands it on. It is complete at once: it wants no Pod.
const JOBS: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: tested}
spec:
  lifecycle: immutable
  urlPath: .spec.template.metadata.annotations.url
  revisionPath: .spec.template.metadata.annotations.branch
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Complete")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type=="Failed")].status', value: 'True'}
  template:
    apiVersion: batch/v1
    kind: Job
    metadata: {generateName: $(workload.metadata.name)$-}
    spec:
      completions: 0
      ttlSecondsAfterFinished: 1
      template:
        metadata:
          annotations: {url: $(workload.spec.source.git.url)$, branch: $(workload.spec.source.git.ref.branch)$}
        spec: {restartPolicy: Never, containers: [{name: a, image: registry.example/a}]}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-deployed}
    data: {image: $(source.revision)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: tested}
spec:
  selector: {type: web}
  resources:
    - {name: test, templateRef: {kind: ClusterSourceTemplate, name: tested}}
    - {name: sink, templateRef: {kind: ClusterTemplate, name: sink}, sources: [{name: source, resource: test}]}
"#;

/// The Job controller and the TTL controller of Kubernetes do what they do in any cluster.
#[tokio::test]
async fn a_job_hands_on_what_it_has_tested_and_goes() {
    let plane = ControlPlane::builder().audit().jobs();
    let mut stage = Stage::on(plane.start().await.unwrap()).await;
    stage.start_controller();
    stage
        .grant(
            "jobs",
            "[{apiGroups: [batch], resources: [jobs], verbs: [get, list, create, patch, delete]}]",
        )
        .await;
    stage.apply(JOBS).await;
    stage.apply(WORKLOAD).await;
    deployed(&stage, "a").await;
    let owner = stage
        .until("app", "the Job is good", |owner| {
            condition(&step(owner, "test"), "OutputsGood")["status"] == "True"
        })
        .await;
    let identity =
        |owner: &Value| step(owner, "test")["outputs"][1]["provenance"]["identity"].clone();
    let first = identity(&owner);
    eventually("the Job is gone", PATIENCE, async || {
        stage.all("batch/v1", "Job").await.is_empty()
    })
    .await;
    stage.reconcile("app").await;
    assert_eq!(identity(&stage.workload("app").await), first);
    stage.edit_workload("app", branch("next")).await;
    deployed(&stage, "next").await;
    let what = "another output is told";
    stage
        .until("app", what, |owner| identity(owner) != first)
        .await;
}
