//! Files, flags and processes of one control plane.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::json;

use super::{PORT_ATTEMPTS, START_LIMIT};
use crate::assets::{Assets, assets};
use crate::audit;
use crate::pki::{Identity, Pki, text};
use crate::ports::{free_ports, port_was_taken};
use crate::process::Process;

/// What tests need: garbage collection, namespaces that go away, default ServiceAccounts. The rest would only take time.
const CONTROLLERS: &str = "garbage-collector-controller,namespace-controller,serviceaccount-controller,\
    root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,resourcequota-controller,\
    validatingadmissionpolicy-status-controller";
/// Who the administrator is.
const ADMIN_USER: &str = "carto-test-admin";
const ADMIN_GROUPS: [&str; 1] = ["system:masters"];

/// Everything that is needed to start the processes, again and again on the same ports.
#[derive(Debug)]
pub(super) struct Launch {
    folder: PathBuf,
    pki: Pki,
    admin: Identity,
    binaries: Binaries,
    ports: Ports,
    audit: bool,
    apiserver_args: Vec<String>,
    kubeconfig: PathBuf,
}

#[derive(Debug)]
struct Binaries {
    etcd: PathBuf,
    apiserver: PathBuf,
    assets: Assets,
}

#[derive(Debug, Default)]
struct Ports {
    etcd: u16,
    etcd_peers: u16,
    apiserver: u16,
}

