//! Events on PodIntents.

use serde_json::json;
use test_support::eventually;
use test_support::stage::{PATIENCE, condition};

use crate::stage::{INTENT, Intents, applied, open, set, start};
use crate::webhook::{Does, Webhook};

const UPDATED: &str = "Normal StatusUpdated: Updated status";

/// Waits until so many of the events say this, and no more come with what follows.
async fn told(stage: &Intents, event: &str, times: usize) {
    let what = format!("told {times} times: {event}");
    eventually(&what, PATIENCE, async || {
        let mut events = stage.events().await;
        events.retain(|it| it == event);
        if events.len() >= times {
            Ok(())
        } else {
            Err(events)
        }
    })
    .await;
}

fn status_writes(stage: &Intents) -> usize {
    let requests = stage.requests();
    let writes = requests.iter().filter(|it| it.starts_with("patch "));
    writes.filter(|it| it.contains("/status")).count()
}

#[tokio::test]
async fn each_write_of_a_status_is_told_by_one_event_and_nothing_else_is() {
    let stage = open().await;
    applied(&stage, "app").await;
    told(&stage, UPDATED, 1).await;
    // A look that finds nothing new tells nothing.
    stage.reconcile("app").await;
    for generation in 2..=3 {
        let label = json!({"metadata": {"labels": {"app": format!("of-{generation}")}}});
        stage
            .edit_owner("app", json!({"spec": {"template": label}}))
            .await;
        let observed = |intent: &serde_json::Value| {
            intent["status"]["observedGeneration"].as_i64() == Some(generation)
        };
        let what = format!("generation {generation} is observed");
        stage.until("app", &what, observed).await;
    }
    stage.idle().await;
    told(&stage, UPDATED, 3).await;
    assert_eq!(stage.events().await, [UPDATED; 3]);
    assert_eq!(status_writes(&stage), 3);
}

#[tokio::test]
async fn a_convention_that_never_settles_is_told_once_by_an_event() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::Random).await;
    let convention = webhook.convention("random", json!({}), json!({}));
    stage.apply(&convention).await;
    start(&mut stage, &["--resync-seconds=1"]);
    stage.apply(INTENT).await;
    let changed = |intent: &serde_json::Value, times: i64| {
        let changes = intent["status"]["conventions"][0]["changes"].as_i64();
        changes.unwrap_or_default() >= times
    };
    let intent = stage
        .until("app", "it does not settle", |it| changed(it, 3))
        .await;
    let settled = condition(&intent["status"], "ConventionsSettled");
    let message = settled["message"].as_str().unwrap();
    let unstable = format!("Warning ConventionUnstable: {message}");
    told(&stage, &unstable, 1).await;
    // It goes on like that, and is told no more.
    stage
        .until("app", "it still does not", |it| changed(it, 4))
        .await;
    let events = stage.events().await;
    let warnings = events.iter().filter(|it| it.starts_with("Warning"));
    assert_eq!(warnings.collect::<Vec<_>>(), [&unstable]);
    let of = stage.all("v1", "Event").await;
    let of = of.iter().map(|event| &event["involvedObject"]);
    assert!(of.clone().all(|it| it["uid"] == intent["metadata"]["uid"]));
    assert!(of.clone().all(|it| it["kind"] == "PodIntent"));
}
