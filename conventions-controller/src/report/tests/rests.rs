//! When a PodIntent is looked at again that nothing has changed of.

use std::ops::Range;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Next, ObjectKey, Scene, intent, written};

/// The flag of the scene; a wait is a fifth less or more.
const EVERY: u64 = 100;

/// A webhook, and the convention that calls it.
async fn convention() -> (JoinSet<()>, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let labels = json!({"labels": {"a": "b"}});
    let template = json!({"metadata": labels, "spec": {"containers": [{"name": "web"}]}});
    let answer = json!({"status": {"template": template, "appliedConventions": []}});
    let router = Router::new().route("/", post(move || async move { axum::Json(answer) }));
    let mut serving = JoinSet::new();
    serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    let convention = json!({
        "metadata": {"name": "c", "uid": "c", "generation": 1},
        "spec": {"webhook": {"clientConfig": {"url": url}}},
    });
    (serving, convention)
}

/// How long it rests after a pass that made another template of the same inputs for this time in a
/// row.
async fn rest_after(changes: i64) -> Duration {
    let scene = Scene::new(|_, _, patch| (200, written(&intent(), &patch)));
    let (_serving, convention) = convention().await;
    Scene::shows(&scene.controller.stores.conventions, &[convention]).await;
    scene.shows_intent(&intent()).await;
    scene.shows_account().await;
    assert_eq!(scene.reconcile().await.outcome(), "settled");
    let mut before = intent();
    before["status"] = scene.statuses().pop().unwrap();
    before["metadata"]["resourceVersion"] = "20".into();
    let told = &mut before["status"]["conventions"][0];
    assert_eq!(told["matched"], true);
    told["changes"] = (changes - 1).into();
    told["outputDigest"] = "of another template".into();
    scene.shows_intent(&before).await;
    // It becomes due. Only then does time stand still: the webhook is a real one.
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(2 * EVERY)).await;
    tokio::time::resume();
    let next = scene.reconcile().await.next;
    let after = scene.statuses().pop().unwrap();
    assert_eq!(after["conventions"][0]["changes"], changes);
    match next {
        Next::After(rest) => rest,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_convention_that_never_settles_is_asked_ever_more_rarely() {
    for (changes, times) in [(2, 1), (3, 2), (5, 8), (50, 8)] {
        let rest = rest_after(changes).await.as_secs();
        // What the test itself takes is some seconds at the most.
        let about: Range<u64> = (times * EVERY * 4 / 5 - 15)..(times * EVERY * 6 / 5);
        assert!(about.contains(&rest), "{changes} changes: {rest} s");
    }
}

#[tokio::test]
async fn a_podintent_on_its_way_out_is_left_alone() {
    let scene = Scene::new(|_, _, patch| (200, written(&intent(), &patch)));
    let mut leaving = intent();
    leaving["metadata"]["resourceVersion"] = "9".into();
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    leaving["metadata"]["finalizers"] = json!(["somebody.example/waits"]);
    // Nothing would be written if it was as it should be.
    assert_eq!(leaving.get("status"), None);
    scene.shows_intent(&leaving).await;
    scene.shows_account().await;
    let reconciled = scene.reconcile().await;
    assert_eq!(reconciled.next, Next::Done);
    assert_eq!(scene.statuses(), Vec::<Value>::new());
    let key = ObjectKey::new("dev", "app");
    assert!(!scene.controller.resync.is_due(&key));
    // That of one that stays is written.
    scene.shows_intent(&intent()).await;
    assert_eq!(scene.reconcile().await.outcome(), "settled");
    assert_eq!(scene.statuses().len(), 1);
}
