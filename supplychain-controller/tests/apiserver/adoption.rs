//! Objects that are there and that somebody else made (docs/adr/0014).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{NOTHING, PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;
use test_support::eventually;

const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$-settings}
data: {a: rendered}
";

/// Made by hand.
const BY_HAND: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: app-settings, finalizers: [example.com/mine]}
data: {k: v}
";

async fn settings(stage: &Stage) -> Value {
    stage.get("v1", "ConfigMap", "app-settings").await.unwrap()
}

#[tokio::test]
async fn what_somebody_made_by_hand_is_left_alone_and_is_not_deleted_with_the_owner() {
    let stage = Stage::open().await;
    let tenant = stage.tenant().await;
    stage.apply(BY_HAND).await;
    let before = settings(&stage).await;
    stage.apply(&blueprint_of(&[("settings", SETTINGS)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    let contested = stage.ready("app", "False", "ObjectContested").await;
    let namespace = &stage.namespace;
    assert_eq!(
        condition(&contested["status"], "ObjectContested")["message"],
        format!(
            "unable to apply object [{namespace}/app-settings] for resource [settings] in supply chain [chain]: object \
             [{namespace}/app-settings] is there and was not made for this workload, so it is left alone; to take it over, \
             annotate it with carto.run/adopt: \"true\" or set spec.adopt in the template to true; otherwise rename it in \
             the template"
        )
    );
    assert_eq!(settings(&stage).await, before);
    stage.settle("app").await;
    assert_eq!(settings(&stage).await, before);

    // A label of the owner and one of the step would say that it is ours; one alone does not.
    let half = json!({"metadata": {"labels": {"carto.run/workload-name": "app"}}});
    tenant
        .patch("v1", "ConfigMap", "app-settings", half)
        .await
        .unwrap();
    stage.reconcile("app").await;
    stage.ready("app", "False", "ObjectContested").await;

    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    stage.idle().await;
    let left = settings(&stage).await;
    assert_eq!(left["metadata"]["ownerReferences"], Value::Null);
    assert_eq!(left["metadata"]["deletionTimestamp"], Value::Null);
    assert_eq!(left["data"], json!({"k": "v"}));
}

/// It is not in the watch of ConfigMaps, which shows what has our label.
#[tokio::test]
async fn an_owner_goes_on_at_once_when_what_somebody_made_by_hand_goes_or_is_given_up() {
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("settings", SETTINGS)])).await;
    for (owner, is_given_up) in [("gone", false), ("given-up", true)] {
        let name = format!("{owner}-settings");
        let by_hand = BY_HAND.replace("app-settings, finalizers: [example.com/mine]", &name);
        stage.apply(&by_hand).await;
        let workload = crate::chain::WORKLOAD.replace("name: app", &format!("name: {owner}"));
        stage.apply(&workload).await;
        stage.ready(owner, "False", "ObjectContested").await;
        // From here on it would be looked at again after half a minute.
        stage.reconcile(owner).await;
        let freed = Instant::now();
        if is_given_up {
            let allowed = json!({"metadata": {"annotations": {"carto.run/adopt": "true"}}});
            stage.edit("v1", "ConfigMap", &name, allowed).await;
        } else {
            stage.delete("v1", "ConfigMap", &name).await;
        }
        stage.ready(owner, "True", "Ready").await;
        assert!(
            freed.elapsed() < Duration::from_secs(25),
            "{owner}: {:?}",
            freed.elapsed()
        );
    }
}

#[tokio::test]
async fn an_annotation_has_it_taken_over_and_an_event_tells() {
    let stage = Stage::open().await;
    stage.apply(BY_HAND).await;
    stage.apply(&blueprint_of(&[("settings", SETTINGS)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "False", "ObjectContested").await;
    let allowed = json!({"metadata": {"annotations": {"carto.run/adopt": "true"}}});
    stage.edit("v1", "ConfigMap", "app-settings", allowed).await;
    stage.reconcile("app").await;
    let ready = stage.ready("app", "True", "Ready").await;
    assert_eq!(condition(&ready["status"], "ObjectContested"), Value::Null);
    let adopted = settings(&stage).await;
    assert_eq!(adopted["data"], json!({"k": "v", "a": "rendered"}));
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["name"], "app");
    let expected = format!(
        "Normal ObjectAdopted: [settings] took over configmaps [{}/app-settings], which somebody else made; it is deleted with \
         the workload",
        stage.namespace
    );
    eventually("an event tells", PATIENCE, async || {
        let events = stage.events().await;
        events
            .contains(&expected)
            .then_some(())
            .ok_or(events)
            .map(Some)
    })
    .await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn the_template_may_allow_it_too() {
    let stage = Stage::open().await;
    stage.apply(BY_HAND).await;
    let blueprint = blueprint_of(&[("settings", SETTINGS)]);
    stage
        .apply(&blueprint.replacen("spec:\n", "spec:\n  adopt: true\n", 1))
        .await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(
        settings(&stage).await["data"],
        json!({"k": "v", "a": "rendered"})
    );
}

#[tokio::test]
async fn an_object_that_was_restored_from_a_backup_is_known_by_its_labels() {
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("settings", SETTINGS)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let made = settings(&stage).await;
    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    stage.delete("v1", "ConfigMap", "app-settings").await;
    stage.idle().await;

    // Restored as it was, with the uid of the owner that was.
    let mut restored = made.clone();
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
    ] {
        restored["metadata"].as_object_mut().unwrap().remove(field);
    }
    restored["data"]["a"] = json!("of the backup");
    let restored = stage.create_as("velero", restored).await;
    let stale = &made["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(restored["metadata"]["ownerReferences"][0]["uid"], *stale);
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let adopted = settings(&stage).await;
    assert_eq!(adopted["metadata"]["uid"], restored["metadata"]["uid"]);
    assert_eq!(adopted["data"], json!({"a": "rendered"}));
    let references = adopted["metadata"]["ownerReferences"].as_array().unwrap();
    assert_eq!(references.len(), 1);
    assert_eq!(
        references[0]["uid"],
        stage.workload("app").await["metadata"]["uid"]
    );
}
