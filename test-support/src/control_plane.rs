//! A real API server on real etcd, ready in about two seconds.

mod clients;
mod install;
mod launch;
mod lent;
mod raw;
mod rights;
mod webhooks;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use crate::audit::{self, AuditEvent};
use crate::process::Process;
use crate::scratch::Scratch;
pub use install::{CONTROLLERS_NAMESPACE, MANIFESTS, PRESET_WEBHOOKS};
use launch::Launch;
pub use lent::Lent;
pub use rights::service_account;

/// How long a control plane may take until it answers, on a busy machine.
const START_LIMIT: Duration = Duration::from_mins(3);
/// How long the controller manager may take for the first default ServiceAccount.
const SERVICE_ACCOUNT_LIMIT: Duration = Duration::from_mins(2);
/// Somebody else may take a port between our look and the server's bind.
const PORT_ATTEMPTS: u32 = 5;

/// A running control plane: etcd, kube-apiserver, and on request kube-controller-manager. RBAC is on, TokenRequest works.
///
/// It has its own folder and ports, so any number can run at once. Dropping it kills all and removes the folder; the same
/// happens when the test panics or is killed.
///
/// It holds nothing of an async runtime: clients are made on demand and live in the runtime of the caller.
#[derive(Debug)]
pub struct ControlPlane {
    // Dropped in this order: the clients first.
    controller_manager: Option<Process>,
    apiserver: Mutex<Option<Process>>,
    etcd: Mutex<Process>,
    launch: Launch,
    disturbed: AtomicBool,
    _home: Option<Scratch>,
}

/// Options of a control plane. Start it with [`ControlPlaneBuilder::start`].
#[derive(Debug, Default)]
#[must_use]
pub struct ControlPlaneBuilder {
    controller_manager: bool,
    more_controllers: Vec<&'static str>,
    audit: bool,
    apiserver_args: Vec<String>,
    data_dir: Option<PathBuf>,
}

impl ControlPlaneBuilder {
    /// Also runs kube-controller-manager: garbage collection, namespace deletion, default service accounts.
    ///
    /// Kinds of CRDs installed later enter garbage collection at its next discovery, up to 30 s on.
    pub fn controller_manager(mut self, run: bool) -> Self {
        self.controller_manager = run;
        self
    }

    /// Also runs kube-controller-manager, and in it the controllers of Deployments and ReplicaSets. There are no nodes: a
    /// Deployment becomes available only when it wants no replicas.
    pub fn deployments(mut self) -> Self {
        self.controller_manager = true;
        self.more_controllers
            .extend(["deployment-controller", "replicaset-controller"]);
        self
    }

    /// Also runs kube-controller-manager, and in it the controllers of Jobs and of their `ttlSecondsAfterFinished`. There are no
    /// nodes: a Job ends only when it wants no Pod.
    pub fn jobs(mut self) -> Self {
        self.controller_manager = true;
        self.more_controllers
            .extend(["job-controller", "ttl-after-finished-controller"]);
        self
    }

    /// Records every request, for [`ControlPlane::audit_events`].
    pub fn audit(mut self) -> Self {
        self.audit = true;
        self
    }

    /// Adds flags to kube-apiserver, such as `--enable-admission-plugins=...`. They come last, so they win.
    pub fn extra_apiserver_args(
        mut self,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.apiserver_args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Keeps keys and etcd's data in a folder of the caller's, which is not removed. Started again on it, the control plane
    /// has the objects, certificates and service account tokens of before, but other ports.
    pub fn data_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(folder.into());
        self
    }

