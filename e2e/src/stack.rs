//! Everything a supply chain needs, on this machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use http::Request;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::Api;
use kube::runtime::wait::await_condition;
use serde::Deserialize as _;
use serde_json::{Value, json};
use test_support::{
    CONTROLLERS_NAMESPACE, ControlPlane, FluxKustomizeController, FluxSourceController, GitServer,
    OciRegistry, free_port, service_account,
};

use crate::Controller;
use crate::binaries::{DELIVERY_CONTROLLER, SUPPLY_CHAIN_CONTROLLER, workspace};
use crate::manifests::documents;

/// What is applied to a cluster to install the controllers.
const MANIFEST: &str = "deploy/install.yaml";
/// The flag that says under which name the API server calls a webhook.
const WEBHOOK_SERVICE: &str = "--webhook-service=";
/// Somebody else may take a port between our look and the controller's bind; its log then says this.
const PORT_TAKEN: &str = "Address already in use";
const PORT_ATTEMPTS: u32 = 5;
/// How long the controller may take for its first certificate, and the API server until it calls the webhook, on a busy
/// machine.
const LIMIT: Duration = Duration::from_mins(3);
/// How many seconds the API server waits for the webhook: as long as it can, for the same reason.
const WEBHOOK_TIMEOUT: u8 = 30;

const LOOK: Duration = Duration::from_millis(50);

/// All parts of a supply chain, running. Dropping it stops them.
pub struct Stack {
    /// Our supply-chain controller.
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
        progress("CRDs, and the controllers' service accounts and rights (deploy/install.yaml)");
        install(&control_plane).await?;
        progress("Flux source-controller");
        let flux = FluxSourceController::start(&control_plane).await?;
        progress("git server and image registry");
        let git = GitServer::start()?;
        let registry = OciRegistry::start().await?;
        progress(SUPPLY_CHAIN_CONTROLLER);
        let controller = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER).await?;
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
/// controller runs beside it, and the API server reaches no Service. Then it waits until all rights are in force.
///
/// # Errors
///
/// When the API server refuses a manifest.
pub async fn install(control_plane: &ControlPlane) -> anyhow::Result<()> {
    control_plane
        .install_crds(workspace().join("deploy/crds"))
        .await?;
    control_plane.install_controllers().await
}

/// What a delivery needs besides: the delivery controller, as [`install`]ed, and Flux kustomize-controller. Dropping it stops
/// both.
pub struct Delivery {
    /// Our delivery controller.
    pub controller: Controller,
    /// Applies the manifests of a source.
    pub flux: FluxKustomizeController,
}

impl Delivery {
    /// Starts both on a stack and waits until they are ready.
    ///
    /// # Errors
    ///
    /// When one does not start; the text has the end of its log.
    pub async fn start(stack: &Stack) -> anyhow::Result<Self> {
        let flux = FluxKustomizeController::start(&stack.control_plane).await?;
        let controller = installed_controller(&stack.control_plane, DELIVERY_CONTROLLER).await?;
        Ok(Self { controller, flux })
    }
}

/// Starts a controller as [`install`]ed: with a token of its service account and the arguments of its Deployment, leader
/// election included, and the webhook of the one that serves it.
///
/// What differs outside a cluster: the ports, and that the API server calls the webhook at `localhost`.
///
/// # Errors
///
/// When it does not become ready, or does not tell the API server about its certificate authority.
pub async fn installed_controller(
    control_plane: &ControlPlane,
    name: &'static str,
) -> anyhow::Result<Controller> {
    let kubeconfig = control_plane
        .kubeconfig_of_service_account(CONTROLLERS_NAMESPACE, name)
        .await?;
    for _ in 1..PORT_ATTEMPTS {
        match start_installed(control_plane, name, &kubeconfig).await {
            Err(error) if format!("{error:#}").contains(PORT_TAKEN) => {}
            started => return started,
        }
    }
    start_installed(control_plane, name, &kubeconfig).await
}

