//! Retries, reruns, and inputs that change while a run is going.

use serde_json::json;
use test_support::Stage;
use test_support::stage::NOTHING;

use crate::stage::{CAST, TEMPLATE, end, open, revision, runnable, runs, says};

#[tokio::test]
async fn a_failed_run_is_tried_again_until_the_attempts_are_used_up() {
    let mut stage = open("  retry: {maxAttempts: 3, backoff: 100ms}").await;
    for count in 1..=3 {
        let newest = runs(&stage, count).await.pop().unwrap();
        if count == 2 {
            // Which attempt it is, is known by the run alone.
            stage.kill_controller();
            stage.start_controller();
        }
        end(&stage, &newest, "False", "x").await;
    }
    let failed = stage.ready("app", "False", "SucceededCondition").await;
    assert_eq!(failed["status"]["runs"].as_array().unwrap().len(), 3);
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    runs(&stage, 3).await;
}

#[tokio::test]
async fn a_request_for_a_rerun_starts_one_run() {
    let stage = open("").await;
    runs(&stage, 1).await;
    let annotation =
        |value: &str| json!({"metadata": {"annotations": {"carto.run/rerun-requested-at": value}}});
    stage.edit_owner("app", annotation("2026-01-01")).await;
    runs(&stage, 2).await;
    stage
        .until("app", "the request is noted", |runnable| {
            runnable["status"]["lastRerunRequestedAt"] == "2026-01-01"
        })
        .await;
    let without = json!({"metadata": {"annotations": {"carto.run/rerun-requested-at": null}}});
    stage.edit_owner("app", without).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    runs(&stage, 2).await;
}

#[tokio::test]
async fn queued_inputs_wait_for_the_going_run_and_the_newest_win() {
    let stage = open("  concurrency: Queue").await;
    let first = runs(&stage, 1).await.remove(0);
    stage.edit_owner("app", revision("b")).await;
    says(&stage, "WaitingForRun", &format!("[{first}]")).await;
    stage.edit_owner("app", revision("c")).await;
    stage.reconcile("app").await;
    runs(&stage, 1).await;
    end(&stage, &first, "True", "x").await;
    let second = runs(&stage, 2).await.pop().unwrap();
    let second = stage
        .get("test.run/v1alpha1", "Test", &second)
        .await
        .unwrap();
    assert_eq!(second["spec"]["value"]["revision"], "c");
}

#[tokio::test]
async fn a_replaced_run_is_gone_before_the_new_one_starts() {
    let stage = open("  concurrency: Replace").await;
    let first = runs(&stage, 1).await.remove(0);
    let held = json!({"metadata": {"finalizers": ["test.run/hold"]}});
    stage.edit("test.run/v1alpha1", "Test", &first, held).await;
    stage.edit_owner("app", revision("b")).await;
    says(&stage, "WaitingForRun", &format!("[{first}]")).await;
    stage.reconcile("app").await;
    let only = runs(&stage, 1).await;
    let only = stage
        .get("test.run/v1alpha1", "Test", &only[0])
        .await
        .unwrap();
    assert!(only["metadata"]["deletionTimestamp"].is_string());
    let released = json!({"metadata": {"finalizers": null}});
    stage
        .edit("test.run/v1alpha1", "Test", &first, released)
        .await;
    stage
        .until("app", "the new run", |runnable| {
            let name = &runnable["status"]["stampedRef"]["name"];
            name.is_string() && *name != first
        })
        .await;
    assert_ne!(runs(&stage, 1).await, [first]);
}

#[tokio::test]
async fn a_template_wakes_only_the_runnables_that_name_it() {
    const STRANGERS: u8 = 20;
    let stage = Stage::open(CAST).await;
    let other = |manifest: &str| manifest.replace("name: tests}", "name: other}");
    stage.apply(&other(TEMPLATE)).await;
    let strangers: Vec<String> = (0..STRANGERS)
        .map(|number| other(&runnable(&format!("stranger{number}"), "")))
        .collect();
    stage.apply(&strangers.join("---\n")).await;
    stage.apply(&runnable("app", "")).await;
    for number in 0..STRANGERS {
        let stranger = format!("stranger{number}");
        stage.ready(&stranger, "Unknown", "Unknown").await;
    }
    stage.ready("app", "False", "RunTemplateNotFound").await;
    stage.idle().await;
    let reconciles = async || {
        let of_kind = ["kind=\"Runnable\""];
        let counted = stage.metric("carto_reconcile_total", &of_kind).await;
        counted.unwrap()
    };
    let before = reconciles().await;
    stage.apply(TEMPLATE).await;
    runs(&stage, usize::from(STRANGERS) + 1).await;
    stage.idle().await;
    let of_one = reconciles().await - before;
    assert!(
        of_one < f64::from(STRANGERS),
        "{of_one} reconciles for one Runnable"
    );
}