    /// Starts all and waits until the API server is ready and has a namespace `default`.
    ///
    /// # Errors
    ///
    /// When a binary is missing (run `make control-plane`) or ends early; the message has the end of its log.
    pub async fn start(self) -> anyhow::Result<ControlPlane> {
        // An error means that a provider is installed: any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let home = if self.data_dir.is_some() {
            None
        } else {
            Some(Scratch::new("carto-control-plane-")?)
        };
        let folder = match (&self.data_dir, &home) {
            (Some(folder), _) => folder.clone(),
            (None, Some(scratch)) => scratch.path().to_path_buf(),
            (None, None) => bail!("neither a data folder nor a temporary one"),
        };
        let mut launch = Launch::prepare(folder, self.audit, self.apiserver_args)?;
        let (etcd, apiserver) = launch.start_on_free_ports().await?;
        let mut control_plane = ControlPlane {
            controller_manager: None,
            apiserver: Mutex::new(Some(apiserver)),
            etcd: Mutex::new(etcd),
            launch,
            disturbed: AtomicBool::new(false),
            _home: home,
        };
        if self.controller_manager {
            let more = &self.more_controllers;
            control_plane.controller_manager =
                Some(control_plane.launch.start_controller_manager(more)?);
            control_plane.default_service_account("default").await?;
        }
        Ok(control_plane)
    }
}

impl ControlPlane {
    /// Starts etcd and kube-apiserver with default options.
    ///
    /// # Errors
    ///
    /// As [`ControlPlaneBuilder::start`].
    pub async fn start() -> anyhow::Result<Self> {
        Self::builder().start().await
    }

    /// A control plane with options.
    pub fn builder() -> ControlPlaneBuilder {
        ControlPlaneBuilder::default()
    }

    /// Whether kube-controller-manager runs: without it nothing is collected or summed up.
    pub fn has_controller_manager(&self) -> bool {
        self.controller_manager.is_some()
    }

    /// The processes that it consists of: the name of each program and the id of its process.
    pub fn processes(&self) -> Vec<(String, u32)> {
        let etcd = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        let apiserver = self.apiserver_slot();
        let own = [
            Some(&*etcd),
            apiserver.as_ref(),
            self.controller_manager.as_ref(),
        ];
        let named = |process: &Process| (process.name().to_owned(), process.pid());
        own.into_iter().flatten().map(named).collect()
    }

    /// Where the API server listens, such as `https://127.0.0.1:34567`. Stays the same over restarts.
    pub fn server_url(&self) -> String {
        self.launch.server_url()
    }

    /// A kubeconfig file of the administrator, for child processes.
    pub fn kubeconfig_path(&self) -> &Path {
        self.launch.kubeconfig()
    }

    /// The folder with data, keys and logs.
    pub fn folder(&self) -> &Path {
        self.launch.folder()
    }

    /// Kills the API server. Clients see connections break and then be refused; etcd keeps the data.
    pub fn stop_apiserver(&self) {
        self.disturbed.store(true, Ordering::Relaxed);
        drop(self.apiserver_slot().take());
    }

    /// Starts the API server again, on the same port and data, and waits until it is ready. Nothing happens when it runs.
    ///
    /// # Errors
    ///
    /// When it does not become ready; the message has the end of its log.
    pub async fn start_apiserver(&self) -> anyhow::Result<()> {
        let runs = self
            .apiserver_slot()
            .as_mut()
            .is_some_and(Process::is_running);
        if runs {
            return Ok(());
        }
        let mut apiserver = self.launch.start_apiserver()?;
        self.launch.wait_until_ready(&mut apiserver).await?;
        *self.apiserver_slot() = Some(apiserver);
        Ok(())
    }

    /// Freezes the API server until [`Self::thaw`]: connections stay, and nobody answers.
    pub fn freeze_apiserver(&self) {
        self.signal_apiserver("STOP");
    }

    /// Freezes etcd until [`Self::thaw`]: the API server answers what it has in memory, and nothing else.
    pub fn freeze_etcd(&self) {
        self.signal_etcd("STOP");
    }

    /// Has both go on.
    pub fn thaw(&self) {
        self.signal_etcd("CONT");
        self.signal_apiserver("CONT");
    }

    /// Whether the API server or etcd was ever stopped or frozen.
    fn was_disturbed(&self) -> bool {
        self.disturbed.load(Ordering::Relaxed)
    }