async fn start_installed(
    control_plane: &ControlPlane,
    name: &'static str,
    kubeconfig: &Path,
) -> anyhow::Result<Controller> {
    let mut arguments = deployment_arguments(name)?;
    let serves_webhook = arguments
        .iter()
        .any(|argument| argument.starts_with(WEBHOOK_SERVICE));
    arguments
        .retain(|argument| !argument.contains("-port=") && !argument.starts_with(WEBHOOK_SERVICE));
    arguments.extend([
        format!("--own-namespace={CONTROLLERS_NAMESPACE}"),
        "--lease-identity=e2e".to_owned(),
    ]);
    if !serves_webhook {
        return Controller::start(name, kubeconfig, &arguments).await;
    }
    let port = free_port()?;
    // A service name is a DNS name in the certificate; this one is that of this machine.
    arguments.extend([
        format!("{WEBHOOK_SERVICE}localhost"),
        format!("--port={port}"),
    ]);
    let controller = Controller::start(name, kubeconfig, &arguments).await?;
    register_webhook(control_plane, port).await?;
    Ok(controller)
}

/// The user that a controller is for the API server.
pub fn user(controller: &str) -> String {
    service_account(CONTROLLERS_NAMESPACE, controller)
}

/// What a controller asked for in its own name and was refused: verb and URI. Needs an audit log.
///
/// # Errors
///
/// When there is no audit log, or the controller is not in it.
pub fn forbidden_requests(
    control_plane: &ControlPlane,
    controller: &str,
) -> anyhow::Result<Vec<String>> {
    let user = user(controller);
    let mut requests = control_plane.audit_events()?;
    requests.retain(|request| request.user.username == user);
    ensure!(!requests.is_empty(), "{controller} is not in the audit log");
    let refused = requests.iter().filter(|request| {
        let status = request.response_status.as_ref();
        status.is_some_and(|status| status.code == 403)
    });
    let asked = refused.map(|request| format!("{} {}", request.verb, request.request_uri));
    Ok(asked.collect())
}

/// The arguments of a controller's container in deploy/install.yaml.
fn deployment_arguments(name: &str) -> anyhow::Result<Vec<String>> {
    let documents = documents(MANIFEST)?;
    let deployment = documents
        .iter()
        .find(|document| document["kind"] == "Deployment" && document["metadata"]["name"] == name)
        .with_context(|| format!("no Deployment {name}"))?;
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    Ok(Vec::deserialize(arguments)?)
}

async fn register_webhook(control_plane: &ControlPlane, port: u16) -> anyhow::Result<()> {
    let documents = documents(MANIFEST)?;
    let mut configuration = documents
        .into_iter()
        .find(|document| document["kind"] == "ValidatingWebhookConfiguration")
        .context("no ValidatingWebhookConfiguration")?;
    for webhook in configuration["webhooks"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        let path = webhook["clientConfig"]["service"]["path"]
            .as_str()
            .unwrap_or_default();
        webhook["clientConfig"] = json!({"url": format!("https://localhost:{port}{path}")});
        webhook["timeoutSeconds"] = json!(WEBHOOK_TIMEOUT);
    }
    control_plane.apply_yaml(&configuration.to_string()).await?;
    let configurations: Api<ValidatingWebhookConfiguration> = Api::all(control_plane.client()?);
    let name = configuration["metadata"]["name"]
        .as_str()
        .context("no name")?;
    let trusted = await_condition(
        configurations,
        name,
        |found: Option<&ValidatingWebhookConfiguration>| {
            found
                .and_then(|found| found.webhooks.as_ref())
                .is_some_and(|webhooks| {
                    webhooks
                        .iter()
                        .all(|webhook| webhook.client_config.ca_bundle.is_some())
                })
        },
    );
    tokio::time::timeout(LIMIT, trusted)
        .await
        .context("the controller wrote no caBundle")??;
    tokio::time::timeout(LIMIT, webhook_is_called(control_plane))
        .await
        .context("the API server does not call the webhook")?
}

/// The API server acts on a configuration later than it answers who wrote it: before, it asks nobody, or does not trust the
/// certificate. It is in force when a template is refused that only the webhook refuses.
async fn webhook_is_called(control_plane: &ControlPlane) -> anyhow::Result<()> {
    let client = control_plane.client()?;
    let template = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "is-it-called"},
        "spec": {}});
    loop {
        let create = Request::post("/apis/carto.run/v1alpha1/clustertemplates?dryRun=All")
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&template)?)?;
        match client.request::<Value>(create).await {
            Err(kube::Error::Api(status)) if status.message.contains("denied the request") => {
                return Ok(());
            }
            Err(kube::Error::Api(status)) if !status.message.contains("failed calling webhook") => {
                return Err(kube::Error::Api(status).into());
            }
            answer => drop(answer),
        }
        tokio::time::sleep(LOOK).await;
    }
}
