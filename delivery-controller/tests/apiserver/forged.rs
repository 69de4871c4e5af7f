//! What a tenant can write on the objects of an environment decides nothing: one test for each thing he can say, as a user
//! with the rights that are shipped for people, and those to edit what is stamped.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::{Value, json};
use test_support::stage::Tenant;
use test_support::{Stage, eventually};

use crate::stage::{DELIVERABLE, NOTHING, PATIENCE, open, sunk};
use crate::validation::{
    ENVIRONMENT, INTEGRATION, deploy, generation, has_event, integrated, performed, push, run,
    runs, staging, test, until_told, written,
};

const RECORD: &str = "carto.run/environment";

/// The tenant writes what the environment's object says of itself, or takes it out.
async fn says(tenant: &Tenant, text: Option<String>) {
    let patch = json!({"metadata": {"annotations": {RECORD: text}}});
    tenant
        .patch("test.run/v1alpha1", "Test", "app-environment", patch)
        .await
        .unwrap();
}

async fn under_test() -> (Stage, Tenant, String) {
    let stage = open().await;
    stage.apply(&staging(INTEGRATION)).await;
    stage.apply(DELIVERABLE).await;
    let tenant = stage.tenant().await;
    deploy(&stage, "main").await;
    let first = run(&stage, 1).await;
    until_told(&stage, "main@1 <-: Running Pending").await;
    (stage, tenant, first)
}

/// The same, and another one waits.
async fn with_one_waiting() -> (Stage, Tenant, String) {
    let (stage, tenant, first) = under_test().await;
    push(&stage, "v2").await;
    until_told(&stage, "main@1 <v2: Running Pending").await;
    (stage, tenant, first)
}

async fn said(stage: &Stage) -> Option<String> {
    let object = test(stage, "app-environment").await.unwrap();
    let text = object["metadata"]["annotations"][RECORD].as_str();
    text.map(str::to_owned)
}

/// What the object says, with these fields in place of the true ones.
async fn forged(stage: &Stage, fields: Value) -> Option<String> {
    let mut record: Value = serde_json::from_str(&said(stage).await.unwrap()).unwrap();
    for (name, value) in fields.as_object().unwrap() {
        assert!(record.get(name).is_some(), "{name} is not in {record}");
        record[name] = value.clone();
    }
    Some(record.to_string())
}

/// Waits until status says that what the object says is disregarded.
async fn disregarded(stage: &Stage) {
    stage
        .until("app", "the record is disregarded", |owner| {
            owner["status"]["environments"][0]["disregarded"].is_string()
        })
        .await;
    has_event(
        stage,
        "Warning RecordDisregarded: [deploy] annotation [carto.run/environment] of the object was written by somebody \
         else; it is disregarded",
    )
    .await;
}

/// What was under test is what is validated and promoted, once, and then comes what waited.
async fn goes_on_with_main(stage: &Stage, first: &str, next: &str) {
    assert_eq!(runs(stage).await, [first], "nothing runs again");
    integrated(stage, first, "True").await;
    performed(stage, "main").await;
    sunk(stage, "app", "main").await;
    assert_eq!(generation(&written(stage, next).await), 2);
    until_told(stage, &format!("{next}@2 <-: Pending Pending")).await;
    deploy(stage, next).await;
    let second = run(stage, 2).await;
    integrated(stage, &second, "True").await;
    performed(stage, next).await;
    sunk(stage, "app", next).await;
    stage.ready("app", "True", "Ready").await;
    let inputs: Vec<Value> = stage.tests().await.iter().map(input).collect();
    assert!(!inputs.contains(&json!("EVIL")), "{inputs:?}");
    stage.idle().await;
    let mut promotions = stage.writes();
    promotions.retain(|write| write.contains("configmaps/app-sink"));
    assert_eq!(promotions.len(), 2, "main and {next}: {promotions:?}");
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
}

fn input(object: &Value) -> Value {
    object["spec"]["value"]["rev"].clone()
}

#[tokio::test]
async fn another_revision_that_an_annotation_names_is_neither_validated_nor_promoted() {
    let (stage, tenant, first) = under_test().await;
    let before = said(&stage).await;
    let evil = json!({"revision": "EVIL", "url": "http://evil"});
    says(&tenant, forged(&stage, evil).await).await;
    // What is rendered is what is under test, so that it is put back.
    eventually("the record is put back", PATIENCE, async || {
        let seen = said(&stage).await;
        if seen == before { Ok(()) } else { Err(seen) }
    })
    .await;
    until_told(&stage, "main@1 <-: Running Pending").await;
    push(&stage, "v2").await;
    until_told(&stage, "main@1 <v2: Running Pending").await;
    goes_on_with_main(&stage, &first, "v2").await;
}

