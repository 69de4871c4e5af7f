//! Steps that wait until others are good (docs/behaviour/realizing.md#depends-on).

use serde_json::json;
use test_support::eventually;

use crate::attribution::{TESTS, deployed};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

/// The database is migrated before the application is deployed. The application does not take anything of that.
const CHAIN: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: migrate}
spec:
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type==\"Ready\")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type==\"Ready\")].status', value: 'False'}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-migration}
    spec: {value: {revision: $(workload.spec.image)$}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-deployed}
    data: {image: $(workload.spec.image)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, dependsOn: [{resource: migrate}]}
    - {name: migrate, templateRef: {kind: ClusterTemplate, name: migrate}}
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {image: '1', serviceAccountName: sa}
";

/// The migration of this revision ends so.
async fn migrated(stage: &Stage, revision: &str, ready: &str) {
    let what = format!("the migration of {revision} is there");
    let migration = eventually(&what, PATIENCE, async || {
        let migration = stage.get(TESTS, "Test", "app-migration").await?;
        (migration["spec"]["value"]["revision"] == revision).then_some(migration)
    })
    .await;
    let status = json!({
        "observedGeneration": migration["metadata"]["generation"],
        "conditions": [{"type": "Ready", "status": ready}],
    });
    stage.report("app-migration", status).await;
}

/// The application is held, and says for what.
async fn held(stage: &Stage) {
    let waits = "waiting for input(s) [success] of resource [deploy]: not available from resource(s) [migrate]";
    stage
        .until("app", waits, |owner| {
            condition(&step(owner, "deploy"), "ResourceSubmitted")["message"] == waits
        })
        .await;
}

#[tokio::test]
async fn an_application_is_deployed_once_its_migration_has_succeeded() {
    let mut stage = Stage::open().await;
    stage.apply(CHAIN).await;
    held(&stage).await;
    assert_eq!(stage.get("v1", "ConfigMap", "app-deployed").await, None);
    migrated(&stage, "1", "True").await;
    deployed(&stage, "1").await;
    let push = |revision: &str| json!({"spec": {"image": revision}});
    stage.edit_workload("app", push("2")).await;
    migrated(&stage, "2", "False").await;
    held(&stage).await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    // The next process knows no more than that either.
    stage.kill_controller();
    stage.start_controller();
    stage.settle("app").await;
    deployed(&stage, "1").await;
    stage.edit_workload("app", push("3")).await;
    migrated(&stage, "3", "True").await;
    deployed(&stage, "3").await;
    let owner = stage.ready("app", "True", "Ready").await;
    assert_eq!(
        step(&owner, "deploy")["inputs"],
        json!([{"name": "migrate"}])
    );
}

#[tokio::test]
async fn a_step_that_nothing_provides_is_warned_of() {
    let stage = Stage::open().await;
    let lost = CHAIN.replace(
        "dependsOn: [{resource: migrate}]",
        "dependsOn: [{resource: nobody}]",
    );
    stage.apply(&lost).await;
    let what = "the blueprint cannot work";
    stage
        .until("app", what, |owner| {
            let told = condition(&step(owner, "deploy"), "ResourceSubmitted");
            let message = told["message"].as_str().unwrap_or_default();
            message.contains("takes input [success] from resource [nobody], which does not exist")
        })
        .await;
}
