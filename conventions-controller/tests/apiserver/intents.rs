//! PodIntents without any convention: status, account, and what is not asked for.

use serde_json::{Value, json};
use test_support::stage::NOTHING;

use crate::stage::{applied, fails, open, restart, said};

#[tokio::test]
async fn without_conventions_the_template_is_handed_on_word_for_word() {
    let stage = open().await;
    let intent = applied(&stage, "app").await;
    assert_eq!(intent["status"]["template"], intent["spec"]["template"]);
    assert_eq!(
        intent["status"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"],
        "0.5"
    );
    assert_eq!(intent["status"]["observedGeneration"], 1);
    assert_eq!(
        said(&intent),
        [
            json!(["ConventionsApplied", "True", "Applied", ""]),
            json!(["Ready", "True", "ConventionsApplied", ""]),
        ]
    );

    let label = json!({"spec": {"template": {"metadata": {"labels": {"app": "other"}}}}});
    stage.edit_owner("app", label).await;
    let changed = |intent: &Value| intent["status"]["observedGeneration"] == 2;
    let intent = stage
        .until("app", "generation 2 is observed", changed)
        .await;
    assert_eq!(
        intent["status"]["template"]["metadata"]["labels"]["app"],
        "other"
    );
}

#[tokio::test]
async fn what_is_reconciled_again_without_a_change_asks_for_nothing() {
    let mut stage = open().await;
    applied(&stage, "app").await;
    assert_eq!(stage.traffic_of_reconciles("app", 3).await, NOTHING);
    let before = stage.requests();
    restart(&mut stage, &[]);
    stage.reconcile("app").await;
    assert_eq!(stage.requests(), before);
}

#[tokio::test]
async fn a_service_account_that_is_missing_is_told_and_its_creation_is_noticed() {
    let stage = open().await;
    applied(&stage, "app").await;
    stage
        .edit_owner("app", json!({"spec": {"serviceAccountName": "late"}}))
        .await;
    let message = r#"failed to authenticate: serviceaccounts "late" not found"#;
    let intent = fails(&stage, "app", "ImageResolutionFailed", message).await;
    assert_eq!(intent["status"]["observedGeneration"], 2);
    assert!(
        intent["status"]["template"].is_object(),
        "the last good template stays"
    );
    stage.idle().await;
    let place = stage.place_in_the_log();
    stage
        .apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: late}}")
        .await;
    applied(&stage, "app").await;
    stage.was_woken_since(place, "app").await;
}