#[tokio::test]
async fn another_revision_that_an_annotation_names_is_not_promoted_while_one_waits() {
    let (stage, tenant, first) = with_one_waiting().await;
    let evil = json!({"revision": "EVIL", "url": "http://evil"});
    says(&tenant, forged(&stage, evil).await).await;
    disregarded(&stage).await;
    until_told(&stage, "main@1 <v2: Running Pending").await;
    goes_on_with_main(&stage, &first, "v2").await;
}

#[tokio::test]
async fn an_environment_whose_record_is_removed_stays_locked() {
    let (stage, tenant, first) = with_one_waiting().await;
    says(&tenant, None).await;
    disregarded(&stage).await;
    until_told(&stage, "main@1 <v2: Running Pending").await;
    goes_on_with_main(&stage, &first, "v2").await;
}

#[tokio::test]
async fn a_record_that_cannot_be_read_keeps_nothing_and_frees_nothing() {
    let (stage, tenant, first) = with_one_waiting().await;
    says(&tenant, Some("{".to_owned())).await;
    disregarded(&stage).await;
    goes_on_with_main(&stage, &first, "v2").await;
}

#[tokio::test]
async fn a_number_beyond_all_numbers_does_not_keep_the_status_from_being_written() {
    let (stage, tenant, first) = with_one_waiting().await;
    let highest = forged(&stage, json!({"arrival": u64::MAX})).await;
    says(&tenant, highest).await;
    disregarded(&stage).await;
    push(&stage, "v3").await;
    until_told(&stage, "main@1 <v3: Running Pending").await;
    goes_on_with_main(&stage, &first, "v3").await;
}

#[tokio::test]
async fn a_start_long_ago_releases_nothing() {
    let (stage, tenant, first) = with_one_waiting().await;
    let long_ago = json!({"started": "1970-01-01T00:00:00Z"});
    says(&tenant, forged(&stage, long_ago).await).await;
    disregarded(&stage).await;
    until_told(&stage, "main@1 <v2: Running Pending").await;
    assert_eq!(generation(&written(&stage, "main").await), 1);
    goes_on_with_main(&stage, &first, "v2").await;
}

/// Also by a process that has seen nothing of it.
#[tokio::test]
async fn what_a_tenant_wrote_while_nobody_was_there_is_not_believed() {
    let (mut stage, tenant, first) = with_one_waiting().await;
    stage.kill_controller();
    let evil = json!({"revision": "EVIL", "url": "http://evil", "arrival": 7});
    says(&tenant, forged(&stage, evil).await).await;
    stage.start_controller();
    disregarded(&stage).await;
    goes_on_with_main(&stage, &first, "v2").await;
}

/// The verdicts that release an environment are where no tenant writes.
#[tokio::test]
async fn a_tenant_may_not_write_the_status_that_decides() {
    let stage = open().await;
    let tenant = stage.tenant().await;
    for verb in ["patch", "update"] {
        let right = format!(
            "{verb} deliverables.carto.run/status in {}",
            stage.namespace
        );
        assert!(!stage.plane.may(tenant.user(), &right).await.unwrap());
    }
    stage.apply(&staging(INTEGRATION)).await;
    stage.apply(DELIVERABLE).await;
    deploy(&stage, "main").await;
    let before = until_told(&stage, "main@1 <-: Running Pending").await;
    // By the main resource, what is written of it is dropped.
    let freed = json!({"status": {"environments": null}, "metadata": {"annotations": {"a": "b"}}});
    tenant
        .patch("carto.run/v1alpha1", "Deliverable", "app", freed)
        .await
        .unwrap();
    let after = stage.owner("app").await;
    assert_eq!(after["metadata"]["annotations"]["a"], "b");
    assert_eq!(
        after["status"]["environments"],
        before["status"]["environments"]
    );
}

/// Whoever names the environment of somebody else learns nothing of it.
#[tokio::test]
async fn an_environment_of_another_owner_is_contested() {
    let stage = open().await;
    let name = "$(deliverable.metadata.name)$-environment";
    assert!(ENVIRONMENT.contains(name));
    stage
        .apply(&staging(INTEGRATION).replace(name, "app-environment"))
        .await;
    stage.apply(DELIVERABLE).await;
    deploy(&stage, "main").await;
    let first = run(&stage, 1).await;
    until_told(&stage, "main@1 <-: Running Pending").await;
    let kept = test(&stage, "app-environment").await;

    stage
        .apply(&DELIVERABLE.replace("name: app,", "name: other,"))
        .await;
    let other = stage.ready("other", "False", "ObjectContested").await;
    let why = crate::stage::condition(&other["status"], "ResourcesSubmitted");
    let message = why["message"].as_str().unwrap();
    assert!(
        message.ends_with(
            "belongs to Deliverable [app]; rename it in the template or remove the other owner"
        ),
        "{message}"
    );
    assert_eq!(other["status"]["environments"], Value::Null);
    assert_eq!(test(&stage, "app-environment").await, kept);
    assert_eq!(runs(&stage).await, [first]);
}
