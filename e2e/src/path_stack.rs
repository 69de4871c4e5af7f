//! Everything from a commit to the cluster: three controllers of ours, two of Flux, a git server, and a node if wanted.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anyhow::Context;
use serde_json::Value;
use test_support::node::Reachable;
use test_support::{ControlPlane, FluxKustomizeController, FluxSourceController, GitServer, Node};
use tokio::sync::Mutex;

use crate::Controller;
use crate::binaries::{
    CONVENTIONS_CONTROLLER, DELIVERY_CONTROLLER, RUNNABLE_CONTROLLER, SUPPLY_CHAIN_CONTROLLER,
};
use crate::node_registry::NodeRegistry;
use crate::release::{self, Release};
use crate::stack::{install, installed_controller};

/// Our controllers.
pub const CONTROLLERS: [&str; 3] = [
    SUPPLY_CHAIN_CONTROLLER,
    DELIVERY_CONTROLLER,
    RUNNABLE_CONTROLLER,
];

/// All parts, running. Dropping it stops them, in the order of the fields.
pub struct PathStack {
    controllers: Mutex<BTreeMap<&'static str, Controller>>,
    _kustomize_controller: FluxKustomizeController,
    _source_controller: FluxSourceController,
    node: Option<NodeAndGit>,
    /// Serves git repositories.
    pub git: GitServer,
    /// The API server and what belongs to it.
    pub control_plane: ControlPlane,
}

/// A node, and the git server as its Pods see it.
struct NodeAndGit {
    git: Reachable,
    node: Node,
}

impl PathStack {
    /// Starts everything but a node: no Pod runs, and a Deployment becomes available only when it wants no replicas.
    /// `progress` hears, part by part, what is started next.
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
        let git = GitServer::start()?;
        Self::launch(control_plane, git, None, progress).await
    }

    /// As [`PathStack::start`], with a node: Pods run, and reach the git server and Flux's artifacts.
    ///
    /// # Errors
    ///
    /// As [`PathStack::start`], and as [`Node::start`].
    pub async fn start_with_node(mut progress: impl FnMut(&str)) -> anyhow::Result<Self> {
        let (control_plane, git, node) = a_cluster(&mut progress).await?;
        Self::launch(control_plane, git, Some(node), progress).await
    }

    /// As [`PathStack::start_with_node`], with our controllers as users have them: as Pods, from the charts and the images,
    /// with these values and the authority of a registry that Pods reach. The runtime must have more than one thread.
    ///
    /// # Errors
    ///
    /// As [`PathStack::start_with_node`], and what helm says.
    pub async fn start_installed(
        mut values: Value,
        mut progress: impl FnMut(&str),
    ) -> anyhow::Result<(Self, Release, NodeRegistry)> {
        let (control_plane, git, node) = a_cluster(&mut progress).await?;
        progress("a registry");
        let registry = NodeRegistry::start(&node.node).await?;
        values[CONVENTIONS_CONTROLLER]["registryAuthorities"] = registry.authority().into();
        progress("images of our controllers");
        release::import_images(&node.node)?;
        progress("helm install");
        let release = Release::install(&control_plane, values).await?;
        let stack = Self::with_flux(control_plane, git, Some(node), progress).await?;
        Ok((stack, release, registry))
    }

    async fn launch(
        control_plane: ControlPlane,
        git: GitServer,
        node: Option<NodeAndGit>,
        mut progress: impl FnMut(&str),
    ) -> anyhow::Result<Self> {
        progress("CRDs, and the controllers' service accounts and rights (deploy/install.yaml)");
        install(&control_plane).await?;
        let stack = Self::with_flux(control_plane, git, node, &mut progress).await?;
        for name in CONTROLLERS {
            progress(name);
            stack.start_controller(name).await?;
        }
        Ok(stack)
    }

    async fn with_flux(
        control_plane: ControlPlane,
        git: GitServer,
        node: Option<NodeAndGit>,
        mut progress: impl FnMut(&str),
    ) -> anyhow::Result<Self> {
        progress("Flux source-controller and kustomize-controller");
        let address = node.as_ref().map_or("127.0.0.1", |_| Node::MACHINE);
        let source_controller = FluxSourceController::start_at(&control_plane, address).await?;
        let kustomize_controller = FluxKustomizeController::start(&control_plane).await?;
        Ok(Self {
            controllers: Mutex::default(),
            _kustomize_controller: kustomize_controller,
            _source_controller: source_controller,
            node,
            git,
            control_plane,
        })
    }

    /// The node, if there is one.
    pub fn node(&self) -> Option<&Node> {
        self.node.as_ref().map(|node| &node.node)
    }

    /// Where Flux, and Pods if there are any, clone a repository from and push to.
    pub fn git_url(&self, repository: &str) -> String {
        self.node.as_ref().map_or_else(
            || self.git.url(repository),
            |node| format!("http://{}/{repository}.git", node.git.address()),
        )
    }

    /// Starts those of our controllers that do not run, as installed, and waits until they are ready.
    ///
    /// # Errors
    ///
    /// When one does not become ready; the text has the end of its log.
    pub async fn start_missing_controllers(&self) -> anyhow::Result<()> {
        for name in CONTROLLERS {
            self.start_controller(name).await?;
        }
        Ok(())
    }

    async fn start_controller(&self, name: &'static str) -> anyhow::Result<()> {
        let mut running = self.controllers.lock().await;
        if let Entry::Vacant(missing) = running.entry(name) {
            let controller = installed_controller(&self.control_plane, name).await;
            missing.insert(controller.with_context(|| name)?);
        }
        Ok(())
    }

    /// Kills one of our controllers with SIGKILL. Returns whether it ran.
    pub async fn kill_controller(&self, name: &str) -> bool {
        let mut running = self.controllers.lock().await;
        running.remove(name).is_some()
    }
}

async fn a_cluster(
    progress: &mut impl FnMut(&str),
) -> anyhow::Result<(ControlPlane, GitServer, NodeAndGit)> {
    progress("API server, etcd and controller manager");
    let control_plane = ControlPlane::builder()
        .controller_manager(true)
        .extra_apiserver_args(Node::apiserver_flags()?)
        .audit()
        .start()
        .await?;
    progress("a node: containerd, kubelet, kube-proxy, scheduler");
    let node = Node::start(&control_plane).await?;
    let git = GitServer::start()?;
    let reachable = node.reach(git.port()).await?;
    let node = NodeAndGit {
        git: reachable,
        node,
    };
    Ok((control_plane, git, node))
}
