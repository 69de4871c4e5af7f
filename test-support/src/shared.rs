//! One control plane for all tests of a test binary.

use std::sync::OnceLock;

use anyhow::{Context, anyhow};

use crate::control_plane::ControlPlane;

static SHARED: OnceLock<Result<ControlPlane, String>> = OnceLock::new();

/// The control plane that all tests of this process share; started at the first call, taken down when the process ends.
///
/// It records requests ([`ControlPlane::requests_by`]) and runs no controller manager. Each test works in its own namespace
/// ([`ControlPlane::create_namespace`]) with its own client. A test that restarts the API server, counts all requests or
/// installs cluster-wide objects others would trip over starts its own control plane instead.
///
/// # Errors
///
/// When it did not start; every caller gets the same text.
pub async fn shared_control_plane() -> anyhow::Result<&'static ControlPlane> {
    // Each #[tokio::test] has a runtime of its own that ends with it. Nothing of the control plane may live in one.
    let started = tokio::task::spawn_blocking(|| {
        SHARED.get_or_init(|| start().map_err(|error| format!("{error:#}")))
    });
    let control_plane = started.await.context("start the shared control plane")?;
    control_plane
        .as_ref()
        .map_err(|error| anyhow!(error.clone()))
}

fn start() -> anyhow::Result<ControlPlane> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(ControlPlane::builder().audit().start())
}
