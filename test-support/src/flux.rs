//! The real Flux source-controller and kustomize-controller, outside a cluster.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;

use crate::assets::{Assets, assets};
use crate::control_plane::ControlPlane;
use crate::ports::{free_ports, port_was_taken};
use crate::process::Process;
use crate::scrape::http_get;
use crate::scratch::Scratch;

const START_LIMIT: Duration = Duration::from_mins(3);
const PORT_ATTEMPTS: u32 = 5;

/// Flux source-controller, with the administrator's rights on one control plane. It serves GitRepository, OCIRepository and
/// the other sources of all namespaces; artifacts have URLs on loopback. Dropping it stops it, the CRDs stay.
#[derive(Debug)]
pub struct FluxSourceController(#[expect(dead_code, reason = "held until it is dropped")] Part);

impl FluxSourceController {
    /// Installs Flux's CRDs, starts the controller and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When a binary is missing (run `make control-plane`) or the controller ends early; the message has the end of its log.
    pub async fn start(control_plane: &ControlPlane) -> anyhow::Result<Self> {
        Self::start_at(control_plane, "127.0.0.1").await
    }

    /// As [`FluxSourceController::start`], with artifacts at another address of this machine: at [`crate::Node::MACHINE`],
    /// Pods can download them, too.
    ///
    /// # Errors
    ///
    /// As [`FluxSourceController::start`].
    pub async fn start_at(control_plane: &ControlPlane, address: &str) -> anyhow::Result<Self> {
        let arguments = |home: &Path, artifacts: u16| {
            let storage = home.join("artifacts");
            vec![
                format!("--storage-path={}", storage.display()),
                format!("--storage-addr={address}:{artifacts}"),
                format!("--storage-adv-addr={address}:{artifacts}"),
            ]
        };
        let part = Part::start(control_plane, "source-controller", arguments).await?;
        Ok(Self(part))
    }
}

/// Flux kustomize-controller, with the administrator's rights on one control plane: it applies the manifests of a source as
/// the service account that a Kustomization names. The sources are those of a [`FluxSourceController`]. Dropping it stops
/// it, the CRDs stay.
#[derive(Debug)]
pub struct FluxKustomizeController(#[expect(dead_code, reason = "held until it is dropped")] Part);

impl FluxKustomizeController {
    /// Installs Flux's CRDs, starts the controller and waits until it is ready.
    ///
    /// # Errors
    ///
    /// As [`FluxSourceController::start`].
    pub async fn start(control_plane: &ControlPlane) -> anyhow::Result<Self> {
        let arguments = |_: &Path, _: u16| Vec::new();
        let part = Part::start(control_plane, "kustomize-controller", arguments).await?;
        Ok(Self(part))
    }
}

/// One of Flux's controllers, and the folder that it works in.
#[derive(Debug)]
struct Part {
    _process: Process,
    _home: Scratch,
}

impl Part {
    /// `arguments` are the ones that only this controller has, made of its folder and a free port.
    async fn start(
        control_plane: &ControlPlane,
        name: &str,
        arguments: impl Fn(&Path, u16) -> Vec<String>,
    ) -> anyhow::Result<Self> {
        let assets = assets()?;
        control_plane.install_crds(assets.flux_crds()?).await?;
        let home = Scratch::new("carto-flux-")?;
        for folder in ["artifacts", "tmp"] {
            fs::create_dir(home.path().join(folder))?;
        }
        for attempt in 1.. {
            let [own, health] = free_ports()?;
            let own_arguments = arguments(home.path(), own);
            let mut process = spawn(
                &assets,
                name,
                control_plane,
                home.path(),
                health,
                own_arguments,
            )?;
            let look = || http_get(health, "/readyz");
            let Err(error) = process.ready(START_LIMIT, look).await else {
                return Ok(Self {
                    _process: process,
                    _home: home,
                });
            };
            process.kill();
            if attempt == PORT_ATTEMPTS || !port_was_taken(&process.log_tail()) {
                return Err(error);
            }
            fs::remove_file(process.log())?;
        }
        bail!("no attempt was made")
    }
}

fn spawn(
    assets: &Assets,
    name: &str,
    control_plane: &ControlPlane,
    home: &Path,
    health: u16,
    own_arguments: Vec<String>,
) -> anyhow::Result<Process> {
    Process::builder(assets.binary(name)?)
        .env("KUBECONFIG", control_plane.kubeconfig_path())
        // Where it would look for its own secrets; it must be set.
        .env("RUNTIME_NAMESPACE", "default")
        // What it unpacks goes with its folder, whenever it is killed.
        .env("TMPDIR", home.join("tmp"))
        .args(own_arguments)
        .arg(format!("--health-addr=127.0.0.1:{health}"))
        .args(["--metrics-addr=0", "--enable-leader-election=false"])
        // A test waits for a retry; production spares the server.
        .args([
            "--min-retry-delay=100ms",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ])
        .start(home.join(format!("{name}.log")))
}
