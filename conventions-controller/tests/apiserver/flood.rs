//! Many PodIntents at once: each is one call and one write, and nothing more.

use serde_json::json;
use test_support::eventually;
use test_support::stage::{NOTHING, PATIENCE};

use crate::stage::{intent, restart, set, start};
use crate::webhook::{Does, Webhook};

const MANY: usize = 300;

#[tokio::test]
async fn a_flood_of_podintents_is_one_call_and_one_write_for_each() {
    let mut stage = set().await;
    let webhook = Webhook::start(Does::AddsEnv("A", "b")).await;
    stage
        .apply(&webhook.convention("add-env", json!({}), json!({})))
        .await;
    let all: Vec<String> = (0..MANY)
        .map(|index| intent(&format!("app{index}"), "web"))
        .collect();
    stage.apply(&all.join("\n---\n")).await;
    start(&mut stage, &[]);
    eventually("all are decorated", PATIENCE, async || {
        let ready = stage.metric("carto_owners", &[r#"ready="True""#]).await;
        if ready == Some(300.0) {
            Ok(())
        } else {
            Err(ready)
        }
    })
    .await;
    stage.idle().await;
    assert_eq!(webhook.asked().len(), MANY);
    let writes = stage.requests();
    assert_eq!(writes.len(), MANY, "{writes:?}");
    assert!(
        writes
            .iter()
            .all(|it| it.starts_with("patch ") && it.contains("/status"))
    );

    restart(&mut stage, &[]);
    stage.reconcile("app0").await;
    assert_eq!(webhook.asked().len(), MANY);
    assert_eq!(stage.requests()[MANY..], NOTHING);
}
