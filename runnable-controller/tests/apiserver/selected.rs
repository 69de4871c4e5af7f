//! The selected object (docs/behaviour/runnables.md#selector, #996).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::stage::{NOTHING, PATIENCE, condition};
use test_support::{Disturbance, LossyProxy, Stage, eventually};

use crate::stage::{CAST, TEMPLATE, runnable, runs, says};

const SELECTOR: &str = "  selector:
    resource: {apiVersion: v1, kind: ConfigMap}
    matchingLabels: {pipeline: unit}
";

fn selectable(name: &str, data: &str) -> String {
    format!(
        "
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, labels: {{pipeline: unit}}}}
data: {{image: {data}}}
"
    )
}

async fn stage() -> Stage {
    let stage = Stage::open(CAST).await;
    let template = TEMPLATE.replace("runnable.spec.inputs.revision", "selected.data.image");
    stage.apply(&template).await;
    stage.apply(&runnable("app", SELECTOR)).await;
    stage
}

async fn images(stage: &Stage) -> Vec<Value> {
    let runs = stage.tests().await;
    runs.iter()
        .map(|run| run["spec"]["value"]["revision"].clone())
        .collect()
}

/// The selections that were read with the Runnable's rights so far.
fn reads(stage: &Stage) -> usize {
    let requests = stage.plane.requests_by(CAST.user_agent).unwrap();
    let reads = requests.iter().filter(|it| {
        it.verb == "list"
            && it.request_uri.contains("labelSelector=pipeline")
            && it.request_uri.contains("&limit=2")
    });
    reads.count()
}

#[tokio::test]
async fn the_selected_object_wakes_the_runnable() {
    let stage = stage().await;
    let none = "unable to resolve selector [map[pipeline:unit]], apiVersion [v1], kind [ConfigMap]: selector did not \
                match any objects";
    says(&stage, "TemplateStampFailure", none).await;
    // Nobody touches the Runnable from here on; looking every 30 s would take 240 s for what follows.
    let since = Instant::now();
    for number in 1..=6 {
        let image = format!("image{number}");
        stage.apply(&selectable("one", &image)).await;
        runs(&stage, number).await;
        assert!(images(&stage).await.contains(&json!(image)));
    }
    stage.apply(&selectable("two", "third")).await;
    says(
        &stage,
        "TemplateStampFailure",
        "selector matched multiple objects",
    )
    .await;
    stage.delete("v1", "ConfigMap", "two").await;
    stage.ready("app", "Unknown", "Unknown").await;
    runs(&stage, 6).await;
    assert!(since.elapsed() < Duration::from_secs(200));
}

#[tokio::test]
async fn a_selected_object_that_stays_is_read_once() {
    let stage = stage().await;
    stage.apply(&selectable("one", "first")).await;
    runs(&stage, 1).await;
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);
    let before = reads(&stage);
    for _ in 0..3 {
        stage.reconcile("app").await;
    }
    assert_eq!(reads(&stage), before);
    assert!(before > 0);
}

#[tokio::test]
async fn an_object_that_the_runnable_may_not_read_is_not_selected() {
    let stage = stage().await;
    let selector =
        json!({"spec": {"selector": {"resource": {"apiVersion": "v1", "kind": "Secret"}}}});
    stage.edit_owner("app", selector).await;
    let message = "failed to list objects in namespace matching selector [map[pipeline:unit]]: unable to list from api server: \
                   secrets is forbidden";
    says(&stage, "TemplateStampFailure", message).await;
}

/// The API server says each time something else, and status is written once.
#[tokio::test]
async fn a_selection_that_the_machine_prevents_is_told_in_one_way() {
    let mut stage = Stage::set(CAST).await;
    let tried = Arc::<AtomicUsize>::default();
    let count = tried.clone();
    let network = LossyProxy::disturbing(&stage.plane, move |parts| {
        let query = parts.uri.query().unwrap_or_default();
        let is_read = query.contains("labelSelector=pipeline") && query.contains("limit=2");
        let [code, text] = match is_read.then(|| count.fetch_add(1, Ordering::SeqCst))? % 2 {
            0 => [
                "503",
                "the server is currently unable to handle the request",
            ],
            _ => ["504", "the server was unable to return a response in time"],
        };
        Some(Disturbance::Refused {
            code: code.parse().unwrap(),
            retry_after: None,
            text,
        })
    })
    .await
    .unwrap();
    let template = TEMPLATE.replace("runnable.spec.inputs.revision", "selected.data.image");
    stage.apply(&template).await;
    stage.apply(&selectable("one", "first")).await;
    stage.start_controller_as(network.kubeconfig());
    stage.apply(&runnable("app", SELECTOR)).await;
    let told = stage.ready("app", "False", "APIServerUnavailable").await;
    let before = tried.load(Ordering::SeqCst);
    eventually("it is tried again", PATIENCE, async || {
        tried.load(Ordering::SeqCst) >= before + 2
    })
    .await;
    stage.idle().await;
    let version = |it: &Value| it["metadata"]["resourceVersion"].clone();
    assert_eq!(version(&stage.owner("app").await), version(&told));
}

#[tokio::test]
async fn a_selected_kind_that_the_controller_may_not_watch_is_named_until_it_may() {
    let mut stage = Stage::set(CAST).await;
    stage.grant_user_the_least("[runnables/status]").await;
    let runs_only = "[{apiGroups: [test.run], resources: [tests], verbs: [list, watch]}]";
    stage.grant_user("runs", runs_only).await;
    let template = TEMPLATE.replace("runnable.spec.inputs.revision", "selected.data.image");
    stage.apply(&template).await;
    stage.apply(&selectable("one", "first")).await;
    stage.apply(&runnable("app", SELECTOR)).await;
    stage.start_controller_as_user();
    runs(&stage, 1).await;
    let forbidden = |runnable: &Value| {
        let condition = condition(&runnable["status"], "WatchForbidden");
        condition["message"].as_str().map(str::to_owned)
    };
    let named = stage
        .until("app", "the right is named", |it| forbidden(it).is_some())
        .await;
    let message = forbidden(&named).unwrap();
    let said = "[configmaps] is read every 30 s only, because the controller cannot watch it: configmaps is forbidden: \
                User \"carto\" cannot list";
    assert!(message.starts_with(said), "{message}");
    assert!(
        message.ends_with("; grant it the verbs list and watch on configmaps"),
        "{message}"
    );
    eventually("an event says so, too", PATIENCE, async || {
        let events = stage.events().await;
        let told = format!("Warning WatchForbidden: {message}");
        if events.contains(&told) {
            Ok(())
        } else {
            Err(events)
        }
    })
    .await;

    let selected = "[{apiGroups: [''], resources: [configmaps], verbs: [list, watch]}]";
    stage.grant_user("selected", selected).await;
    stage
        .until("app", "nothing is missing", |it| forbidden(it).is_none())
        .await;
    // With the watch, nothing is read that has not changed.
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    runs(&stage, 1).await;
}
