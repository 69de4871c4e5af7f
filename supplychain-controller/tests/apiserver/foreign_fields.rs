//! Fields that others set beside what is rendered (docs/behaviour/attribution.md#foreign-fields).

use kube::api::{DynamicObject, PostParams};
use serde_json::{Value, json};
use test_support::eventually;

use crate::attribution::{CHAIN, TESTS, built_by, deployed, push, run_after, running, says, told};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

/// The build refuses what others set.
fn refusing() -> String {
    let rule = "  observedCompletion:\n    succeeded: [{key";
    let refusing = CHAIN.replacen(rule, &format!("  foreignFields: Refuse\n{rule}"), 1);
    assert_ne!(refusing, CHAIN);
    refusing
}

/// Somebody has the build do something besides.
async fn set_note(stage: &Stage, note: Value) {
    let edit = json!({"spec": {"value": {"note": note}}});
    stage.edit(TESTS, "Test", "app-build", edit).await;
}

/// The build has come to what it holds now.
async fn rebuilt(stage: &Stage, image: &str) {
    says(stage, "True", Some(image)).await;
}

/// The step says that it reads nothing, and why.
async fn refused(stage: &Stage, why: &str) {
    let what = format!("what others have set is refused: {why}");
    stage
        .until("app", &what, |owner| {
            let good = condition(&step(owner, "build"), "OutputsGood");
            good["message"].as_str().is_some_and(|it| it.contains(why))
        })
        .await;
}

#[tokio::test]
async fn what_others_set_beside_a_rendering_is_named_in_the_provenance() {
    let stage = built_by(CHAIN).await;
    set_note(&stage, json!("theirs")).await;
    push(&stage, "2").await;
    rebuilt(&stage, "image@2").await;
    deployed(&stage, "image@2").await;
    let owner = stage
        .until("app", "the output of 2 is told", |owner| {
            step(owner, "build")["outputs"][0]["value"] == "image@2"
        })
        .await;
    let provenance = &step(&owner, "build")["outputs"][0]["provenance"];
    assert_eq!(provenance["foreignFields"], json!(["spec.value.note"]));
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn what_is_made_of_refused_fields_goes_nowhere_until_they_are_gone() {
    let mut stage = built_by(&refusing()).await;
    set_note(&stage, json!("evil")).await;
    rebuilt(&stage, "image@evil").await;
    refused(
        &stage,
        "app-build] that are not rendered: spec.value.note; remove",
    )
    .await;
    // Whoever may edit the object may also hide that he did.
    let hidden = json!({"metadata": {"managedFields": [{}]}});
    stage.edit(TESTS, "Test", "app-build", hidden).await;
    refused(&stage, "that are not rendered: ").await;
    stage.settle("app").await;
    stage.kill_controller();
    stage.start_controller();
    stage.settle("app").await;
    refused(&stage, "that are not rendered: ").await;
    // A commit does not help either.
    push(&stage, "2").await;
    rebuilt(&stage, "image@2-evil").await;
    refused(&stage, "that are not rendered: ").await;
    deployed(&stage, "image@1").await;
    set_note(&stage, Value::Null).await;
    rebuilt(&stage, "image@2").await;
    deployed(&stage, "image@2").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

/// The API server defaults a dozen fields of a Deployment.
const DEFAULTED: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: run}
spec:
  foreignFields: Refuse
  alwaysSuccessful: true
  template:
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: $(workload.metadata.name)$}
    spec:
      selector: {matchLabels: {app: $(workload.metadata.name)$}}
      template:
        metadata: {labels: {app: $(workload.metadata.name)$}}
        spec:
          containers: [{name: app, image: $(workload.spec.image)$, ports: [{containerPort: 8080}]}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: build, templateRef: {kind: ClusterTemplate, name: run}}
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {image: 'app:1', serviceAccountName: sa}
";

/// The owners may deploy.
async fn deploying() -> Stage {
    let stage = Stage::open().await;
    let rights = "[{apiGroups: [apps], resources: [deployments], verbs: [get, list, create, patch, delete]}]";
    stage.grant("deployments", rights).await;
    stage
}

