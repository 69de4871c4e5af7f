//! A controller as a process of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use kube::config::{AuthInfo, Kubeconfig};
use test_support::{ControlPlane, Process, free_port, http_get};

use crate::binaries;

/// How long it may take until it has listed everything, on a busy machine.
const START_LIMIT: Duration = Duration::from_mins(3);

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
        let look = || http_get(port, "/readyz");
        process.ready(START_LIMIT, look).await?;
        Ok(Self {
            process,
            _home: home,
        })
    }
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
    let life = Duration::from_hours(4);
    let token = control_plane
        .token_of_service_account(namespace, name, life)
        .await?;
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
