//! Helm changes the release while users work, and removes it in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{anyhow, bail, ensure};
use e2e::AdmissionLoad;
use e2e::example::NAMESPACE;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use test_support::{CONTROLLERS_NAMESPACE, all_objects, eventually, objects_in};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::cluster::{deployments, every_replica_is_ready, of_ours};
use super::{Installed, LIMIT};

/// Workloads that are changed in turn.
const WORKLOADS: usize = 10;
/// Between two changes.
const PAUSE: Duration = Duration::from_millis(100);

/// An upgrade with other values, and the way back, while Workloads change all the time: no admission fails, each Workload
/// ends as it was changed last, and the example goes on.
pub(super) async fn lose_nothing(installed: &Installed<'_>) -> anyhow::Result<()> {
    let control_plane = &installed.stack.control_plane;
    control_plane.apply_yaml(&chain()).await?;
    let changes = Changes::begin(installed)?;
    let load = AdmissionLoad::begin(control_plane)?;
    let mut other = installed.release.values().clone();
    for controller in ["supplychain", "delivery", "runnable", "conventions"] {
        let values = &mut other[format!("{controller}-controller")];
        values["logLevel"] = json!("debug");
    }
    installed.release.upgrade(&other)?;
    log_level_is(installed, "debug").await?;
    installed.a_commit_arrives("Hallo").await?;
    installed.release.rollback()?;
    log_level_is(installed, "info").await?;
    every_replica_is_ready(installed.stack).await?;
    installed.a_commit_arrives("Hej").await?;
    load.end()?;
    changes.end(installed).await
}

/// Each Workload is changed in turn, and the number of the change goes to a ConfigMap of it.
struct Changes {
    made: Arc<AtomicUsize>,
    making: JoinSet<anyhow::Error>,
}

impl Changes {
    fn begin(installed: &Installed<'_>) -> anyhow::Result<Self> {
        let made = Arc::new(AtomicUsize::new(0));
        let mut making = JoinSet::new();
        // Without retries, as one who types kubectl has none.
        let client = Client::try_from(installed.stack.control_plane.config()?)?;
        making.spawn(change(workloads_by(&client), made.clone()));
        Ok(Self { made, making })
    }

    /// Stops, and waits until each Workload's ConfigMap has its last change.
    async fn end(mut self, installed: &Installed<'_>) -> anyhow::Result<()> {
        if let Some(why) = self.making.try_join_next() {
            bail!("{:#}", why?);
        }
        self.making.shutdown().await;
        let made = self.made.load(Ordering::SeqCst);
        ensure!(made > 10 * WORKLOADS, "only {made} changes were made");
        let client = installed.stack.control_plane.client()?;
        let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        let workloads = workloads(installed)?;
        eventually("each Workload's last change arrived", LIMIT, async || {
            for number in 0..WORKLOADS {
                let name = name(number);
                let wanted = workloads.get(&name).await?.data["spec"]["image"].take();
                let data = maps.get(&name).await?.data.unwrap_or_default();
                let arrived = data.get("change").map(String::as_str);
                ensure!(wanted.as_str() == arrived, "{name}: {arrived:?}, {wanted}");
            }
            anyhow::Ok(())
        })
        .await;
        Ok(())
    }
}

fn workloads(installed: &Installed<'_>) -> anyhow::Result<Api<DynamicObject>> {
    Ok(workloads_by(&installed.stack.control_plane.client()?))
}

fn workloads_by(client: &Client) -> Api<DynamicObject> {
    objects_in(client, NAMESPACE, "carto.run/v1alpha1", "Workload")
}

fn name(number: usize) -> String {
    format!("changed-{number}")
}

/// Makes changes until one is refused; returns why.
async fn change(workloads: Api<DynamicObject>, made: Arc<AtomicUsize>) -> anyhow::Error {
    let as_developer = PatchParams::apply("developer");
    loop {
        let number = made.fetch_add(1, Ordering::SeqCst);
        let name = name(number % WORKLOADS);
        let workload = json!({
            "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
            "metadata": {"name": name, "labels": {"type": "changed"}},
            "spec": {"serviceAccountName": "changed", "image": number.to_string()},
        });
        let change = Patch::Apply(&workload);
        if let Err(error) = workloads.patch(&name, &as_developer, &change).await {
            return anyhow!("change {number} is refused: {error}");
        }
        sleep(PAUSE).await;
    }
}

async fn log_level_is(installed: &Installed<'_>, level: &str) -> anyhow::Result<()> {
    let client = installed.stack.control_plane.client()?;
    let deployments: Api<Deployment> = Api::namespaced(client, CONTROLLERS_NAMESPACE);
    let found = serde_json::to_value(deployments.get("supplychain-controller").await?)?;
    let variables = found["spec"]["template"]["spec"]["containers"][0]["env"].to_string();
    ensure!(variables.contains(&format!("\"{level}\"")), "{variables}");
    Ok(())
}

/// Controllers, rights and webhooks go; kinds, owners and what was stamped stay, and can be changed.
pub(super) async fn an_uninstall_leaves_what_users_made(
    installed: &Installed<'_>,
) -> anyhow::Result<()> {
    let control_plane = &installed.stack.control_plane;
    let client = control_plane.client()?;
    installed.release.uninstall()?;
    let left = deployments(installed.stack).await?;
    ensure!(left.is_empty(), "{left:#?}");
    for kind in [
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
    ] {
        let all = all_objects(&client, "admissionregistration.k8s.io/v1", kind);
        let left = all.list(&of_ours()).await?.items.pop();
        if let Some(left) = left {
            bail!("{kind} {:?} is left", left.metadata.name);
        }
    }
    let maps: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
    for number in 0..WORKLOADS {
        maps.get(&name(number)).await?;
    }
    // No webhook that is gone is asked.
    control_plane.apply_yaml(&chain()).await?;
    let owners = workloads(installed)?.list(&ListParams::default()).await?;
    ensure!(owners.items.len() >= WORKLOADS, "{:#?}", owners.items);
    Ok(())
}

/// A chain of one step.
fn chain() -> String {
    format!(
        r#"
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {{name: changed}}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: $(workload.metadata.name)$}}
    data: {{change: $(workload.spec.image)$}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {{name: changed}}
spec:
  selector: {{type: changed}}
  resources:
  - name: change
    templateRef: {{kind: ClusterTemplate, name: changed}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {{name: changed, namespace: {NAMESPACE}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: changed, namespace: {NAMESPACE}}}
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, create, patch, delete]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: changed, namespace: {NAMESPACE}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: changed}}
subjects: [{{kind: ServiceAccount, name: changed, namespace: {NAMESPACE}}}]
"#
    )
}
