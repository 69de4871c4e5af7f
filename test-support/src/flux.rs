//! The real Flux source-controller, outside a cluster.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

use crate::assets::{Assets, assets};
use crate::control_plane::ControlPlane;
use crate::ports::{free_ports, port_was_taken};
use crate::process::Process;
use crate::scratch::Scratch;

const START_LIMIT: Duration = Duration::from_mins(1);
const PORT_ATTEMPTS: u32 = 5;

/// Flux source-controller, with the administrator's rights on one control plane. It serves GitRepository, OCIRepository and
/// the other sources of all namespaces; artifacts have URLs on loopback. Dropping it stops it, the CRDs stay.
#[derive(Debug)]
pub struct FluxSourceController {
    _process: Process,
    _home: Scratch,
}

impl FluxSourceController {
    /// Installs Flux's CRDs, starts the controller and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When a binary is missing (run `make control-plane`) or the controller ends early; the message has the end of its log.
    pub async fn start(control_plane: &ControlPlane) -> anyhow::Result<Self> {
        let assets = assets()?;
        control_plane.install_crds(assets.flux_crds()?).await?;
        let home = Scratch::new("carto-flux-")?;
        fs::create_dir(home.path().join("artifacts"))?;
        for attempt in 1.. {
            let [artifacts, health] = free_ports()?;
            let mut process = start(
                &assets,
                control_plane.kubeconfig_path(),
                home.path(),
                artifacts,
                health,
            )?;
            let Err(error) = wait_until_ready(&mut process, health).await else {
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

fn start(
    assets: &Assets,
    kubeconfig: &Path,
    home: &Path,
    artifacts: u16,
    health: u16,
) -> anyhow::Result<Process> {
    Process::builder(assets.binary("source-controller")?)
        .env("KUBECONFIG", kubeconfig)
        // Where it would look for its own secrets; it must be set.
        .env("RUNTIME_NAMESPACE", "default")
        .arg(format!(
            "--storage-path={}",
            home.join("artifacts").display()
        ))
        .arg(format!("--storage-addr=127.0.0.1:{artifacts}"))
        .arg(format!("--storage-adv-addr=127.0.0.1:{artifacts}"))
        .arg(format!("--health-addr=127.0.0.1:{health}"))
        .args(["--metrics-addr=0", "--enable-leader-election=false"])
        // A test waits for a retry; production spares the server.
        .args([
            "--min-retry-delay=100ms",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ])
        .start(home.join("source-controller.log"))
}

async fn wait_until_ready(process: &mut Process, health: u16) -> anyhow::Result<()> {
    let client = kube::Client::try_from(kube::Config::new(
        format!("http://127.0.0.1:{health}").parse()?,
    ))?;
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let Err(error) = client
            .request_text(http::Request::get("/readyz").body(Vec::new())?)
            .await
        else {
            return Ok(());
        };
        if !process.is_running() {
            bail!(
                "source-controller ended early; the end of its log:\n{}",
                process.log_tail()
            );
        }
        if Instant::now() > deadline {
            return Err(error).with_context(|| {
                format!("source-controller is not ready:\n{}", process.log_tail())
            });
        }
        sleep(Duration::from_millis(50)).await;
    }
}
