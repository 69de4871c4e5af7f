//! A controller as a process of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::PostParams;
use kube::config::{AuthInfo, Kubeconfig};
use test_support::{ControlPlane, Process};
use tokio::time::{Instant, sleep};

use crate::binaries;

/// How long it may take until it has listed everything, on a busy machine.
const START_LIMIT: Duration = Duration::from_mins(1);

/// A running controller. Dropping it kills it.
pub struct Controller {
    /// The process.
    pub process: Process,
    _home: tempfile::TempDir,
}

impl Controller {
    /// Starts the binary of a controller with this kubeconfig, and arguments besides, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// When it ends or does not become ready; the text has the end of its log.
    pub async fn start(
        name: &'static str,
        kubeconfig: &Path,
        arguments: &[String],
    ) -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        let port = free_port()?;
        let mut process = Process::builder(binaries::controller(name)?)
            .env("KUBECONFIG", kubeconfig)
            .env("PATH", path_with_ytt()?)
            .arg(format!("--health-port={port}"))
            .args(arguments)
            .start(home.path().join(format!("{name}.log")))?;
        wait_until_ready(name, &mut process, port).await?;
        Ok(Self {
            process,
            _home: home,
        })
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// The PATH with the folder of the real ytt in front: the binary finds it as it would in its image.
#[expect(
    clippy::disallowed_methods,
    reason = "the process is to have our PATH, but for ytt"
)]
fn path_with_ytt() -> anyhow::Result<std::ffi::OsString> {
    let ytt = test_support::assets()?.binary("ytt")?;
    let folder = ytt.parent().context("ytt lies in no folder")?.to_path_buf();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(
        [folder].into_iter().chain(std::env::split_paths(&rest)),
    )?)
}

async fn wait_until_ready(name: &str, process: &mut Process, port: u16) -> anyhow::Result<()> {
    let client = kube::Client::try_from(kube::Config::new(
        format!("http://127.0.0.1:{port}").parse()?,
    ))?;
    let deadline = Instant::now() + START_LIMIT;
    loop {
        let Err(error) = client.request_text(http_get("/readyz")?).await else {
            return Ok(());
        };
        if !process.is_running() {
            bail!(
                "{name} ended early; the end of its log:\n{}",
                process.log_tail()
            );
        }
        if Instant::now() > deadline {
            bail!(
                "{name} is not ready ({error}); the end of its log:\n{}",
                process.log_tail()
            );
        }
        sleep(Duration::from_millis(20)).await;
    }
}

fn http_get(path: &str) -> anyhow::Result<http::Request<Vec<u8>>> {
    Ok(http::Request::get(path).body(Vec::new())?)
}

/// A kubeconfig file with a token of a service account, and nothing else to get in with.
///
/// # Errors
///
/// When the service account does not exist.
pub async fn kubeconfig_of_service_account(
    control_plane: &ControlPlane,
    namespace: &str,
    name: &str,
) -> anyhow::Result<PathBuf> {
    let accounts: Api<ServiceAccount> = Api::namespaced(control_plane.client()?, namespace);
    let hours = TokenRequestSpec {
        expiration_seconds: Some(4 * 3600),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest {
        spec: Some(hours),
        ..TokenRequest::default()
    };
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await
        .context("TokenRequest")?;
    let token = answer
        .status
        .and_then(|status| status.token)
        .context("the answer has no token")?;
    let mut kubeconfig = Kubeconfig::read_from(control_plane.kubeconfig_path())?;
    for user in &mut kubeconfig.auth_infos {
        user.auth_info = Some(AuthInfo {
            token: Some(token.clone().into()),
            ..AuthInfo::default()
        });
    }
    let path = control_plane
        .folder()
        .join(format!("{namespace}-{name}.kubeconfig"));
    std::fs::write(&path, serde_saphyr::to_string(&kubeconfig)?)?;
    Ok(path)
}
