//! Why Pods do not do what a test waits for: what the cluster and the node say of them.

use std::fmt::Write as _;
use std::fs;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Api;
use kube::api::ListParams;
use test_support::{ControlPlane, Node};

/// Lines of the kubelet's log.
const TAIL: usize = 40;

/// The Pods of a namespace with the states of their containers, its events, and the end of the kubelet's log.
///
/// # Errors
///
/// When the API server does not answer.
pub async fn tell(
    control_plane: &ControlPlane,
    node: &Node,
    namespace: &str,
) -> anyhow::Result<String> {
    let client = control_plane.client()?;
    let mut told = String::new();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for pod in pods.list(&ListParams::default()).await? {
        let status = pod.status.unwrap_or_default();
        let name = pod.metadata.name.unwrap_or_default();
        let states = status.container_statuses.into_iter().flatten();
        let states: Vec<_> = states.map(|it| (it.name, it.state)).collect();
        writeln!(
            told,
            "Pod {name}: {:?} {:?} {states:?}",
            status.phase, status.conditions
        )?;
    }
    let events: Api<Event> = Api::namespaced(client, namespace);
    for event in events.list(&ListParams::default()).await? {
        let (kind, name) = (event.involved_object.kind, event.involved_object.name);
        writeln!(
            told,
            "Event of {} {}: {} {}",
            kind.unwrap_or_default(),
            name.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default()
        )?;
    }
    let log = fs::read_to_string(node.folder().join("log/kubelet.log"))?;
    let lines: Vec<_> = log.lines().collect();
    let end = &lines[lines.len().saturating_sub(TAIL)..];
    writeln!(told, "The kubelet:\n{}", end.join("\n"))?;
    Ok(told)
}
