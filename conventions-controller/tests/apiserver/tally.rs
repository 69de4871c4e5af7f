//! The ConfigMap of counts.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::PATIENCE;

use crate::stage::{INTENT, Intents, applied, intent, set, start};

const NAME: &str = "controller-manager-metrics-data";

async fn until_it_says(stage: &Intents, data: Value) {
    eventually(&format!("it says {data}"), PATIENCE, async || {
        let found = stage.get("v1", "ConfigMap", NAME).await;
        let seen = found.map_or(Value::Null, |config| config["data"].clone());
        if seen == data { Ok(()) } else { Err(seen) }
    })
    .await;
}

#[tokio::test]
async fn counts_are_kept_as_they_should_be_whoever_changes_them() {
    let mut stage = set().await;
    let own = format!("--own-namespace={}", stage.namespace);
    start(&mut stage, &["--metrics-configmap", &own]);
    let one = json!({"podintents_count": "1", "podintents_ready_true_count": "1", "clusterpodconventions_names": ""});
    stage.apply(INTENT).await;
    applied(&stage, "app").await;
    until_it_says(&stage, one.clone()).await;
    let forged = json!({"data": {"podintents_count": "7", "more": "x"}});
    stage.edit("v1", "ConfigMap", NAME, forged).await;
    until_it_says(&stage, one.clone()).await;
    stage.delete("v1", "ConfigMap", NAME).await;
    until_it_says(&stage, one).await;
    stage
        .apply(&intent("late", "web").replace(r#""sa""#, r#""nobody""#))
        .await;
    until_it_says(
        &stage,
        json!({"podintents_count": "2", "podintents_ready_true_count": "1",
            "podintents_ready_false_count": "1", "clusterpodconventions_names": ""}),
    )
    .await;
}

#[tokio::test]
async fn what_only_a_status_says_is_counted() {
    let mut stage = set().await;
    let own = format!("--own-namespace={}", stage.namespace);
    start(&mut stage, &["--metrics-configmap", &own]);
    stage.apply(INTENT).await;
    applied(&stage, "app").await;
    let of = |ready: &str| {
        let ready = format!("podintents_ready_{ready}_count");
        json!({"podintents_count": "1", ready: "1", "clusterpodconventions_names": ""})
    };
    until_it_says(&stage, of("true")).await;
    stage.delete("v1", "ServiceAccount", "sa").await;
    until_it_says(&stage, of("false")).await;
}

#[tokio::test]
async fn no_kind_that_a_tenant_invents_keeps_the_counts_from_being_written() {
    let mut stage = set().await;
    let own = format!("--own-namespace={}", stage.namespace);
    start(&mut stage, &["--metrics-configmap", &own]);
    stage.apply(INTENT).await;
    let owner =
        json!({"apiVersion": "v1", "kind": "a b", "name": "x", "uid": "1", "controller": true});
    let forged = json!({"metadata": {"ownerReferences": [owner]}});
    stage
        .edit("conventions.carto.run/v1alpha1", "PodIntent", "app", forged)
        .await;
    until_it_says(
        &stage,
        json!({"podintents_count": "1", "podintents_ready_true_count": "1",
            "podintents_owner_other_count": "1", "clusterpodconventions_names": ""}),
    )
    .await;
}