impl Launch {
    /// Finds the binaries and writes keys, certificates and the audit policy.
    pub(super) fn prepare(
        folder: PathBuf,
        audit: bool,
        apiserver_args: Vec<String>,
    ) -> anyhow::Result<Self> {
        let assets = assets()?;
        let binaries = Binaries {
            etcd: assets.binary("etcd")?,
            apiserver: assets.binary("kube-apiserver")?,
            assets,
        };
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let pki = Pki::in_folder(folder.join("pki"))?;
        let admin = pki.client(ADMIN_USER, &ADMIN_GROUPS)?;
        fs::write(folder.join("audit-policy.yaml"), audit::POLICY)?;
        let kubeconfig = folder.join("admin.kubeconfig");
        Ok(Self {
            folder,
            pki,
            admin,
            binaries,
            ports: Ports::default(),
            audit,
            apiserver_args,
            kubeconfig,
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    pub(super) fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    pub(super) fn server_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.ports.apiserver)
    }

    pub(super) fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.etcd)
    }

    pub(super) fn pki(&self) -> &Pki {
        &self.pki
    }

    pub(super) fn admin(&self) -> &Identity {
        &self.admin
    }

    /// Starts etcd and the API server, with other ports if somebody took one of ours in between.
    pub(super) async fn start_on_free_ports(&mut self) -> anyhow::Result<(Process, Process)> {
        for attempt in 1.. {
            let [etcd, etcd_peers, apiserver] = free_ports()?;
            self.ports = Ports {
                etcd,
                etcd_peers,
                apiserver,
            };
            self.write_kubeconfig(&self.kubeconfig, ADMIN_USER, &self.admin)?;
            let mut etcd = self.start_etcd()?;
            let mut apiserver = self.start_apiserver()?;
            let Err(error) = self.wait_for_both(&mut etcd, &mut apiserver).await else {
                return Ok((etcd, apiserver));
            };
            let logs = format!("{}{}", etcd.log_tail(), apiserver.log_tail());
            if attempt == PORT_ATTEMPTS || !port_was_taken(&logs) {
                return Err(error);
            }
            for process in [&mut etcd, &mut apiserver] {
                process.kill();
                fs::remove_file(process.log())?;
            }
        }
        bail!("no attempt was made")
    }

    async fn wait_for_both(
        &self,
        etcd: &mut Process,
        apiserver: &mut Process,
    ) -> anyhow::Result<()> {
        tokio::select! {
            ready = self.wait_until_ready(apiserver) => ready,
            ended = etcd.early_end() => bail!(ended),
        }
    }

    /// Waits for `/readyz` and the namespace `default`.
    pub(super) async fn wait_until_ready(&self, apiserver: &mut Process) -> anyhow::Result<()> {
        let client = kube::Client::try_from(self.config(&self.admin)?)?;
        let look = || look_ready(client.clone());
        apiserver.ready(START_LIMIT, look).await
    }

    fn start_etcd(&self) -> anyhow::Result<Process> {
        let peers = format!("http://127.0.0.1:{}", self.ports.etcd_peers);
        Process::builder(&self.binaries.etcd)
            .arg("--name=default")
            .arg(format!("--data-dir={}", text(&self.folder.join("etcd"))))
            .arg(format!("--listen-client-urls={}", self.etcd_url()))
            .arg(format!("--advertise-client-urls={}", self.etcd_url()))
            .arg(format!("--listen-peer-urls={peers}"))
            .arg(format!("--initial-advertise-peer-urls={peers}"))
            .arg(format!("--initial-cluster=default={peers}"))
            .arg("--log-level=warn")
            // The data outlives a killed process, not a power failure: all a test needs, and much faster.
            .arg("--unsafe-no-fsync=true")
            .start(self.folder.join("etcd.log"))
    }

    pub(super) fn start_apiserver(&self) -> anyhow::Result<Process> {
        let server = self.pki.server();
        let (signing_key, public_key) = self.pki.token_keys();
        let flags = [
            ("etcd-servers", self.etcd_url()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("advertise-address", "127.0.0.1".to_owned()),
            ("secure-port", self.ports.apiserver.to_string()),
            // The endpoint of the service `kubernetes` may not be on loopback; nothing here uses it.
            ("endpoint-reconciler-type", "none".to_owned()),
            ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
            ("cert-dir", text(&self.folder.join("apiserver"))),
            ("tls-cert-file", text(&server.certificate)),
            ("tls-private-key-file", text(&server.key)),
            ("client-ca-file", text(&self.pki.authority())),
            ("authorization-mode", "RBAC".to_owned()),
            ("allow-privileged", "true".to_owned()),
            // Without these three TokenRequest does not work.
            (
                "service-account-issuer",
                "https://kubernetes.default.svc".to_owned(),
            ),
            ("service-account-key-file", text(&public_key)),
            ("service-account-signing-key-file", text(&signing_key)),
        ];
        if self.audit {
            // Where it finds a file it appends, so one that was emptied meanwhile has no hole.
            File::options()
                .create(true)
                .append(true)
                .open(self.audit_log())?;
        }
        let mut command = Process::builder(&self.binaries.apiserver).args(
            flags
                .iter()
                .map(|(name, value)| format!("--{name}={value}")),
        );
        if self.audit {
            command = command
                .arg(format!(
                    "--audit-policy-file={}",
                    text(&self.folder.join("audit-policy.yaml"))
                ))
                .arg(format!("--audit-log-path={}", text(&self.audit_log())))
                // Megabytes. It is read while it is written: one that is rotated, at 100 by default, loses its place.
                .arg("--audit-log-maxsize=100000");
        }
        command
            .args(&self.apiserver_args)
            .start(self.folder.join("kube-apiserver.log"))
    }

    pub(super) fn start_controller_manager(&self, more: &[&str]) -> anyhow::Result<Process> {
        let (signing_key, _) = self.pki.token_keys();
        Process::builder(self.binaries.assets.binary("kube-controller-manager")?)
            .arg(format!("--kubeconfig={}", text(&self.kubeconfig)))
            .arg(format!(
                "--service-account-private-key-file={}",
                text(&signing_key)
            ))
            .arg(format!("--root-ca-file={}", text(&self.pki.authority())))
            .arg(format!(
                "--controllers={}",
                [&[CONTROLLERS], more].concat().join(",")
            ))
            .args([
                "--leader-elect=false",
                "--secure-port=0",
                "--use-service-account-credentials=false",
            ])
            // The defaults (20, 30) make garbage collection the bottleneck of every test it is in.
            .args([
                "--kube-api-qps=1000",
                "--kube-api-burst=2000",
                "--concurrent-gc-syncs=20",
            ])
            .start(self.folder.join("kube-controller-manager.log"))
    }

    pub(super) fn write_kubeconfig(
        &self,
        path: &Path,
        user: &str,
        identity: &Identity,
    ) -> anyhow::Result<()> {
        let credentials = json!({
            "client-certificate": text(&identity.certificate),
            "client-key": text(&identity.key),
        });
        self.write_kubeconfig_with(path, user, &credentials)
    }

    pub(super) fn write_kubeconfig_with(
        &self,
        path: &Path,
        user: &str,
        credentials: &serde_json::Value,
    ) -> anyhow::Result<()> {
        let content = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "carto-test", "cluster": {
                "server": self.server_url(),
                "certificate-authority": text(&self.pki.authority()),
            }}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "carto-test", "context": {"cluster": "carto-test", "user": user}}],
            "current-context": "carto-test",
        });
        fs::write(path, serde_json::to_vec_pretty(&content)?)
            .with_context(|| path.display().to_string())
    }
}

async fn look_ready(client: kube::Client) -> anyhow::Result<()> {
    for path in ["/readyz", "/api/v1/namespaces/default"] {
        client
            .request_text(http::Request::get(path).body(Vec::new())?)
            .await
            .context(path)?;
    }
    Ok(())
}
