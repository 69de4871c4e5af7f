//! Events about statuses.

use std::time::Duration;

use controller_kit::scheduler::Next;
use test_support::eventually;

use super::{Scene, refusal, written};

#[tokio::test]
async fn a_status_that_the_api_server_refuses_is_told_by_an_event_and_one_that_it_takes_by_another()
{
    let intent = super::intent();
    for (code, reason, type_, message) in [
        (
            422,
            "StatusUpdateFailed",
            "Warning",
            "Failed to update status: ",
        ),
        (200, "StatusUpdated", "Normal", "Updated status"),
    ] {
        let stored = intent.clone();
        let scene = Scene::new(move |_, _, patch| match code {
            200 => (code, written(&stored, &patch)),
            code => refusal(code, "it is not as it must be"),
        });
        scene.shows_intent(&intent).await;
        scene.shows_account().await;
        let reconciled = scene.reconcile().await;
        assert_eq!(reconciled.next == Next::Backoff, code == 422);
        let limit = Duration::from_mins(1);
        let event = eventually("it is told", limit, async || scene.events().pop()).await;
        assert_eq!([&event["reason"], &event["type"]], [reason, type_]);
        let told = event["message"].as_str().unwrap();
        assert!(told.starts_with(message), "{told}");
        let is_refused = told.contains("it is not as it must be");
        assert_eq!(is_refused, code == 422, "{told}");
        let about = &event["involvedObject"];
        assert_eq!(
            [
                &about["kind"],
                &about["namespace"],
                &about["name"],
                &about["uid"]
            ],
            ["PodIntent", "dev", "app", "u"]
        );
        assert_eq!(scene.events().len(), 1, "{:?}", scene.events());
    }
}

/// Nobody can do anything about it, and it passes.
#[tokio::test]
async fn trouble_of_the_api_server_is_no_event() {
    let mut tries = 0;
    let scene = Scene::new(move |_, _, patch| {
        tries += 1;
        match tries {
            1..=3 => refusal(503, "not now"),
            _ => (200, written(&super::intent(), &patch)),
        }
    });
    scene.shows_intent(&super::intent()).await;
    scene.shows_account().await;
    for end in [
        "infrastructure",
        "infrastructure",
        "infrastructure",
        "settled",
    ] {
        assert_eq!(scene.reconcile().await.outcome(), end);
    }
    let limit = Duration::from_mins(1);
    // Events leave in their order: what was told before would be there before.
    let event = eventually("it is told", limit, async || scene.events().pop()).await;
    assert_eq!(event["reason"], "StatusUpdated");
    assert_eq!(scene.events().len(), 1, "{:?}", scene.events());
}
