//! What is looked at and changed in the cluster, whoever asks.

use std::collections::BTreeSet;

use anyhow::ensure;
use e2e::PathStack;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Secret};
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use test_support::{CONTROLLERS_NAMESPACE, eventually};

use super::LIMIT;

/// Four controllers, two Pods each.
const PODS: usize = 8;

/// Without retries: an eviction that is refused is an answer.
pub(super) fn pods(stack: &PathStack) -> anyhow::Result<Api<Pod>> {
    let client = Client::try_from(stack.control_plane.config()?)?;
    Ok(Api::namespaced(client, CONTROLLERS_NAMESPACE))
}

pub(super) fn secrets(stack: &PathStack) -> anyhow::Result<Api<Secret>> {
    Ok(Api::namespaced(
        stack.control_plane.client()?,
        CONTROLLERS_NAMESPACE,
    ))
}

/// All replicas of all controllers are ready, in a namespace that admits restricted Pods only.
pub(super) async fn every_replica_is_ready(stack: &PathStack) -> anyhow::Result<()> {
    let namespaces: Api<Namespace> = Api::all(stack.control_plane.client()?);
    let labels = namespaces.get(CONTROLLERS_NAMESPACE).await?.metadata.labels;
    let enforced = labels.and_then(|mut all| all.remove("pod-security.kubernetes.io/enforce"));
    ensure!(enforced.as_deref() == Some("restricted"), "{enforced:?}");
    let pods = pods(stack)?;
    eventually("every replica is ready", LIMIT, async || {
        let ready = ready(&pods).await?;
        ensure!(ready.len() == PODS, "{ready:#?}");
        anyhow::Ok(())
    })
    .await;
    Ok(())
}

/// What is of our charts.
pub(super) fn of_ours() -> ListParams {
    ListParams::default().labels("app.kubernetes.io/part-of=carto")
}

/// The Deployments of our charts.
pub(super) async fn deployments(stack: &PathStack) -> anyhow::Result<Vec<Deployment>> {
    let client = stack.control_plane.client()?;
    let deployments: Api<Deployment> = Api::namespaced(client, CONTROLLERS_NAMESPACE);
    Ok(deployments.list(&of_ours()).await?.items)
}

/// The names of the controllers' Pods that are ready and not about to go.
pub(super) async fn ready(pods: &Api<Pod>) -> anyhow::Result<BTreeSet<String>> {
    let all = pods.list(&of_ours()).await?.items.into_iter();
    let ready = all.filter(|pod| {
        let status = pod.status.as_ref();
        let mut conditions = status
            .into_iter()
            .flat_map(|it| it.conditions.iter().flatten());
        pod.metadata.deletion_timestamp.is_none()
            && conditions.any(|it| it.type_ == "Ready" && it.status == "True")
    });
    Ok(ready.filter_map(|pod| pod.metadata.name).collect())
}

/// Lets the scheduler use the only node, or not.
pub(super) async fn cordon(stack: &PathStack, unschedulable: bool) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(stack.control_plane.client()?);
    let spec = json!({"spec": {"unschedulable": unschedulable}});
    for node in nodes.list(&ListParams::default()).await? {
        let name = node.metadata.name.unwrap_or_default();
        nodes
            .patch(&name, &PatchParams::default(), &Patch::Merge(&spec))
            .await?;
    }
    Ok(())
}
