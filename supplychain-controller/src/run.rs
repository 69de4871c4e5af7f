//! Putting the process together.

use std::sync::Arc;

use anyhow::Context as _;
use controller_kit::args::CommonArgs;
use controller_kit::cluster::Cluster;
use controller_kit::lease::{Leadership, LeaseSettings};
use controller_kit::metrics::Metrics;
use controller_kit::owner::SupplyChainEntry;
use controller_kit::probes::{ProbePorts, Readiness, serve};
use controller_kit::shutdown::Tasks;
use controller_kit::wiring::{Settings, Wired, wall_clock, wire};
use controller_kit::{kubeconfig, telemetry};
use realizer::Family;
use tracing::info;

use crate::args::Args;
use crate::webhooks;

/// The manager under which we own fields; part of what is stored, so it never changes.
pub const FIELD_MANAGER: &str = "carto-supplychain";
/// How our requests are told apart in audit logs.
pub const USER_AGENT: &str = concat!("carto-supplychain/", env!("CARGO_PKG_VERSION"));
/// Name of the Lease and of the process in messages.
const NAME: &str = "supplychain-controller";

/// Runs the controller until a signal stops it.
///
/// # Errors
/// When the configuration is wrong or a background task failed; the process is to exit with a failure.
pub async fn run(args: Args) -> anyhow::Result<()> {
    let common = args.common;
    let log = telemetry::init(common.log.log_level, common.log.dev)
        .context("failed to set up logging")?;
    let metrics = Arc::new(Metrics::new());
    let tasks = Tasks::new();
    let config = kubeconfig::load(common.kubeconfig.as_deref(), USER_AGENT)
        .await
        .context("failed to find the API server")?;
    let cluster = Cluster::connect(config, metrics.clone())
        .context("failed to set up the connection to the API server")?;
    let settings = Settings {
        family: Family::SupplyChain,
        concurrency: common.concurrency.workloads(),
        field_manager: FIELD_MANAGER,
        ytt: common.ytt.clone(),
    };
    let wired: Wired<SupplyChainEntry> = wire(&settings, &cluster, &metrics, &tasks);
    let readiness = Arc::new(Readiness::new());
    readiness.require("caches", wired.synced_check());
    let ports = ProbePorts {
        health: common.serve.health_port,
        metrics: common.serve.metrics_port,
    };
    serve(ports, readiness.clone(), metrics.clone(), log, &tasks)
        .await
        .context("failed to serve the probes")?;
    webhooks::serve(&common.serve, &cluster, &readiness, &metrics, &tasks)
        .await
        .context("failed to serve the webhooks")?;
    let leadership = leadership(&common, &cluster, &metrics, &tasks).await?;
    info!(version = env!("CARGO_PKG_VERSION"), "started");
    let work = work(&wired, &leadership, &tasks);
    let (stopped, ()) = tokio::join!(tasks.stop_on_signal(), work);
    stopped.context("failed to listen for signals")?;
    leadership.hand_over();
    tasks
        .join(common.shutdown_deadline())
        .await
        .context("failed to stop in order")?;
    Ok(())
}

/// Works while this replica leads. Caches are kept by every replica, so a new leader starts at once.
async fn work(wired: &Wired<SupplyChainEntry>, leadership: &Leadership, tasks: &Tasks) {
    if !leadership.acquired(tasks.token()).await {
        return;
    }
    let follow = async {
        let mut changes = leadership.changes();
        loop {
            tokio::select! {
                () = tasks.token().cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
            wired.lead(*changes.borrow_and_update());
        }
    };
    tokio::join!(wired.run(tasks), follow);
}

async fn leadership(
    common: &CommonArgs,
    cluster: &Cluster,
    metrics: &Arc<Metrics>,
    tasks: &Tasks,
) -> anyhow::Result<Leadership> {
    let in_cluster = kubeconfig::in_cluster().await;
    if !common.lease.leader_elect.unwrap_or(in_cluster) {
        return Ok(Leadership::always(metrics));
    }
    let lease = &common.lease;
    let namespace = match lease
        .lease_namespace
        .clone()
        .or_else(|| common.serve.own_namespace.clone())
    {
        Some(namespace) => namespace,
        None => kubeconfig::own_namespace().await,
    };
    let mut settings = LeaseSettings::new(
        namespace,
        lease.lease_name.as_deref().unwrap_or(NAME),
        lease
            .lease_identity
            .clone()
            .unwrap_or_else(kubeconfig::host_name),
    );
    settings.duration = std::time::Duration::from_secs(lease.lease_duration_seconds);
    settings.renew_deadline = std::time::Duration::from_secs(lease.lease_renew_deadline_seconds);
    settings.retry = std::time::Duration::from_secs(lease.lease_retry_seconds);
    Leadership::elect(
        cluster.controller(),
        settings,
        Arc::new(wall_clock),
        metrics.clone(),
        tasks,
    )
    .context("the lease flags do not fit together")
}
