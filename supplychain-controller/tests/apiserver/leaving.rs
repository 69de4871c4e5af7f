//! A namespace that is being deleted, with everything in it.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DeleteParams;
use test_support::eventually;

use crate::chain::{CHAIN, WORKLOAD};
use crate::stage::{PATIENCE, Stage};

/// Waits until the controller has found so often that the namespace goes.
async fn left_alone(stage: &Stage, times: usize) {
    eventually("the workload is left alone", PATIENCE, async || {
        stage
            .log()
            .matches("its namespace is being deleted")
            .count()
            >= times
    })
    .await;
    stage.idle().await;
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

    let namespaces: Api<Namespace> = Api::all(stage.client.clone());
    namespaces
        .delete(&stage.namespace, &DeleteParams::default())
        .await
        .unwrap();
    stage.delete("v1", "ConfigMap", "app-sink").await;
    left_alone(&stage, 1).await;
    assert_eq!(stage.owner("app").await["status"], before);

    stage.delete("v1", "ServiceAccount", "default").await;
    left_alone(&stage, 2).await;
    assert_eq!(stage.owner("app").await["status"], before);
}
