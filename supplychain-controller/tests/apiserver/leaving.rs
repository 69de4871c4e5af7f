//! A namespace that is being deleted, with everything in it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};
use test_support::eventually;

use crate::chain::{CHAIN, WORKLOAD};
use crate::stage::{NOTHING, PATIENCE, Stage};

/// Waits until the controller has found that the namespace goes, when it was about to say this.
async fn left_alone(stage: &Stage, reason: &str) {
    let is_of = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        let message = line["message"].as_str().unwrap_or_default();
        message.starts_with("its namespace is being deleted") && line["reason"] == reason
    };
    eventually("the workload is left alone", PATIENCE, async || {
        stage.log().lines().any(is_of)
    })
    .await;
    stage.idle().await;
}

async fn delete_namespace(stage: &Stage) {
    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    namespaces
        .delete(&stage.namespace, &DeleteParams::default())
        .await
        .unwrap();
}

/// Its objects, its rights and its account go one after the other, and what is refused for that is no fault of the owner.
/// Nothing deletes what is in the namespace here, so that the test decides in which order it goes.
#[tokio::test]
async fn an_owner_whose_namespace_is_being_deleted_is_left_as_it_is() {
    let stage = Stage::open().await;
    stage.apply(CHAIN).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    let before = stage.owner("app").await["status"].clone();

    delete_namespace(&stage).await;
    stage.delete("v1", "ConfigMap", "app-sink").await;
    left_alone(&stage, "TemplateRejectedByAPIServer").await;
    assert_eq!(stage.owner("app").await["status"], before);

    stage.delete("v1", "ServiceAccount", "sa").await;
    left_alone(&stage, "ServiceAccountError").await;
    assert_eq!(stage.owner("app").await["status"], before);
}

const OWNERS: usize = 50;
/// For each owner: what is stamped is applied twice, an account that is gone is asked for a token, and the API server is asked
/// whether the namespace is going. Something may happen in between.
const REQUESTS_EACH: usize = 8;

/// The owners that were found in a namespace that goes.
fn left(stage: &Stage, namespace: &str) -> BTreeSet<String> {
    let log = stage.log();
    let told = log
        .lines()
        .filter(|line| line.contains("its namespace is being deleted"))
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    told.filter_map(|line| Some(line["span"]["workload"].as_str()?.to_owned()))
        .filter(|owner| owner.starts_with(&format!("{namespace}/")))
        .collect()
}

/// What the controller has asked for in a namespace so far, events and whoever's token it carries among it.
fn asked(stage: &Stage, namespace: &str) -> Vec<String> {
    let mut asked = stage.plane.requests_by("carto-supplychain").unwrap();
    asked.retain(|event| {
        let object = event.object_ref.as_ref();
        object.is_some_and(|object| object.namespace == namespace)
    });
    asked
        .iter()
        .map(|event| format!("{} {}", event.verb, event.request_uri))
        .collect()
}

async fn ready_owners(stage: &Stage, namespace: &str) -> usize {
    let all = stage.all_in(namespace, "carto.run/v1alpha1", "Workload");
    let conditions = all.await.into_iter().flat_map(|owner| {
        let conditions = owner["status"]["conditions"].as_array().cloned();
        conditions.unwrap_or_default()
    });
    conditions
        .filter(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        .count()
}

/// Waits for every event of every owner. They trickle, and the slower the API server is the slower: one that is sent late is
/// not of what happens next.
async fn told_of_all(stage: &Stage) {
    let sentences = |owner: usize| {
        let app = format!("app{owner}");
        [
            format!("Created object [tests.test.run/{app}-src]"),
            format!("[fetch] found healthy status in [tests.test.run/{app}-src] changed to [True]"),
            format!("[fetch] found a new output in [tests.test.run/{app}-src]"),
            format!("Created object [configmaps/{app}-sink]"),
            format!("[publish] found healthy status in [configmaps/{app}-sink] changed to [True]"),
        ]
    };
    let awaited: Vec<String> = (0..OWNERS).flat_map(sentences).collect();
    eventually("every event is sent", PATIENCE, async || {
        let told = stage.events().await.join("\n");
        let missing = awaited.iter().find(|sentence| !told.contains(*sentence));
        missing.map_or(Ok(()), Err)
    })
    .await;
}

/// A finalizer that nobody takes away may hold a namespace for days, with some of its objects in it.
#[tokio::test]
async fn fifty_owners_in_a_namespace_that_cannot_go_come_to_rest() {
    let mut stage = Stage::open().await;
    stage.apply(CHAIN).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let neighbour = stage.namespace.clone();
    stage.move_to_new_namespace().await;
    let going = stage.namespace.clone();
    let all: Vec<String> = (0..OWNERS)
        .map(|number| WORKLOAD.replace("name: app", &format!("name: app{number}")))
        .collect();
    stage.apply(&all.join("---\n")).await;
    eventually("all are Ready", PATIENCE, async || {
        let ready = ready_owners(&stage, &going).await;
        if ready == OWNERS { Ok(()) } else { Err(ready) }
    })
    .await;
    let held = json!({"metadata": {"finalizers": ["test.run/held"]}});
    stage.edit("v1", "ConfigMap", "app0-sink", held).await;
    told_of_all(&stage).await;
    assert_eq!(stage.traffic_of_reconciles("app0", 1).await, NOTHING);

    let before = asked(&stage, &going).len();
    delete_namespace(&stage).await;
    // In the order in which most harm is done: rights and accounts last.
    for (api_version, kind) in [
        ("v1", "ConfigMap"),
        ("test.run/v1alpha1", "Test"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("v1", "ServiceAccount"),
    ] {
        let objects = stage.api(api_version, kind);
        let (by_default, all) = (DeleteParams::default(), ListParams::default());
        objects.delete_collection(&by_default, &all).await.unwrap();
    }
    eventually("all are left alone", PATIENCE, async || {
        let left = left(&stage, &going).len();
        if left == OWNERS { Ok(()) } else { Err(left) }
    })
    .await;
    stage.idle().await;
    let sent = asked(&stage, &going).split_off(before);
    assert!(
        sent.len() <= OWNERS * REQUESTS_EACH,
        "{}: {sent:?}",
        sent.len()
    );
    let events: Vec<&String> = sent
        .iter()
        .filter(|sent| sent.contains("/events"))
        .collect();
    assert_eq!(events, NOTHING.iter().collect::<Vec<_>>());
    assert_eq!(ready_owners(&stage, &going).await, OWNERS);
    let delayed = stage.metric("carto_queue_delayed", &[]).await;
    assert_eq!(delayed, Some(0.0), "nobody waits for another look");

    // While others go on. That the account or its rights are gone may be heard of only now, which is one more look.
    stage.namespace = neighbour;
    eventually("they rest", PATIENCE, async || {
        let rested = asked(&stage, &going).len();
        for _ in 0..10 {
            stage.reconcile("app").await;
        }
        let sent = asked(&stage, &going).split_off(rested);
        if sent.is_empty() { Ok(()) } else { Err(sent) }
    })
    .await;
    let sent = asked(&stage, &going).len() - before;
    assert!(sent <= OWNERS * REQUESTS_EACH, "{sent}");
}
