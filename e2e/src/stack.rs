//! Everything a supply chain needs, on this machine.

use anyhow::Context;
use test_support::{ControlPlane, FluxSourceController, GitServer, OciRegistry};

use crate::Controller;
use crate::binaries::workspace;
use crate::manifests::{documents, text};

/// Where the controller lives.
pub const NAMESPACE: &str = "carto-system";
/// The service account it has there.
pub const SERVICE_ACCOUNT: &str = "supplychain-controller";

/// All parts, running. Dropping it stops them.
pub struct Stack {
    /// Our controller.
    pub controller: Controller,
    /// Flux, which follows repositories and images.
    pub flux: FluxSourceController,
    /// Serves git repositories.
    pub git: GitServer,
    /// Serves images.
    pub registry: OciRegistry,
    /// The API server and what belongs to it.
    pub control_plane: ControlPlane,
}

impl Stack {
    /// Starts everything and waits until it is ready. `progress` hears, part by part, what is started next.
    ///
    /// # Errors
    ///
    /// When a part does not start; the text has the end of its log.
    pub async fn start(mut progress: impl FnMut(&str)) -> anyhow::Result<Self> {
        progress("API server, etcd and controller manager");
        let control_plane = ControlPlane::builder()
            .deployments()
            .audit()
            .start()
            .await?;
        progress("CRDs, and the controller's service account and rights (deploy/install.yaml)");
        install(&control_plane).await?;
        progress("Flux source-controller");
        let flux = FluxSourceController::start(&control_plane).await?;
        progress("git server and image registry");
        let git = GitServer::start()?;
        let registry = OciRegistry::start().await?;
        progress("supplychain-controller");
        let kubeconfig = crate::controller::kubeconfig_of_service_account(
            &control_plane,
            NAMESPACE,
            SERVICE_ACCOUNT,
        )
        .await?;
        let controller = Controller::start(&kubeconfig, &[]).await?;
        Ok(Self {
            controller,
            flux,
            git,
            registry,
            control_plane,
        })
    }
}

/// What `kubectl apply -f deploy/crds -f deploy/install.yaml` does, but for what only makes sense inside a cluster: here the
/// controller runs beside it, and the API server reaches no Service.
///
/// # Errors
///
/// When the API server refuses a manifest.
pub async fn install(control_plane: &ControlPlane) -> anyhow::Result<()> {
    control_plane
        .install_crds(workspace().join("deploy/crds"))
        .await?;
    let inside = ["Deployment", "Service", "ValidatingWebhookConfiguration"];
    let mut documents = documents("deploy/install.yaml")?;
    documents.retain(|document| {
        !document["kind"]
            .as_str()
            .is_some_and(|kind| inside.contains(&kind))
    });
    control_plane
        .apply_yaml(&text(&documents))
        .await
        .context("deploy/install.yaml")?;
    Ok(())
}
