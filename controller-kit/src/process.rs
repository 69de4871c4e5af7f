//! The process of a controller, from the command line to the last task; the same for all of them.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::Instant;
use tracing::info;

use crate::args::CommonArgs;
use crate::cluster::Cluster;
use crate::lease::{Leadership, LeaseSettings};
use crate::metrics::Metrics;
use crate::probes::{ProbePorts, Readiness, serve};
use crate::scheduler::Terms;
use crate::shutdown::Tasks;
use crate::wiring::{Environment, Wired};
use crate::{kubeconfig, status_key, telemetry, webhook};

/// What is left for the release of the Lease and the last events when work has used up all of `--shutdown-seconds`:
/// with the default, all fits into the 30 s that a pod is given.
const AFTER_WORK: Duration = Duration::from_secs(8);

/// What tells one controller from another.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Name of the binary, of its Lease and of the process in messages.
    pub name: &'static str,
    /// What `--help` says before the flags; the first line is the summary.
    pub about: &'static str,
    /// Its version.
    pub version: &'static str,
    /// How its requests are told apart in audit logs.
    pub user_agent: &'static str,
    /// The manager under which it owns fields; part of what is stored, so it never changes.
    pub field_manager: &'static str,
}

/// Starts the watches of a controller.
pub type Wire = fn(&CommonArgs, Environment<'_>) -> Wired;

/// The whole of a controller's `main`: runs it and tells the shell how it ended.
pub fn main(program: &Program, wire: Wire) -> ExitCode {
    // Two providers in one process would panic at first use, so the choice is made here, once.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    let common = match CommonArgs::parse(program, std::env::args_os()) {
        Ok(common) => common,
        Err(error) => error.exit(),
    };
    let _written = telemetry::WrittenAtEnd;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(run(program, &common, wire)),
        Err(error) => Err(error.into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::say(&format!("{}: {error:#}", program.name));
            ExitCode::FAILURE
        }
    }
}

/// Runs the controller until a signal stops it.
///
/// # Errors
/// When the configuration is wrong or a background task failed; the process is to exit with a failure.
async fn run(program: &Program, common: &CommonArgs, wire: Wire) -> anyhow::Result<()> {
    let log = telemetry::init(common.log.log_level, common.log.dev)
        .context("failed to set up logging")?;
    let metrics = Arc::new(Metrics::new());
    metrics.program(program.name, program.version);
    let tasks = Tasks::new();
    let config = kubeconfig::load(common.kubeconfig.as_deref(), program.user_agent)
        .await
        .context("failed to find the API server")?;
    let server = config.cluster_url.to_string();
    let cluster = Cluster::connect(config, metrics.clone())
        .context("failed to set up the connection to the API server")?;
    let status_keys = status_key::keep(&common.serve, &cluster, &tasks).await;
    let environment = Environment {
        cluster: &cluster,
        status_keys: &status_keys,
        metrics: &metrics,
        tasks: &tasks,
        ytt: &common.ytt,
        ytt_memory: common.ytt_memory_limit,
        limits: common.limits,
    };
    let wired = wire(common, environment);
    let readiness = Arc::new(Readiness::new());
    readiness.require("caches", wired.synced_check());
    let ports = ProbePorts {
        health: common.serve.health_port,
        metrics: common.serve.metrics_port,
    };
    serve(ports, readiness.clone(), metrics.clone(), log, &tasks)
        .await
        .context("failed to serve the probes")?;
    webhook::admit(&common.serve, &cluster, &readiness, &metrics, &tasks)
        .await
        .context("failed to serve the webhooks")?;
    let leadership = leadership(program, common, &cluster, &metrics, &tasks).await?;
    info!(version = program.version, server, "started");
    let terms = Terms {
        shutdown: tasks.token().clone(),
        grace: common.shutdown_deadline(),
        leads: leadership.changes(),
    };
    let stop = async {
        let stopped = tasks.stop_on_signal().await;
        (stopped, Instant::now())
    };
    let ((stopped, since), ()) = tokio::join!(stop, work(&wired, &leadership, terms));
    stopped.context("failed to listen for signals")?;
    leadership.hand_over();
    let rest = common.shutdown_deadline().saturating_sub(since.elapsed());
    tasks
        .join(rest.max(AFTER_WORK))
        .await
        .context("failed to stop in order")?;
    Ok(())
}

/// Works while this replica leads. Caches are kept by every replica, so a new leader starts at once.
async fn work(wired: &Wired, leadership: &Leadership, terms: Terms) {
    if leadership.acquired(&terms.shutdown).await {
        wired.run(&terms).await;
    }
}

async fn leadership(
    program: &Program,
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
        lease.lease_name.as_deref().unwrap_or(program.name),
        lease
            .lease_identity
            .clone()
            .unwrap_or_else(kubeconfig::host_name),
    );
    settings.duration = Duration::from_secs(lease.lease_duration_seconds);
    settings.renew_deadline = Duration::from_secs(lease.lease_renew_deadline_seconds);
    settings.retry = Duration::from_secs(lease.lease_retry_seconds);
    Leadership::elect(
        cluster.controller(),
        settings,
        cluster.clock(),
        metrics.clone(),
        tasks,
    )
    .context("the lease flags do not fit together")
}
