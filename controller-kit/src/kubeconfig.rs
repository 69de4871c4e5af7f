//! Where the API server is, and where we are.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use http::{HeaderValue, header};
use kube::config::{KubeConfigOptions, Kubeconfig};
use thiserror::Error;

const ACCOUNT_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Why there is no API server to talk to.
#[derive(Debug, Error)]
pub(crate) enum KubeconfigError {
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

/// Where credentials are taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source<'f> {
    /// The file of the flag.
    Flag(&'f Path),
    /// What the variable KUBECONFIG names: one file, or several that are merged.
    Variable(OsString),
    /// The pod's service account.
    Pod,
    /// `~/.kube/config`.
    Home,
}

impl<'f> Source<'f> {
    /// The first that is there (docs/behaviour/process.md#flags), and no other: falling back from a
    /// file that is broken would work on another
    /// cluster, or as somebody else, than the one that was meant.
    fn first(flag: Option<&'f Path>, variable: Option<OsString>, in_pod: bool) -> Self {
        let variable = variable.filter(|value| !value.is_empty());
        match (flag, variable) {
            (Some(file), _) => Self::Flag(file),
            (None, Some(value)) => Self::Variable(value),
            (None, None) if in_pod => Self::Pod,
            (None, None) => Self::Home,
        }
    }
}

/// The configuration: `file` if given, else what KUBECONFIG names, else the pod's own, else `~/.kube/config`. Requests carry
/// `user_agent`.
///
/// # Errors
/// [`KubeconfigError`]: the operator must provide credentials.
#[expect(
    clippy::disallowed_methods,
    reason = "KUBECONFIG is no flag of ours: it stands behind the flag and before the pod"
)]
pub(crate) async fn load(
    file: Option<&Path>,
    user_agent: &'static str,
) -> Result<kube::Config, KubeconfigError> {
    let source = Source::first(file, std::env::var_os("KUBECONFIG"), in_cluster().await);
    let nothing =
        |cause: &dyn std::error::Error| KubeconfigError::Nothing(crate::cluster::chain(cause));
    let mut config = match source {
        Source::Flag(file) => from_file(file).await?,
        Source::Variable(files) => from_files(&files).await?,
        Source::Pod => kube::Config::incluster().map_err(|error| nothing(&error))?,
        Source::Home => kube::Config::from_kubeconfig(&KubeConfigOptions::default())
            .await
            .map_err(|error| nothing(&error))?,
    };
    config
        .headers
        .push((header::USER_AGENT, HeaderValue::from_static(user_agent)));
    Ok(config)
}

async fn from_file(file: &Path) -> Result<kube::Config, KubeconfigError> {
    let kubeconfig = Kubeconfig::read_from(file).map_err(|error| unusable(file, &error))?;
    chosen(file, kubeconfig).await
}

async fn from_files(files: &OsStr) -> Result<kube::Config, KubeconfigError> {
    let files = Path::new(files);
    let mut merged = Kubeconfig::default();
    for file in std::env::split_paths(files).filter(|file| !file.as_os_str().is_empty()) {
        let one = Kubeconfig::read_from(&file).map_err(|error| unusable(&file, &error))?;
        merged = merged.merge(one).map_err(|error| unusable(files, &error))?;
    }
    chosen(files, merged).await
}

/// Its current context.
async fn chosen(file: &Path, kubeconfig: Kubeconfig) -> Result<kube::Config, KubeconfigError> {
    kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, cause: &dyn std::error::Error) -> KubeconfigError {
    KubeconfigError::File {
        file: file.display().to_string(),
        cause: crate::cluster::chain(cause),
    }
}

/// Whether this process runs in a pod that has a service account.
pub(crate) async fn in_cluster() -> bool {
    tokio::fs::try_exists(format!("{ACCOUNT_FOLDER}/token"))
        .await
        .unwrap_or(false)
}

/// The namespace of the pod; outside of one, `default`.
pub(crate) async fn own_namespace() -> String {
    let read = tokio::fs::read_to_string(format!("{ACCOUNT_FOLDER}/namespace")).await;
    read.map_or_else(
        |_| "default".to_owned(),
        |namespace| namespace.trim().to_owned(),
    )
}

/// The host's name, which in a pod is the pod's.
pub(crate) fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname");
    read.map_or_else(
        |_| format!("pid-{}", std::process::id()),
        |name| name.trim().to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_variable_before_the_pod_before_the_home_folder() {
        let flag = Path::new("/flag");
        let variable = || Some(OsString::from("/a:/b"));
        let cases = [
            (Some(flag), variable(), true, Source::Flag(flag)),
            (None, variable(), true, Source::Variable("/a:/b".into())),
            (None, variable(), false, Source::Variable("/a:/b".into())),
            (None, Some(OsString::new()), true, Source::Pod),
            (None, None, true, Source::Pod),
            (None, None, false, Source::Home),
        ];
        for (flag, variable, in_pod, expected) in cases {
            assert_eq!(Source::first(flag, variable, in_pod), expected);
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_used_is_named_and_nothing_else_is_tried() {
        let refused = from_files(OsStr::new("/nowhere/config")).await.unwrap_err();
        let text = refused.to_string();
        assert!(
            text.starts_with("cannot use kubeconfig /nowhere/config: "),
            "{text}"
        );
    }
}
