//! The selected object (spec 5.3, #996).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::Stage;

use crate::stage::{CAST, TEMPLATE, runnable, runs, says};

const NOTHING: [String; 0] = [];

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
            && !it.request_uri.contains("limit=")
    });
    reads.count()
}

#[tokio::test]
async fn the_selected_object_wakes_the_runnable() {
    let stage = stage().await;
    let none = "unable to resolve selector [map[pipeline:unit]], apiVersion [v1], kind [ConfigMap]: selector did not \
                match any objects";
    says(&stage, "TemplateStampFailure", none).await;
    // Nobody touches the Runnable from here on; looking every 30 s would take 90 s for what follows.
    let since = Instant::now();
    stage.apply(&selectable("one", "first")).await;
    runs(&stage, 1).await;
    stage.apply(&selectable("one", "second")).await;
    runs(&stage, 2).await;
    let images = images(&stage).await;
    assert!(images.contains(&json!("first")) && images.contains(&json!("second")));
    stage.apply(&selectable("two", "third")).await;
    says(
        &stage,
        "TemplateStampFailure",
        "selector matched multiple objects",
    )
    .await;
    stage.delete("v1", "ConfigMap", "two").await;
    stage.ready("app", "Unknown", "Unknown").await;
    runs(&stage, 2).await;
    assert!(since.elapsed() < Duration::from_secs(75));
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
    let message = "failed to list objects in namespace matching selector [map[pipeline:unit]]: secrets is forbidden";
    says(&stage, "TemplateStampFailure", message).await;
}
