//! A controller as a process of its own.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use test_support::{Process, Scratch, free_port, http_get};

use crate::binaries::{self, CONVENTIONS_CONTROLLER};

/// How long it may take until it has listed everything, on a busy machine.
const START_LIMIT: Duration = Duration::from_mins(3);

/// A running controller. Dropping it kills it.
pub struct Controller {
    /// The process.
    pub process: Process,
    _home: Scratch,
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
        let home = Scratch::new("carto-controller-")?;
        let port = free_port()?;
        let mut builder = Process::builder(binaries::controller(name)?);
        if name == CONVENTIONS_CONTROLLER {
            let cache = home.path().join("images");
            builder = builder.arg(format!("--image-cache={}", cache.display()));
        }
        let mut process = builder
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
