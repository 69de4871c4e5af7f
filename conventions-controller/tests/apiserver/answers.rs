//! Webhooks that answer otherwise than they are to: late, with garbage, with too much, from another
//! place.

use std::time::Duration;

use serde_json::{Value, json};
use test_support::stage::condition;

use crate::stage::{INTENT, Intents, applied, open_with};
use crate::webhook::{Does, Webhook};

/// Waits until Ready is False because of the webhook, with this in its message.
async fn told(stage: &Intents, text: &str) {
    let what = format!("it is told: {text}");
    stage
        .until("app", &what, |intent| {
            let ready = condition(&intent["status"], "Ready");
            let message = ready["message"].as_str().unwrap_or_default();
            message.starts_with("failed to apply convention with name odd: ")
                && message.contains(text)
        })
        .await;
}

#[tokio::test]
async fn a_webhook_that_wants_to_be_left_alone_is_and_then_asked_by_itself() {
    // More than the budget of a call.
    let (stage, webhook) = open_with("odd", Does::Throttles(35), &[]).await;
    stage.apply(INTENT).await;
    told(&stage, "status 429: too much").await;
    webhook.does(Does::AddsEnv("A", "b"));
    applied(&stage, "app").await;
    let times = webhook.times();
    let left_alone = times[1] - times[0];
    assert!(left_alone >= Duration::from_secs(35), "{left_alone:?}");
    assert_eq!(times.len(), 2);
}

#[tokio::test]
async fn garbage_too_much_and_a_redirect_that_loses_the_request_are_told_until_they_are_mended() {
    let garbage = Does::Answers(200, "<html>".to_owned());
    let (stage, webhook) = open_with("odd", garbage, &[]).await;
    stage.apply(INTENT).await;
    told(&stage, "calling http").await;
    let annotation = "x".repeat(5 << 20);
    let large = json!({"status": {"template": {
        "metadata": {"annotations": {"a": annotation}}, "spec": {"containers": [{"name": "web"}]}}}});
    webhook.does(Does::Answers(200, large.to_string()));
    stage
        .until("app", "five megabytes are told", |intent| {
            let ready = condition(&intent["status"], "Ready");
            let message = ready["message"].as_str().unwrap_or_default();
            ready["reason"] == "TemplateNotStorable"
                && message.contains("odd answered with a template that cannot be stored")
        })
        .await;
    webhook.does(Does::Answers(200, " ".repeat(9 << 20)));
    told(&stage, "8388608").await;
    let other = Webhook::start(Does::AddsEnv("A", "b")).await;
    webhook.does(Does::Leads(302, other.url.clone()));
    told(&stage, "status 302").await;
    webhook.does(Does::Leads(307, other.url.clone()));
    let intent = applied(&stage, "app").await;
    let env = &intent["status"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(env[0]["name"], "A", "{env}");
    let last = other.last();
    assert_eq!(last["metadata"]["name"], Value::from("app-odd"));
}
