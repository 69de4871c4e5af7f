//! A real Kubernetes node beside a control plane, on this machine: Pods run.
//!
//! ```text
//!  test ──stdin──► hack/node/up.sh ──► inside.sh in namespaces of its own: containerd, kubelet, kube-proxy, Pods, ...
//!    │ 127.0.0.1                         │ 10.245.0.2
//!    └──────────── 10.245.0.1 ◄──────────┘
//! ```
//!
//! It needs root, and `make control-plane node`. However this process ends, the pipe closes and nothing of the node is left.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::control_plane::ControlPlane;
use crate::scratch::Scratch;

/// Long enough for another node on this machine to end first.
const START_LIMIT: Duration = Duration::from_mins(4);

/// A running node. One at a time runs on a machine; a second waits for the end of the first, for a minute.
///
/// Dropping it ends all and waits for that.
#[derive(Debug)]
pub struct Node {
    script: Child,
    orders: Option<ChildStdin>,
    home: Scratch,
}

/// While it lives, Pods reach a server that listens on 127.0.0.1. It belongs to the async runtime it is made in.
#[derive(Debug)]
pub struct Reachable {
    address: SocketAddr,
    /// Dropping a set ends its tasks.
    _forwarder: JoinSet<()>,
}

impl Node {
    /// An image that is always there: busybox, and git for http. With nothing else to do, it waits.
    pub const TOOLS_IMAGE: &'static str = "carto-test/tools:1";
    /// This machine as Pods see it (`HOST_IP` of hack/node/addresses.sh): what listens here they can reach. The address is
    /// there as long as the node is.
    pub const MACHINE: &'static str = "10.245.0.1";

