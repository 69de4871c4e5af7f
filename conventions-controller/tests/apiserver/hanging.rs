//! Webhooks that hang: whom they hold up, and whom not.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{NOTHING, PATIENCE, condition};

use crate::stage::{Intents, applied, intent, set, start};
use crate::webhook::{Does, Webhook};

/// Whether it stands in its status that nobody answered.
fn is_told(intent: &Value) -> bool {
    let ready = condition(&intent["status"], "Ready");
    let message = ready["message"].as_str().unwrap_or_default();
    ready["status"] == "False" && message.contains("within ")
}

/// PodIntents with these names and the label `app: slow`, all at once.
async fn apply_slow(stage: &Intents, count: usize) {
    let slow: Vec<String> = (0..count)
        .map(|index| intent(&format!("slow{index}"), "slow"))
        .collect();
    stage.apply(&slow.join("\n---\n")).await;
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_only_those_it_is_for() {
    let mut stage = set().await;
    let hanging = Webhook::start(Does::Hangs).await;
    let of_slow = json!({"selectors": [{"matchLabels": {"app": "slow"}}]});
    stage
        .apply(&hanging.convention("hangs", of_slow, json!({"timeoutSeconds": 2})))
        .await;
    start(&mut stage, &["--max-concurrent-podintents=4"]);
    for index in 0..12 {
        stage.apply(&intent(&format!("slow{index}"), "slow")).await;
    }
    let others = stage.plane.create_namespace("others").await.unwrap();
    stage.grant_account(&others).await;
    let ours = std::mem::replace(&mut stage.stage.namespace, others);
    stage.apply(&intent("fine", "fine")).await;
    applied(&stage, "fine").await;
    stage.stage.namespace = ours;
    let late = stage.until("slow0", "it is told that nobody answers", |intent| {
        let ready = condition(&intent["status"], "Ready");
        ready["message"]
            .as_str()
            .unwrap_or_default()
            .contains("within 2s")
    });
    late.await;
    hanging.does(Does::AddsEnv("A", "b"));
    for index in 0..12 {
        applied(&stage, &format!("slow{index}")).await;
    }
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_nobody_else_of_the_same_namespace() {
    let mut stage = set().await;
    let hanging = Webhook::start(Does::Hangs).await;
    let of_slow = json!({"selectors": [{"matchLabels": {"app": "slow"}}]});
    let webhook = json!({"timeoutSeconds": 3});
    stage
        .apply(&hanging.convention("hangs", of_slow, webhook))
        .await;
    start(&mut stage, &["--max-concurrent-podintents=4"]);
    apply_slow(&stage, 60).await;
    stage.apply(&intent("fine", "fine")).await;
    applied(&stage, "fine").await;
    // One behind the other it would have had its turn when nearly all had been asked for.
    let asked = hanging.asked().len();
    assert!(asked < 30, "{asked} calls");
    eventually("several are told", PATIENCE, async || {
        let all = stage
            .all("conventions.carto.run/v1alpha1", "PodIntent")
            .await;
        let told = all.iter().filter(|it| is_told(it)).count();
        if told >= 3 { Ok(()) } else { Err(told) }
    })
    .await;
    // Nothing is said of whoever was put off.
    let all = stage
        .all("conventions.carto.run/v1alpha1", "PodIntent")
        .await;
    let silent = all.iter().filter(|it| it["status"].is_null()).count();
    assert!(silent > 30, "{silent} have no status");
    hanging.does(Does::AddsEnv("A", "b"));
    for index in 0..60 {
        applied(&stage, &format!("slow{index}")).await;
    }
}

#[tokio::test]
async fn a_namespace_whose_calls_all_hang_has_nobody_elsewhere_told_so() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::HangsFor("slow")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({"timeoutSeconds": 1})))
        .await;
    start(&mut stage, &[]);
    let others = stage.plane.create_namespace("others").await.unwrap();
    stage.grant_account(&others).await;
    let hostile = std::mem::replace(&mut stage.stage.namespace, others.clone());
    stage.apply(&intent("fine", "fine")).await;
    applied(&stage, "fine").await;
    stage.stage.namespace = hostile;
    apply_slow(&stage, 30).await;
    for round in 1..=3 {
        eventually("more calls have hung", PATIENCE, async || {
            let asked = webhook.asked();
            let slow = asked.iter().filter(|it| it.starts_with("slow")).count();
            if slow >= 5 * round { Ok(()) } else { Err(slow) }
        })
        .await;
        stage.stage.namespace.clone_from(&others);
        stage.apply(&intent("fine", &format!("fine{round}"))).await;
        let is_decorated = |intent: &Value| {
            let labels = &intent["status"]["template"]["metadata"]["labels"];
            labels["app"] == format!("fine{round}")
        };
        stage
            .until("fine", "it is decorated anew", is_decorated)
            .await;
        let new = format!("new{round}");
        stage.apply(&intent(&new, "new")).await;
        applied(&stage, &new).await;
    }
    let log = stage.log();
    let told = log
        .lines()
        .filter(|it| it.contains("not ready") && it.contains(&others));
    assert_eq!(told.map(str::to_owned).collect::<Vec<_>>(), NOTHING);
}
