//! A read that the controller makes before it writes, and that nobody answers: it is given up after a minute, nobody else
//! waits for it meanwhile, and nothing is written that it was to decide.

use std::collections::BTreeSet;
use std::sync::Mutex;

use http::Method;
use http::request::Parts;
use serde_json::json;
use test_support::stage::forged_copy;
use test_support::{LossyProxy, eventually};

use crate::immutable::{WORKLOAD, branch, instant, sink_of};
use crate::stage::{NOTHING, PATIENCE, Stage};

/// Has the first request of each of these kinds hang: the read of the owner before a run, and that of an object that is
/// there before it is taken over.
fn first_reads() -> impl Fn(&Parts, &[u8]) -> bool + Send + Sync + 'static {
    let held = Mutex::new(BTreeSet::new());
    move |parts, _| {
        let query = parts.uri.query().unwrap_or_default();
        let read = if parts.method != Method::GET {
            return false;
        } else if query.starts_with("fieldSelector=metadata.name") {
            "owner"
        } else if parts.uri.path().ends_with("/configmaps/taken-sink") {
            "object"
        } else {
            return false;
        };
        held.lock().unwrap().insert(read)
    }
}

#[tokio::test]
async fn reads_that_nobody_answers_are_given_up_and_hold_up_nobody_else() {
    let mut stage = Stage::set().await;
    let network = LossyProxy::holding(&stage.plane, first_reads())
        .await
        .unwrap();
    stage.start_controller_as(network.kubeconfig());
    stage.apply(&instant(3)).await;
    stage.apply(WORKLOAD).await;
    sink_of(&stage, "app", "a").await;
    stage.settle("app").await;

    // Somebody's copy says that a newer state of the owner is known: the API server is asked before the next run.
    let tenant = stage.tenant().await;
    let run = stage.tests().await.remove(0);
    tenant.create(forged_copy(&run, "forged")).await.unwrap();
    stage.edit_workload("app", branch("b")).await;
    // What a person made stands in the place of what the chain stamps for the second owner.
    let by_hand = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"k": "v"},
        "metadata": {"name": "taken-sink", "namespace": stage.namespace},
    });
    tenant.create(by_hand.clone()).await.unwrap();
    stage
        .apply(&WORKLOAD.replace("name: app", "name: taken"))
        .await;
    eventually("both reads hang", PATIENCE, async || {
        (network.lost().len() == 2).then_some(())
    })
    .await;

    stage
        .apply(&WORKLOAD.replace("name: app", "name: neighbour"))
        .await;
    sink_of(&stage, "neighbour", "a").await;
    let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
    assert_eq!(sink["data"]["url"], "a", "the reads still hang");
    let taken = stage.get("v1", "ConfigMap", "taken-sink").await.unwrap();
    assert_eq!(taken["data"], by_hand["data"]);

    sink_of(&stage, "app", "b").await;
    stage.ready("taken", "False", "ObjectContested").await;
    let taken = stage.get("v1", "ConfigMap", "taken-sink").await.unwrap();
    assert_eq!(taken["data"], by_hand["data"]);
    assert_eq!(network.lost().len(), 2);
    let runs = stage.tests().await;
    let of_b = runs
        .iter()
        .filter(|run| run["spec"]["value"]["branch"] == "b");
    assert_eq!(of_b.count(), 1);
    for owner in ["app", "taken"] {
        stage.settle(owner).await;
    }
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}
