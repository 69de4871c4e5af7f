//! Everything a supply chain needs, on this machine.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, ensure};
use http::Request;
use serde::Deserialize as _;
use serde_json::{Value, json};
use test_support::{
    CONTROLLERS_NAMESPACE, ControlPlane, ControlPlaneBuilder, FluxKustomizeController,
    FluxSourceController, GitServer, MANIFESTS, OciRegistry, PRESET_WEBHOOKS, free_port,
    service_account,
};

use crate::Controller;
use crate::binaries::{
    CONVENTIONS_CONTROLLER, DELIVERY_CONTROLLER, SUPPLY_CHAIN_CONTROLLER, workspace,
};
use crate::manifests::documents;

/// The flag that says under which name the API server calls a webhook.
const WEBHOOK_SERVICE: &str = "--webhook-service=";
/// The flag that names the configurations of webhooks.
const WEBHOOK_CONFIGURATION: &str = "--webhook-configuration=";
/// What an argument says of a Pod: its ports, its folders, and the name by which it is called.
const OF_A_POD: [&str; 5] = [
    WEBHOOK_SERVICE,
    "--metrics-port=",
    "--health-port=",
    "--image-cache=",
    "--registry-ca=",
];
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
    /// Our conventions controller.
    pub conventions: Controller,
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
    pub async fn start(progress: impl FnMut(&str)) -> anyhow::Result<Self> {
        let control_plane = ControlPlane::builder().deployments().audit();
        Self::start_on(control_plane, progress).await
    }

    /// As [`Stack::start`], on another control plane.
    ///
    /// # Errors
    ///
    /// As [`Stack::start`].
    pub async fn start_on(
        control_plane: ControlPlaneBuilder,
        mut progress: impl FnMut(&str),
    ) -> anyhow::Result<Self> {
        progress("API server, etcd and controller manager");
        let control_plane = control_plane.start().await?;
        progress("CRDs, and the controllers' service accounts and rights (deploy)");
        install(&control_plane).await?;
        progress("Flux source-controller");
        let flux = FluxSourceController::start(&control_plane).await?;
        progress("git server and image registry");
        let git = GitServer::start()?;
        let registry = OciRegistry::start().await?;
        progress(SUPPLY_CHAIN_CONTROLLER);
        let controller = installed_controller(&control_plane, SUPPLY_CHAIN_CONTROLLER).await?;
        progress(CONVENTIONS_CONTROLLER);
        let conventions = installed_controller(&control_plane, CONVENTIONS_CONTROLLER).await?;
        Ok(Self {
            controller,
            conventions,
            flux,
            git,
            registry,
            control_plane,
        })
    }
}

/// What the README has one apply to install the controllers, but for what only makes sense inside a cluster: here they run
/// beside it, and the API server reaches no Service. Then it waits until all rights are in force.
///
/// # Errors
///
/// When the API server refuses a manifest.
pub async fn install(control_plane: &ControlPlane) -> anyhow::Result<()> {
    for crds in ["deploy/crds", "deploy/conventions/crds"] {
        control_plane.install_crds(workspace().join(crds)).await?;
    }
    control_plane.install_controllers().await?;
    control_plane.install_conventions().await
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
    installed_controller_with(control_plane, name, &[]).await
}

/// As [`installed_controller`], with these arguments besides those of its Deployment.
///
/// # Errors
///
/// As [`installed_controller`].
pub async fn installed_controller_with(
    control_plane: &ControlPlane,
    name: &'static str,
    more: &[String],
) -> anyhow::Result<Controller> {
    let mut shipped = Vec::new();
    for manifest in MANIFESTS {
        shipped.extend(documents(manifest)?);
    }
    let deployed = Deployed::of(&shipped, name, name)?;
    deployed.start(control_plane, more).await
}

/// What a Deployment runs, and the manifests that it is among.
pub struct Deployed<'m> {
    manifests: &'m [Value],
    program: &'static str,
    account: &'m str,
    arguments: Vec<String>,
}

impl<'m> Deployed<'m> {
    /// The program that the Deployment of this name runs.
    ///
    /// # Errors
    ///
    /// There is no such Deployment among the manifests.
    pub fn of(
        manifests: &'m [Value],
        deployment: &str,
        program: &'static str,
    ) -> anyhow::Result<Self> {
        let found = named(manifests, "Deployment", deployment);
        let found = found.with_context(|| format!("no Deployment {deployment}"))?;
        let pod = &found["spec"]["template"]["spec"];
        Ok(Self {
            manifests,
            program,
            account: pod["serviceAccountName"].as_str().context("no account")?,
            arguments: Vec::deserialize(&pod["containers"][0]["args"])?,
        })
    }

