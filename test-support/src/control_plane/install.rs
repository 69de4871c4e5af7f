//! The controllers as users install them.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;

use super::{ControlPlane, service_account};
use crate::manifests::{as_yaml, documents};

/// Where the controllers live, each with a service account of its name.
pub const CONTROLLERS_NAMESPACE: &str = "carto-system";

/// What is applied to a cluster to install them, below the root of the repository.
pub const MANIFESTS: [&str; 2] = [STAMPING, CONVENTIONS];
const STAMPING: &str = "deploy/install.yaml";
const CONVENTIONS: &str = "deploy/conventions/install.yaml";
/// What is applied besides to have pod presets served, and the configurations of webhooks in it.
const PRESETS: &str = "deploy/conventions/pod-presets.yaml";
/// The name of these configurations.
pub const PRESET_WEBHOOKS: &str = "carto-pod-presets";
const CONTROLLERS: [&str; 3] = [
    "supplychain-controller",
    "delivery-controller",
    "runnable-controller",
];
/// Only makes sense inside a cluster: here a controller runs beside it, and the API server reaches no Service.
const INSIDE: [&str; 4] = [
    "Deployment",
    "Service",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

impl ControlPlane {
    /// What `kubectl apply -f deploy/install.yaml` does, but for what only makes sense inside a cluster. Then it waits until
    /// all rights are in force. The CRDs are there already.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn install_controllers(&self) -> anyhow::Result<()> {
        self.install(STAMPING).await?;
        for controller in CONTROLLERS {
            self.rights_are_in_force(controller).await;
            // The kinds to watch are summed up by the controller manager.
            if self.has_controller_manager() {
                let user = service_account(CONTROLLERS_NAMESPACE, controller);
                self.until_it_may(&user, "watch configmaps").await;
            }
        }
        Ok(())
    }

    /// The same for `deploy/conventions/install.yaml`.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn install_conventions(&self) -> anyhow::Result<()> {
        self.install(CONVENTIONS).await?;
        self.rights_are_in_force("conventions-controller").await;
        Ok(())
    }

    /// What is needed besides to serve pod presets.
    ///
    /// # Errors
    ///
    /// When the API server refuses a manifest.
    pub async fn install_presets(&self) -> anyhow::Result<()> {
        self.install(PRESETS).await?;
        let user = service_account(CONTROLLERS_NAMESPACE, "conventions-controller");
        self.until_it_may(&user, "watch podpresets.settings.carto.run")
            .await;
        Ok(())
    }

    /// Has the API server ask whoever serves pod presets at this port of this machine; see
    /// [`Self::register_webhooks`].
    ///
    /// # Errors
    ///
    /// When it is refused, or the controller writes no authority in time.
    pub async fn register_preset_webhooks(
        &self,
        port: u16,
        timeout_seconds: u8,
        limit: Duration,
    ) -> anyhow::Result<()> {
        for object in read(PRESETS)? {
            if object["metadata"]["name"] == PRESET_WEBHOOKS && object["webhooks"].is_array() {
                let registered = self.register_webhooks(object, port, timeout_seconds, limit);
                registered.await?;
            }
        }
        Ok(())
    }

    async fn install(&self, manifest: &str) -> anyhow::Result<()> {
        let mut documents = read(manifest)?;
        documents.retain(|document| !INSIDE.iter().any(|kind| document["kind"] == *kind));
        let applied = self.apply_yaml(&as_yaml(&documents)).await;
        applied.with_context(|| manifest.to_owned()).map(drop)
    }

    /// A right is in force later than the API server answers who granted it, and a controller that asks earlier is refused
    /// once.
    async fn rights_are_in_force(&self, controller: &str) {
        let user = service_account(CONTROLLERS_NAMESPACE, controller);
        let lease = format!(
            "update leases.coordination.k8s.io in {CONTROLLERS_NAMESPACE} named {controller}"
        );
        for right in ["watch serviceaccounts", &lease] {
            self.until_it_may(&user, right).await;
        }
    }
}

/// The objects of a manifest, which is named from the root of the repository.
fn read(manifest: &str) -> anyhow::Result<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join(manifest));
    documents(&text.with_context(|| manifest.to_owned())?)
}
