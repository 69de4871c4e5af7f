//! The smallest delivery, end to end: its exact status, labels, rights and events.

use serde_json::json;
use test_support::eventually;
use test_support::worked_example::{
    CHAIN, Words, for_delivery, settled, strip_times, tells_of_another_source,
};

use crate::stage::{DELIVERABLE, PATIENCE, delivery, open, sunk};

const WORDS: Words = Words {
    reference: "deliveryRef",
    kind: "ClusterDelivery",
    name: "delivery",
    ready: "DeliveryReady",
};

pub(crate) fn smallest() -> String {
    // What the sinks of all tests here hold.
    for_delivery(CHAIN).replace("data: {url:", "data: {value:")
}

#[tokio::test]
async fn the_smallest_delivery_settles_with_the_words_of_deliveries() {
    let stage = open().await;
    stage.apply(&smallest()).await;
    stage.apply(DELIVERABLE).await;
    let mut status = stage.ready("app", "True", "Ready").await["status"].clone();
    strip_times(&mut status);
    let namespace = &stage.namespace;
    assert_eq!(status, settled(WORDS, namespace, &status));
    let stamped = stage
        .get("test.run/v1alpha1", "Test", "app-src")
        .await
        .unwrap();
    assert_eq!(
        stamped["metadata"]["labels"],
        json!({
            "carto.run/deliverable-name": "app", "carto.run/deliverable-namespace": namespace, "carto.run/delivery-name": "delivery",
            "carto.run/resource-name": "fetch", "carto.run/template-kind": "ClusterSourceTemplate",
            "carto.run/cluster-template-name": "src", "carto.run/template-lifecycle": "mutable",
        })
    );
    let owner = &stamped["metadata"]["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["name"]),
        (&json!("Deliverable"), &json!("app"))
    );
}

#[tokio::test]
async fn objects_are_written_with_the_rights_of_the_deliverables_service_account() {
    let stage = open().await;
    stage.apply(&smallest()).await;
    stage.apply(DELIVERABLE).await;
    stage.ready("app", "True", "Ready").await;
    stage.idle().await;
    let requests = stage.audited();
    let mut writers: Vec<&str> = requests
        .iter()
        .filter(|event| event.is_write())
        .filter(|event| {
            let object = event.object_ref.as_ref();
            object.is_some_and(|object| ["tests", "configmaps"].contains(&object.resource.as_str()))
        })
        .map(|event| event.user.username.as_str())
        .collect();
    writers.dedup();
    let account = format!("system:serviceaccount:{}:sa", stage.namespace);
    assert_eq!(writers, [account]);

    stage
        .edit_owner("app", json!({"spec": {"serviceAccountName": "nobody"}}))
        .await;
    let namespace = &stage.namespace;
    let refused = stage.ready("app", "False", "ServiceAccountError").await;
    let message = refused["status"]["conditions"][1]["message"]
        .as_str()
        .unwrap();
    let expected =
        format!("failed to get service account object from api server [{namespace}/nobody]");
    assert!(message.starts_with(&expected), "{message}");
    stage
        .edit_owner("app", json!({"spec": {"serviceAccountName": "sa"}}))
        .await;
    stage.ready("app", "True", "Ready").await;
}

#[tokio::test]
async fn events_are_of_the_component_deliverable() {
    let stage = open().await;
    stage.apply(&smallest()).await;
    stage.apply(DELIVERABLE).await;
    stage.ready("app", "True", "Ready").await;
    tells_of_another_source(&stage, "Deliverable").await;
}

#[tokio::test]
async fn what_no_step_stands_for_any_more_is_deleted() {
    let stage = open().await;
    stage.apply(&smallest()).await;
    stage.apply(DELIVERABLE).await;
    stage.ready("app", "True", "Ready").await;
    sunk(&stage, "app", "https://git.example/app").await;
    let only_source =
        delivery("    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}");
    stage.apply(&only_source).await;
    eventually("the sink is gone", PATIENCE, async || {
        stage.get("v1", "ConfigMap", "app-sink").await.is_none()
    })
    .await;
    assert_eq!(
        stage.tests().await.len(),
        1,
        "the other step's object stays"
    );
    stage
        .until("app", "its status has one step", |owner| {
            let entries = owner["status"]["resources"].as_array();
            entries.is_some_and(|entries| entries.len() == 1)
        })
        .await;
    stage.ready("app", "True", "Ready").await;
}