    /// Why no node can run here: a line for people; none when it can.
    ///
    /// # Errors
    ///
    /// When the script cannot be run.
    pub fn missing() -> anyhow::Result<Option<String>> {
        let output = up().arg("--check").output().context("hack/node/up.sh")?;
        if output.status.success() {
            return Ok(None);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let line = said.lines().last().unwrap_or_default();
        Ok(Some(line.trim_start_matches("node: ").to_owned()))
    }

    /// Flags for [`crate::control_plane::ControlPlaneBuilder::extra_apiserver_args`]: without them the node does not reach
    /// the API server, nor the API server the node.
    ///
    /// # Errors
    ///
    /// When the script does not answer.
    pub fn apiserver_flags() -> anyhow::Result<Vec<String>> {
        let output = up()
            .arg("--apiserver-flags")
            .output()
            .context("hack/node/up.sh")?;
        ensure!(output.status.success(), "hack/node/up.sh: {output:?}");
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Starts a node with the controllers of all workloads, and waits until it takes Pods. The control plane runs with
    /// [`Node::apiserver_flags`] and its controller manager, but not with its own controllers of Deployments.
    ///
    /// # Errors
    ///
    /// Without root, when something is missing (run `make control-plane node`), or when a part ends early; the text has the
    /// end of its log.
    pub async fn start(control_plane: &ControlPlane) -> anyhow::Result<Self> {
        Self::launch(control_plane, None).await
    }

    /// As [`Node::start`], with these controllers of kube-controller-manager instead of all. A node that takes Pods needs
    /// `node-lifecycle-controller` among them.
    ///
    /// # Errors
    ///
    /// As [`Node::start`].
    pub async fn start_with_controllers(
        control_plane: &ControlPlane,
        controllers: &[&str],
    ) -> anyhow::Result<Self> {
        Self::launch(control_plane, Some(controllers.join(","))).await
    }

    async fn launch(
        control_plane: &ControlPlane,
        controllers: Option<String>,
    ) -> anyhow::Result<Self> {
        let home = Scratch::new("carto-node-")?;
        let log = File::create(home.path().join("node.log")).context("log of the node")?;
        // A group of its own: Ctrl-C in the terminal reaches the test only, whose end then closes the pipe.
        let mut script = up()
            .arg(control_plane.kubeconfig_path())
            .arg(home.path())
            .args(controllers)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .spawn()
            .context("hack/node/up.sh")?;
        let orders = script.stdin.take();
        let mut node = Self {
            script,
            orders,
            home,
        };
        node.wait_until_ready().await?;
        Ok(node)
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            let log = fs::read_to_string(self.folder().join("node.log"))?;
            if log.lines().any(|line| line == "node: ready") {
                return Ok(());
            }
            if let Some(status) = self.script.try_wait()? {
                bail!("the node ended early ({status}):\n{log}");
            }
            if Instant::now() > deadline {
                bail!("the node is not ready after {START_LIMIT:?}:\n{log}");
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The folder with images and logs (`log/kubelet.log` and so on). It goes with the node.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Makes the images of an archive (OCI, or what `docker save` writes) known to the node. A Pod names them as the archive
    /// does; with a tag other than `latest` nothing is pulled.
    ///
    /// # Errors
    ///
    /// With the words of `ctr`.
    pub fn import_image(&self, archive: &Path) -> anyhow::Result<()> {
        let output = Command::new("ctr")
            .arg("--address")
            .arg(self.folder().join("containerd.sock"))
            .args(["--namespace", "k8s.io", "images", "import"])
            .arg(archive)
            .output()
            .context("ctr, which comes with containerd")?;
        ensure!(
            output.status.success(),
            "{}: {}",
            archive.display(),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Lets Pods reach a server that listens on this port of 127.0.0.1, such as [`crate::GitServer`].
    ///
    /// # Errors
    ///
    /// When no port can be taken on the node's side.
    pub async fn reach(&self, port: u16) -> anyhow::Result<Reachable> {
        let listener = TcpListener::bind((Self::MACHINE, 0))
            .await
            .with_context(|| format!("a port at {}", Self::MACHINE))?;
        let address = listener.local_addr()?;
        let mut forwarder = JoinSet::new();
        forwarder.spawn(forward(listener, port));
        Ok(Reachable {
            address,
            _forwarder: forwarder,
        })
    }

    /// Ends the node, its Pods included, and waits until nothing of it is left.
    ///
    /// # Errors
    ///
    /// When something is left; the text names it.
    pub fn stop(mut self) -> anyhow::Result<()> {
        let status = self.end()?;
        let log = fs::read_to_string(self.folder().join("node.log"))?;
        ensure!(
            status.success(),
            "the node did not end well ({status}):\n{log}"
        );
        Ok(())
    }

    fn end(&mut self) -> std::io::Result<std::process::ExitStatus> {
        drop(self.orders.take());
        self.script.wait()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // An error means that it was waited for before: gone all the same.
        let _ = self.end();
    }
}

impl Reachable {
    /// Host and port for Pods, such as `10.245.0.1:34567`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// The open connections end with this task.
async fn forward(listener: TcpListener, port: u16) {
    let mut connections = JoinSet::new();
    while let Ok((mut from_pod, _)) = listener.accept().await {
        connections.spawn(async move {
            let mut to_server = TcpStream::connect(("127.0.0.1", port)).await?;
            copy_bidirectional(&mut from_pod, &mut to_server).await
        });
        while connections.try_join_next().is_some() {}
    }
}

fn up() -> Command {
    Command::new(script("up.sh"))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../hack/node")
        .join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_the_machine_is_that_of_the_scripts() {
        let addresses = fs::read_to_string(script("addresses.sh")).unwrap();
        let wanted = format!("HOST_IP={}", Node::MACHINE);
        assert!(addresses.lines().any(|line| line == wanted), "{addresses}");
    }

    #[test]
    fn the_api_server_is_told_to_listen_where_pods_are() {
        let flags = Node::apiserver_flags().unwrap();
        let wanted = format!("--advertise-address={}", Node::MACHINE);
        assert!(flags.contains(&wanted), "{flags:?}");
    }
}
