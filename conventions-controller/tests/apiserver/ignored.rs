//! Conventions that may be left out.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{PATIENCE, condition};

use crate::stage::{INTENT, Intents, applied, env, receipts, set, start};
use crate::webhook::{Does, Webhook};

/// Waits until an event tells that the convention failed, in these words.
async fn told(stage: &Intents, words: &str) {
    eventually("an event tells of it", PATIENCE, async || {
        let events = stage.events().await;
        let beginning = format!("Warning ConventionIgnored: {words}: ");
        if events.iter().any(|event| event.starts_with(&beginning)) {
            Ok(())
        } else {
            Err(events)
        }
    })
    .await;
}

fn error(intent: &Value) -> &str {
    let told = &intent["status"]["conventions"][0];
    told["error"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_failure_that_is_ignored_is_visible_and_tried_again() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::Answers(500, "no".to_owned())).await;
    let ignore = json!({"failurePolicy": "Ignore"});
    stage
        .apply(&webhook.convention("broken", json!({}), ignore))
        .await;
    let good = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&good.convention("good", json!({}), json!({})))
        .await;
    start(&mut stage, &[]);
    stage.apply(INTENT).await;
    let intent = applied(&stage, "app").await;
    assert_eq!(receipts(&intent), "good/add-A");
    let failed = "failed to apply convention with name broken: ";
    assert!(error(&intent).starts_with(failed), "{intent}");
    told(&stage, "went on without convention broken").await;
    webhook.does(Does::AddsEnv("C", "d"));
    stage
        .until("app", "both are applied", |intent| {
            receipts(intent) == "broken/add-C\ngood/add-A"
        })
        .await;
}

#[tokio::test]
async fn what_a_convention_made_stays_while_it_is_down_and_nobody_else_is_asked_meanwhile() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    let ignore = json!({"failurePolicy": "Ignore"});
    stage
        .apply(&webhook.convention("a-first", json!({}), ignore))
        .await;
    let behind = Webhook::start(Does::AddsEnv("C", "d")).await;
    stage
        .apply(&behind.convention("b-behind", json!({}), json!({})))
        .await;
    start(&mut stage, &["--resync-seconds=1"]);
    stage.apply(INTENT).await;
    assert_eq!(env(&applied(&stage, "app").await), ["A=b", "C=d"]);

    webhook.does(Does::Answers(503, "not now".to_owned()));
    let what = "it is told that the first one failed";
    let intent = stage.until("app", what, |it| !error(it).is_empty()).await;
    let asked = behind.asked().len();
    assert_eq!(
        env(&intent),
        ["A=b", "C=d"],
        "nobody wants another template"
    );
    assert_eq!(receipts(&intent), "a-first/add-A\nb-behind/add-C");
    assert_eq!(condition(&intent["status"], "Ready")["status"], "True");
    assert_eq!(intent["status"]["inputsDigest"], Value::Null);
    assert!(intent["status"]["templateInputsDigest"].is_string());
    let receipts_told = &intent["status"]["conventions"][0]["receipts"];
    assert_eq!(receipts_told, &json!(["add-A"]));
    told(
        &stage,
        "kept the template that was made with convention a-first",
    )
    .await;
    let failed = webhook.asked().len();
    eventually("it is tried again", PATIENCE, async || {
        webhook.asked().len() >= failed + 3
    })
    .await;
    assert_eq!(behind.asked().len(), asked, "nothing is asked for");

    // Somebody wants another template, and does not wait.
    let label = json!({"spec": {"template": {"metadata": {"labels": {"new": "yes"}}}}});
    stage.edit_owner("app", label).await;
    let is_new = |it: &Value| it["status"]["template"]["metadata"]["labels"]["new"] == "yes";
    let intent = stage.until("app", "it is decorated anew", is_new).await;
    assert_eq!(env(&intent), ["C=d"]);
    assert_eq!(intent["status"]["templateInputsDigest"], Value::Null);
    let (asked, failed) = (behind.asked().len(), webhook.asked().len());
    eventually("it is tried again", PATIENCE, async || {
        webhook.asked().len() >= failed + 3
    })
    .await;
    assert_eq!(behind.asked().len(), asked, "it has answered already");
    webhook.does(Does::AddsEnv("A", "b"));
    let is_whole = |it: &Value| env(it) == ["A=b", "C=d"] && is_new(it);
    stage.until("app", "both are applied", is_whole).await;
}