async fn holds(stage: &Stage, image: &str) {
    eventually(
        &format!("{image} is in the Deployment"),
        PATIENCE,
        async || {
            let deployment = stage.get("apps/v1", "Deployment", "app").await?;
            (deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image)
                .then_some(())
        },
    )
    .await;
}

#[tokio::test]
async fn defaults_are_not_taken_for_what_others_set() {
    let mut stage = deploying().await;
    stage.apply(DEFAULTED).await;
    told(&stage, "Good").await;
    let scale = |replicas: u32| json!({"spec": {"replicas": replicas}});
    stage.edit("apps/v1", "Deployment", "app", scale(3)).await;
    refused(&stage, "that are not rendered: spec.replicas; remove").await;
    // Another image is applied all the same.
    let image = json!({"spec": {"image": "app:2"}});
    stage.edit_workload("app", image).await;
    holds(&stage, "app:2").await;
    refused(&stage, "that are not rendered: spec.replicas; remove").await;
    stage.edit("apps/v1", "Deployment", "app", scale(1)).await;
    told(&stage, "Good").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    let before = stage.workload("app").await;
    stage.kill_controller();
    stage.start_controller();
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    assert_eq!(stage.workload("app").await["status"], before["status"]);
}

/// Nobody may create a Deployment of another name.
const ONE_NAME: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: NAME}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
  - {expression: \"object.metadata.name == 'app'\", message: only app may be deployed here}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: NAME}
spec: {policyName: NAME, validationActions: [Deny]}
";

#[tokio::test]
async fn where_it_cannot_be_found_out_nothing_is_read_and_why_is_told() {
    let stage = deploying().await;
    stage
        .apply(&ONE_NAME.replace("NAME", &stage.namespace))
        .await;
    let other: DynamicObject = serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "other"},
        "spec": {
            "selector": {"matchLabels": {"app": "other"}},
            "template": {
                "metadata": {"labels": {"app": "other"}},
                "spec": {"containers": [{"name": "app", "image": "other"}]},
            },
        },
    }))
    .unwrap();
    let trial = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    eventually("the policy is in force", PATIENCE, async || {
        let api = stage.api("apps/v1", "Deployment");
        api.create(&trial, &other).await.is_err().then_some(())
    })
    .await;
    stage.apply(DEFAULTED).await;
    // It was created, so nothing of others is in it.
    told(&stage, "Good").await;
    let scale = json!({"spec": {"replicas": 3}});
    stage.edit("apps/v1", "Deployment", "app", scale).await;
    let image = json!({"spec": {"image": "app:2"}});
    stage.edit_workload("app", image).await;
    holds(&stage, "app:2").await;
    refused(
        &stage,
        "is found by an apply as dry run, and that failed: dry run: ",
    )
    .await;
    refused(&stage, "only app may be deployed here").await;
    let scale = json!({"spec": {"replicas": 1}});
    stage.edit("apps/v1", "Deployment", "app", scale).await;
    told(&stage, "Good").await;
}

/// What a create brings is ours, with its defaults: a run holds nothing beside.
#[tokio::test]
async fn a_run_yields_nothing_while_others_have_set_fields_of_it() {
    let (stage, run) = running(&refusing()).await;
    let name = run["metadata"]["name"].as_str().unwrap();
    let note = |note: Value| json!({"spec": {"value": {"note": note}}});
    stage.edit(TESTS, "Test", name, note(json!("evil"))).await;
    let good = json!({
        "latestGoodOutput": "image@1", "conditions": [{"type": "Ready", "status": "True"}],
    });
    stage.report(name, good.clone()).await;
    refused(&stage, "that are not rendered: spec.value.note; remove").await;
    assert_eq!(stage.get("v1", "ConfigMap", "app-deployed").await, None);
    // What it came to was made with the field, and stays so.
    stage.edit(TESTS, "Test", name, note(Value::Null)).await;
    refused(
        &stage,
        "somebody else changed it; delete it, and it is made again",
    )
    .await;
    stage.delete(TESTS, "Test", name).await;
    let again = run_after(&stage, &run).await;
    assert_eq!(stage.get("v1", "ConfigMap", "app-deployed").await, None);
    let name = again["metadata"]["name"].as_str().unwrap();
    stage.report(name, good).await;
    deployed(&stage, "image@1").await;
}