    /// Starts it beside the cluster, as [`installed_controller`] does.
    ///
    /// # Errors
    ///
    /// As [`installed_controller`].
    pub async fn start(
        &self,
        control_plane: &ControlPlane,
        more: &[String],
    ) -> anyhow::Result<Controller> {
        let kubeconfig = control_plane
            .kubeconfig_of_service_account(CONTROLLERS_NAMESPACE, self.account)
            .await?;
        for _ in 1..PORT_ATTEMPTS {
            match start_deployed(control_plane, self, &kubeconfig, more).await {
                Err(error) if format!("{error:#}").contains(PORT_TAKEN) => {}
                started => return started,
            }
        }
        start_deployed(control_plane, self, &kubeconfig, more).await
    }

    /// What a flag of it says.
    fn says(&self, flag: &str) -> Option<&str> {
        let mut said = self.arguments.iter();
        said.find_map(|argument| argument.strip_prefix(flag))
    }
}

async fn start_deployed(
    control_plane: &ControlPlane,
    deployed: &Deployed<'_>,
    kubeconfig: &Path,
    more: &[String],
) -> anyhow::Result<Controller> {
    let name = deployed.program;
    let configuration = deployed.says(WEBHOOK_CONFIGURATION);
    let mut arguments = deployed.arguments.clone();
    arguments.retain(|argument| !OF_A_POD.iter().any(|flag| argument.starts_with(flag)));
    arguments.extend(more.iter().cloned());
    arguments.extend([
        format!("--own-namespace={CONTROLLERS_NAMESPACE}"),
        "--lease-identity=e2e".to_owned(),
    ]);
    let Some(configuration) = configuration else {
        return Controller::start(name, kubeconfig, &arguments).await;
    };
    let port = free_port()?;
    // A service name is a DNS name in the certificate; this one is that of this machine.
    arguments.extend([
        format!("{WEBHOOK_SERVICE}localhost"),
        format!("--port={port}"),
    ]);
    let serves_presets = arguments.iter().any(|argument| argument == "--pod-presets");
    let controller = Controller::start(name, kubeconfig, &arguments).await?;
    register_webhooks(control_plane, deployed.manifests, configuration, port).await?;
    if serves_presets {
        let registered = control_plane.register_preset_webhooks(port, WEBHOOK_TIMEOUT, LIMIT);
        registered.await?;
    }
    let called = tokio::time::timeout(LIMIT, webhook_is_called(control_plane, name));
    called
        .await
        .context("the API server does not call the webhook")??;
    Ok(controller)
}

/// Starts the conventions controller as installed, with what serves pod presets.
///
/// # Errors
///
/// As [`installed_controller`].
pub async fn controller_with_presets(control_plane: &ControlPlane) -> anyhow::Result<Controller> {
    control_plane.install_presets().await?;
    let flags = [
        "--pod-presets".to_owned(),
        format!("--preset-webhook-configuration={PRESET_WEBHOOKS}"),
    ];
    installed_controller_with(control_plane, CONVENTIONS_CONTROLLER, &flags).await
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

/// The manifest of this kind and name.
fn named<'m>(manifests: &'m [Value], kind: &str, name: &str) -> Option<&'m Value> {
    let mut manifests = manifests.iter();
    manifests.find(|object| object["kind"] == kind && object["metadata"]["name"] == name)
}

/// Has the API server call the webhooks of the configurations of this name.
async fn register_webhooks(
    control_plane: &ControlPlane,
    manifests: &[Value],
    name: &str,
    port: u16,
) -> anyhow::Result<()> {
    let mut registered = 0;
    for kind in [
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
    ] {
        if let Some(configuration) = named(manifests, kind, name) {
            let configuration = configuration.clone();
            let registering =
                control_plane.register_webhooks(configuration, port, WEBHOOK_TIMEOUT, LIMIT);
            registering.await?;
            registered += 1;
        }
    }
    ensure!(registered > 0, "there is no webhook configuration {name}");
    Ok(())
}

/// What only the webhook of a controller refuses: the path of a kind, and an object of it.
fn refused(controller: &str) -> (&'static str, Value) {
    if controller == CONVENTIONS_CONTROLLER {
        let convention = json!({"apiVersion": "conventions.carto.run/v1alpha1", "kind": "ClusterPodConvention",
            "metadata": {"name": "is-it-called"}, "spec": {}});
        return (
            "/apis/conventions.carto.run/v1alpha1/clusterpodconventions",
            convention,
        );
    }
    let template = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate",
        "metadata": {"name": "is-it-called"}, "spec": {}});
    ("/apis/carto.run/v1alpha1/clustertemplates", template)
}

/// The API server acts on a configuration later than it answers who wrote it: before, it asks nobody, or does not trust the
/// certificate. It is in force when an object is refused that only the webhook refuses.
async fn webhook_is_called(control_plane: &ControlPlane, controller: &str) -> anyhow::Result<()> {
    let client = control_plane.client()?;
    let (path, object) = refused(controller);
    loop {
        let create = Request::post(format!("{path}?dryRun=All"))
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&object)?)?;
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
