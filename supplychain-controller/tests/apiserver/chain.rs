//! The worked examples (docs/behaviour/examples.md#smallest-chain,
//! docs/behaviour/examples.md#late-output), end to end.

use serde_json::json;
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage, condition};

pub(crate) use test_support::worked_example::{CHAIN, WORKLOAD, strip_times};
use test_support::worked_example::{Words, settled, tells_of_another_source};

const WORDS: Words = Words {
    reference: "supplyChainRef",
    kind: "ClusterSupplyChain",
    name: "chain",
    ready: "SupplyChainReady",
};

#[tokio::test]
async fn the_smallest_chain_settles_as_the_worked_example_says() {
    let stage = Stage::open().await;
    stage.apply(CHAIN).await;
    stage.apply(WORKLOAD).await;
    let mut status = stage.ready("app", "True", "Ready").await["status"].clone();
    strip_times(&mut status);
    let namespace = &stage.namespace;
    assert_eq!(status, settled(WORDS, namespace, &status));
    let labels = stage
        .get("test.run/v1alpha1", "Test", "app-src")
        .await
        .unwrap()["metadata"]["labels"]
        .clone();
    assert_eq!(
        labels,
        json!({
            "carto.run/workload-name": "app", "carto.run/workload-namespace": namespace, "carto.run/supply-chain-name": "chain",
            "carto.run/resource-name": "fetch", "carto.run/template-kind": "ClusterSourceTemplate",
            "carto.run/cluster-template-name": "src", "carto.run/template-lifecycle": "mutable",
        })
    );
}

#[tokio::test]
async fn a_settled_workload_causes_no_request_when_it_is_reconciled_again() {
    let stage = Stage::open().await;
    stage.apply(CHAIN).await;
    stage.apply(WORKLOAD).await;
    let settled = stage.ready("app", "True", "Ready").await;
    // Each is waited for: the controller says that it has reconciled the version with the touch in it.
    assert_eq!(stage.traffic_of_reconciles("app", 10).await, NOTHING);
    assert_eq!(stage.workload("app").await["status"], settled["status"]);
}

#[tokio::test]
async fn events_say_what_happened_in_upstreams_words() {
    let stage = Stage::open().await;
    stage.apply(CHAIN).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    tells_of_another_source(&stage, "Workload").await;
}

#[tokio::test]
async fn a_path_that_cannot_be_read_yet_is_waited_for() {
    let stage = Stage::open().await;
    stage
        .apply(&CHAIN.replace("revisionPath: .spec.value.rev", "revisionPath: .status.rev"))
        .await;
    stage.apply(WORKLOAD).await;
    let waiting = stage.ready("app", "Unknown", "MissingValueAtPath").await;
    let message = format!(
        "waiting to read value [.status.rev] from object [tests.test.run/app-src] in namespace [{}]",
        stage.namespace
    );
    assert_eq!(condition(&waiting["status"], "Ready")["message"], message);
    let publish = &waiting["status"]["resources"][1];
    assert_eq!(
        condition(publish, "ResourceSubmitted")["message"],
        "unable to stamp object for resource [publish] for template [ClusterTemplate/sink] in supply chain [chain]: \
         failed to recursively evaluate template: failed to interpolate template at path [data.url]: \
         evaluate tag $(source.url)$: jsonpath returned empty list: source.url"
    );
    assert_eq!(stage.get("v1", "ConfigMap", "app-sink").await, None);

    stage.settle("app").await;
    let before = stage.place_in_the_log();
    stage.report("app-src", json!({"rev": "abc"})).await;
    stage.ready("app", "True", "Ready").await;
    stage.was_woken_since(before, "app").await;
    eventually("the sink is stamped", PATIENCE, async || {
        stage.get("v1", "ConfigMap", "app-sink").await
    })
    .await;
}
