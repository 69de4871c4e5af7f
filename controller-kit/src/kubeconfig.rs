//! Where the API server is, and where we are.

use std::path::Path;

use http::{HeaderValue, header};
use kube::config::{KubeConfigOptions, Kubeconfig};
use thiserror::Error;

const ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Why there is no API server to talk to.
#[derive(Debug, Error)]
pub enum KubeconfigError {
    /// The file cannot be used.
    #[error("cannot use kubeconfig {file}: {cause}; check the path and its contents")]
    File {
        /// The file.
        file: String,
        /// Why.
        cause: String,
    },
    /// There is nothing to use.
    #[error(
        "no credentials found: {0}; set KUBECONFIG or --kubeconfig, or run in a pod with a service account"
    )]
    Nothing(String),
}

/// The configuration: `file` if given, else as kubectl finds it, else the pod's own. Requests carry `user_agent`.
///
/// # Errors
/// [`KubeconfigError`]: the operator must provide credentials.
pub async fn load(
    file: Option<&Path>,
    user_agent: &'static str,
) -> Result<kube::Config, KubeconfigError> {
    let mut config = match file {
        Some(file) => from_file(file).await?,
        None => kube::Config::infer()
            .await
            .map_err(|error| KubeconfigError::Nothing(crate::cluster::chain(&error)))?,
    };
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_static(user_agent)));
    Ok(config)
}

async fn from_file(file: &Path) -> Result<kube::Config, KubeconfigError> {
    let unusable = |cause: &dyn std::error::Error| KubeconfigError::File {
        file: file.display().to_string(),
        cause: crate::cluster::chain(cause),
    };
    let kubeconfig = Kubeconfig::read_from(file).map_err(|error| unusable(&error))?;
    kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| unusable(&error))
}

/// Whether this process runs in a pod that has a service account.
pub async fn in_cluster() -> bool {
    tokio::fs::try_exists(format!("{ACCOUNT_FOLDER}/token"))
        .await
        .unwrap_or(false)
}

/// The namespace of the pod; outside of one, `default`.
pub async fn own_namespace() -> String {
    let read = tokio::fs::read_to_string(format!("{ACCOUNT_FOLDER}/namespace")).await;
    read.map_or_else(
        |_| "default".to_owned(),
        |namespace| namespace.trim().to_owned(),
    )
}

/// The host's name, which in a pod is the pod's.
pub fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname");
    read.map_or_else(
        |_| format!("pid-{}", std::process::id()),
        |name| name.trim().to_owned(),
    )
}
