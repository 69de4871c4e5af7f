//! A pod is created whatever is wrong with presets and with who serves them.

use std::process::Command;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::json;
use test_support::stage::PATIENCE;
use test_support::{BlackHole, eventually};

use super::stage::{open, pod, set_pods};
use crate::stage::set;

/// Pods that are created in each part, how far one is behind the one before, and how many may be
/// under way.
const PODS: usize = 300;
const APART: Duration = Duration::from_millis(10);
const AT_ONCE: usize = 200;

#[tokio::test]
async fn pods_are_created_while_who_serves_presets_dies() {
    let mut pods = open().await;
    let spec =
        json!({"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": "b"}]});
    pods.preset("env", spec).await;
    pods.until_marked("env", &pod("a", json!({"a": "b"}))).await;
    let mut marked = [0; 3];
    for (part, marked) in marked.iter_mut().enumerate() {
        if part == 2 {
            pods.kill_controller();
            pods.start_by(None, &[]).await;
            pods.until_marked("env", &pod("a", json!({"a": "b"}))).await;
        }
        // A hundred in a second, whatever becomes of those before.
        let started = tokio::time::Instant::now();
        let create = |number: usize| {
            let pod = pod(&format!("a{part}-{number}"), json!({"a": "b"}));
            let pods = &pods;
            let due = started + APART * u32::try_from(number).unwrap();
            async move {
                tokio::time::sleep_until(due).await;
                pods.create_pod(pod).await.marker("env").is_some()
            }
        };
        let mut all = futures::stream::iter(0..PODS)
            .map(create)
            .buffer_unordered(AT_ONCE);
        let mut created = 0;
        while let Some(is_marked) = all.next().await {
            *marked += usize::from(is_marked);
            created += 1;
            // In the second part it dies in the midst of them.
            if part == 1 && created == PODS / 3 {
                kill(pods.controller_pid());
            }
        }
        assert_eq!(created, PODS);
    }
    let [before, amidst, after] = marked;
    // On a machine that does other things as well an answer may come too late for a pod.
    let most = PODS * 9 / 10;
    assert!(before > most && after > most, "{marked:?} got the preset");
    assert!(amidst > 0 && amidst < PODS, "{amidst} got the preset");
    assert_eq!(pods.all("v1", "Pod").await.len(), 3 * PODS);
}

/// kill -9, while pods are being created by whoever holds the stage.
fn kill(process: u32) {
    let killed = Command::new("kill")
        .args(["-9", &process.to_string()])
        .status();
    assert!(killed.unwrap().success());
}

#[tokio::test]
async fn an_api_server_that_hangs_delays_no_pod() {
    let mut pods = set_pods(set().await);
    let hole = BlackHole::before(&pods.plane).await.unwrap();
    pods.start_by(Some(hole.kubeconfig()), &[]).await;
    let spec =
        json!({"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A", "value": "b"}]});
    pods.preset("env", spec).await;
    pods.until_marked("env", &pod("a", json!({"a": "b"}))).await;
    hole.close();
    let mut conflicting = pod("a", json!({"a": "b"}));
    conflicting["spec"]["containers"][0]["env"] = json!([{"name": "A", "value": "c"}]);
    for number in 0..30 {
        conflicting["metadata"]["name"] = json!(format!("a{number}"));
        let created = pods.create_pod(conflicting.clone()).await;
        assert_eq!(created.warnings.len(), 1, "{created:?}");
    }
    // Each would have waited for its events for longer than the API server waits for the webhook;
    // then nobody would have been warned.
    hole.open();
    let told = async || pods.events().await.iter().any(|it| it.contains("conflict"));
    eventually("the conflicts are told", PATIENCE, async || {
        if told().await { Ok(()) } else { Err("not yet") }
    })
    .await;
}