    fn signal_apiserver(&self, name: &str) {
        self.disturbed.store(true, Ordering::Relaxed);
        if let Some(apiserver) = self.apiserver_slot().as_mut() {
            apiserver.signal(name).expect("the API server runs");
        }
    }

    fn signal_etcd(&self, name: &str) {
        self.disturbed.store(true, Ordering::Relaxed);
        let mut etcd = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        etcd.signal(name).expect("etcd runs");
    }

    /// Kills the API server and starts it again.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::start_apiserver`].
    pub async fn restart_apiserver(&self) -> anyhow::Result<()> {
        self.stop_apiserver();
        self.start_apiserver().await
    }

    /// Stops the API server and starts it with another key for service account tokens: those issued before are refused with
    /// 401. A controller manager is not told; do without.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::start_apiserver`], or when the keys cannot be written.
    pub async fn refuse_issued_tokens(&self) -> anyhow::Result<()> {
        self.stop_apiserver();
        self.launch.pki().replace_token_keys()?;
        self.start_apiserver().await
    }

    /// Every request so far, in order of arrival, answered or not. Needs [`ControlPlaneBuilder::audit`].
    ///
    /// A record is written about when the answer is sent: await what you expect with [`crate::eventually()`] first, then
    /// count what must not be there.
    ///
    /// # Errors
    ///
    /// When there is no audit log.
    pub fn audit_events(&self) -> anyhow::Result<Vec<AuditEvent>> {
        audit::read(&self.launch.audit_log())
    }

    /// Empties the record of requests: the next test shall not read of those of the last one.
    fn forget_requests(&self) -> anyhow::Result<()> {
        let log = File::options().write(true).open(self.launch.audit_log())?;
        Ok(log.set_len(0)?)
    }

    /// The requests of clients whose `User-Agent` starts with `user_agent_prefix`.
    ///
    /// # Errors
    ///
    /// As [`ControlPlane::audit_events`].
    pub fn requests_by(&self, user_agent_prefix: &str) -> anyhow::Result<Vec<AuditEvent>> {
        let mut events = self.audit_events()?;
        events.retain(|event| event.user_agent.starts_with(user_agent_prefix));
        Ok(events)
    }

    /// Creates a namespace with a unique name that starts with `prefix`, and returns its name. It has a ServiceAccount
    /// `default`, made here when no controller manager does it.
    ///
    /// # Errors
    ///
    /// When the API server refuses.
    pub async fn create_namespace(&self, prefix: &str) -> anyhow::Result<String> {
        let namespaces: Api<Namespace> = Api::all(self.client()?);
        let wanted = Namespace {
            metadata: ObjectMeta {
                generate_name: Some(format!("{prefix}-")),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        let created = namespaces
            .create(&PostParams::default(), &wanted)
            .await
            .context("create a namespace")?;
        let name = created
            .metadata
            .name
            .context("the API server created a namespace without a name")?;
        self.default_service_account(&name).await?;
        Ok(name)
    }

    async fn default_service_account(&self, namespace: &str) -> anyhow::Result<()> {
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client()?, namespace);
        if self.controller_manager.is_some() {
            let created = async {
                while accounts.get_opt("default").await?.is_none() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                anyhow::Ok(())
            };
            return tokio::time::timeout(SERVICE_ACCOUNT_LIMIT, created)
                .await
                .context("kube-controller-manager made no default ServiceAccount")?;
        }
        let account = ServiceAccount {
            metadata: ObjectMeta {
                name: Some("default".to_owned()),
                ..ObjectMeta::default()
            },
            ..ServiceAccount::default()
        };
        accounts
            .create(&PostParams::default(), &account)
            .await
            .context("create the default ServiceAccount")?;
        Ok(())
    }

    /// A poisoned lock guards nothing worse than a process to be killed.
    fn apiserver_slot(&self) -> MutexGuard<'_, Option<Process>> {
        self.apiserver
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
