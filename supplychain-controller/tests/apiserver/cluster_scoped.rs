//! Stamped objects of cluster-scoped kinds (docs/adr/0014).

use kube::api::Api;
use kube::core::DynamicObject;
use serde_json::Value;
use test_support::{all_objects, eventually};

use crate::stage::{NOTHING, PATIENCE, Stage};
use crate::unchanged::blueprint_of;

pub(crate) const CLASS: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: $(workload.metadata.namespace)$-$(workload.metadata.name)$}
value: 7
";

const SMALL: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$-small}
";

fn classes(stage: &Stage) -> Api<DynamicObject> {
    all_objects(&stage.client, "scheduling.k8s.io/v1", "PriorityClass")
}

pub(crate) async fn class(stage: &Stage) -> Option<Value> {
    let name = format!("{}-app", stage.namespace);
    let found = classes(stage).get_opt(&name).await.unwrap()?;
    Some(serde_json::to_value(found).unwrap())
}

pub(crate) async fn is_gone(stage: &Stage) {
    eventually("the object is deleted", PATIENCE, async || {
        class(stage).await.is_none()
    })
    .await;
}

/// The service account may make such objects.
pub(crate) async fn grant_classes(stage: &Stage) {
    let namespace = &stage.namespace;
    stage
        .apply(&format!(
            r"
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: classes}}
rules: [{{apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [get, list, create, patch, delete]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: classes}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: classes}}
subjects: [{{kind: ServiceAccount, name: sa, namespace: {namespace}}}]
"
        ))
        .await;
    stage
        .until_may("delete", "scheduling.k8s.io", "priorityclasses", true)
        .await;
}

/// The owner has one.
async fn with_a_class(templates: &[(&str, &str)]) -> Stage {
    let stage = Stage::open().await;
    grant_classes(&stage).await;
    stage.apply(&blueprint_of(templates)).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    stage
}

#[tokio::test]
async fn a_cluster_scoped_object_says_whose_it_is_and_goes_with_its_owner() {
    let stage = with_a_class(&[("class", CLASS)]).await;
    let made = class(&stage).await.unwrap();
    assert_eq!(made["metadata"]["ownerReferences"], Value::Null);
    let uid = stage.workload("app").await["metadata"]["uid"].clone();
    let owner = format!("Workload/{}/app/{}", stage.namespace, uid.as_str().unwrap());
    assert_eq!(made["metadata"]["annotations"]["carto.run/owner"], *owner);
    assert_eq!(
        made["metadata"]["annotations"]["carto.run/service-account"],
        format!("{}/sa", stage.namespace)
    );
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    is_gone(&stage).await;
}

#[tokio::test]
async fn what_an_owner_left_behind_that_went_while_nobody_looked_is_deleted_after_the_restart() {
    let mut stage = with_a_class(&[("class", CLASS)]).await;
    stage.kill_controller();
    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    assert!(class(&stage).await.is_some());
    stage.start_controller();
    is_gone(&stage).await;
}

#[tokio::test]
async fn the_cluster_scoped_object_of_a_step_that_is_gone_is_deleted() {
    let stage = with_a_class(&[("class", CLASS), ("small", SMALL)]).await;
    stage.apply(&blueprint_of(&[("small", SMALL)])).await;
    is_gone(&stage).await;
    stage.ready("app", "True", "Ready").await;
}

#[tokio::test]
async fn the_next_owner_of_the_name_goes_on_with_the_object() {
    let mut stage = with_a_class(&[("class", CLASS)]).await;
    let before = class(&stage).await.unwrap();
    stage.kill_controller();
    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    let after = class(&stage).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    let uid = stage.workload("app").await["metadata"]["uid"].clone();
    let owner = after["metadata"]["annotations"]["carto.run/owner"].as_str();
    assert!(owner.unwrap().ends_with(uid.as_str().unwrap()));
}
