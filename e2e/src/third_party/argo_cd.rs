//! Argo CD: its application controller and its repository server, and redis, which both need.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use test_support::{ControlPlane, Process, ProcessBuilder, Scratch, free_port, http_get};
use tokio::net::TcpStream;

use super::{built, folder, let_watch};

const START_LIMIT: Duration = Duration::from_mins(3);

/// Argo CD with the administrator's rights, for the Applications of one namespace, which are deployed to the same cluster.
/// Dropping it stops it, its kinds stay.
pub struct ArgoCd {
    parts: [Process; 3],
    _home: Scratch,
}

/// What its own manifests have: it works with none of its settings changed, but with none of these missing.
const SETTINGS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, labels: {app.kubernetes.io/part-of: argocd}}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, labels: {app.kubernetes.io/part-of: argocd}}
stringData: {server.secretkey: nobody-logs-in}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default}
spec:
  sourceRepos: ['*']
  destinations: [{server: '*', namespace: '*'}]
  clusterResourceWhitelist: [{group: '*', kind: '*'}]
";

impl ArgoCd {
    /// Installs its kinds and its settings, lets our controllers watch Applications, and starts it.
    ///
    /// # Errors
    ///
    /// It is not built, `redis-server` is not installed, or the API server refuses a manifest.
    pub async fn start(control_plane: &ControlPlane, namespace: &str) -> anyhow::Result<Self> {
        let folder = folder()?;
        control_plane
            .install_crds(built(&folder, "argo-cd-crds")?)
            .await?;
        control_plane.apply_yaml_in(namespace, SETTINGS).await?;
        let_watch(control_plane, "argo").await?;
        let home = Scratch::new("carto-argo-cd-")?;
        let part = Part {
            binary: &built(&folder, "argo-cd")?,
            home: home.path(),
            control_plane,
        };
        let (redis_port, repositories_port) = (free_port()?, free_port()?);
        let redis = part.redis(redis_port).await?;
        let repositories = part.repositories(repositories_port, redis_port).await?;
        let applications = part
            .applications(namespace, repositories_port, redis_port)
            .await?;
        Ok(Self {
            parts: [redis, repositories, applications],
            _home: home,
        })
    }

    /// Returns only when a part of it ends, with the end of its log.
    pub async fn early_end(&mut self) -> String {
        let [redis, repositories, applications] = &mut self.parts;
        tokio::select! {
            ended = redis.early_end() => ended,
            ended = repositories.early_end() => ended,
            ended = applications.early_end() => ended,
        }
    }
}

/// What the parts have in common.
struct Part<'a> {
    binary: &'a Path,
    home: &'a Path,
    control_plane: &'a ControlPlane,
}

impl Part<'_> {
    async fn redis(&self, port: u16) -> anyhow::Result<Process> {
        let mut redis = Process::builder("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--dir"])
            .arg(self.home)
            .start(self.home.join("redis.log"))?;
        let look = || async move {
            let address = ("127.0.0.1", port);
            TcpStream::connect(address)
                .await
                .context("connect to redis")
        };
        redis.ready(START_LIMIT, look).await?;
        Ok(redis)
    }

    async fn repositories(&self, port: u16, redis: u16) -> anyhow::Result<Process> {
        let metrics = free_port()?;
        let mut server = self
            .program("argocd-repo-server", redis)?
            // Nothing here is signed.
            .env("ARGOCD_GPG_ENABLED", "false")
            .args(["--address", "127.0.0.1", "--metrics-address", "127.0.0.1"])
            .args(["--port", &port.to_string(), "--disable-tls"])
            .args(["--metrics-port", &metrics.to_string()])
            .start(self.home.join("repositories.log"))?;
        let look = || http_get(metrics, "/healthz");
        server.ready(START_LIMIT, look).await?;
        Ok(server)
    }

    async fn applications(
        &self,
        namespace: &str,
        repositories: u16,
        redis: u16,
    ) -> anyhow::Result<Process> {
        let metrics = free_port()?;
        let mut controller = self
            .program("argocd-application-controller", redis)?
            .args(["--namespace", namespace, "--repo-server-plaintext"])
            .args(["--repo-server", &format!("127.0.0.1:{repositories}")])
            .args(["--metrics-port", &metrics.to_string()])
            .start(self.home.join("applications.log"))?;
        let look = || http_get(metrics, "/healthz");
        controller.ready(START_LIMIT, look).await?;
        Ok(controller)
    }

    /// One binary is all of its programs.
    fn program(&self, name: &str, redis: u16) -> anyhow::Result<ProcessBuilder> {
        let temporary = self.home.join(name);
        std::fs::create_dir(&temporary)?;
        let kubeconfig = self.control_plane.kubeconfig_path();
        Ok(Process::builder(self.binary)
            .env("ARGOCD_BINARY_NAME", name)
            .env("KUBECONFIG", kubeconfig)
            // It asks the API server of KUBECONFIG, though it is in no Pod of it.
            .env("ARGOCD_FAKE_IN_CLUSTER", "true")
            .env("ARGOCD_TLS_DATA_PATH", &temporary)
            .env("ARGOCD_SSH_DATA_PATH", &temporary)
            .env("TMPDIR", &temporary)
            .env("HOME", &temporary)
            .args(["--redis", &format!("127.0.0.1:{redis}")]))
    }
}
