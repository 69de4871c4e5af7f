//! The process of a controller, from the command line to the last task; the same for all of them.
//!
//! ```text
//! main ─▶ flags ─▶ logs ─▶ connection ─▶ start() of the controller ─▶ probes, webhooks ─▶ election ─▶ queues ─▶ end
//!                                        gets a Process, gives Work
//! ```
//!
//! Of owners and blueprints nothing is known here. What a controller of those has in common with others of its sort is in
//! `owner`.

mod reconciled;
mod work;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::time::Instant;
use tracing::info;

pub use reconciled::Reconciled;
pub use work::{Queue, Synced, Work};

use crate::args::{ConcurrencyFlag, Parsed, ProcessArgs};
use crate::cluster::Cluster;
use crate::lease::{Leadership, LeaseSettings};
use crate::metrics::Metrics;
use crate::probes::{ProbePorts, Readiness, serve};
use crate::scheduler::{Scheduler, SchedulerConfig, Terms};
use crate::share::take_part;
use crate::shutdown::Tasks;
use crate::telemetry::{Exporter, Traces};
use crate::{kubeconfig, telemetry};

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
    /// The flag for how many objects it reconciles at once.
    pub concurrency: ConcurrencyFlag,
}

/// What a process gives to the controller that runs in it. Clones are of the same process.
#[derive(Clone)]
pub struct Process {
    /// Which controller this is.
    pub program: Program,
    /// Requests.
    pub cluster: Cluster,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Where background work is started.
    pub tasks: Tasks,
    /// Objects that are reconciled at once.
    pub concurrency: usize,
    /// The name of this replica, which no other has.
    pub identity: String,
    own_namespace: Option<String>,
    /// How long it waits at least for its tasks when it ends.
    pub(crate) patience: Duration,
}

impl Process {
    /// Of a cluster that is there already (tests script one).
    pub fn new(program: Program, cluster: Cluster, metrics: Arc<Metrics>, tasks: Tasks) -> Self {
        Self {
            program,
            cluster,
            metrics,
            tasks,
            concurrency: 1,
            identity: program.name.to_owned(),
            own_namespace: None,
            patience: AFTER_WORK,
        }
    }

    /// A queue whose depth is a metric.
    pub fn queue(&self, name: &'static str, concurrency: usize) -> Arc<Scheduler> {
        let api_latency = self.cluster.api_latency().clone();
        let shown = api_latency.clone();
        self.metrics
            .before_gather(move |metrics| metrics.latency(shown.latency()));
        let scheduler = Arc::new(Scheduler::new(SchedulerConfig {
            concurrency,
            congested: Arc::new(move || api_latency.is_congested()),
            ..SchedulerConfig::default()
        }));
        scheduler.observe(&self.metrics, name);
        scheduler
    }

    /// The namespace that it runs in, as it was told or as its pod says; outside of a cluster `default`.
    pub async fn own_namespace(&self) -> String {
        match &self.own_namespace {
            Some(namespace) => namespace.clone(),
            None => kubeconfig::own_namespace().await,
        }
    }

    /// The namespace that it runs in; none outside of a cluster, unless it was told one.
    pub async fn known_namespace(&self) -> Option<String> {
        let is_known = self.own_namespace.is_some() || kubeconfig::in_cluster().await;
        if is_known {
            Some(self.own_namespace().await)
        } else {
            None
        }
    }
}

/// The whole of a controller's `main`: runs it and tells the shell how it ended. `start` begins to follow what the
/// controller needs to know, and says what there is to do.
pub fn main<F: Args>(
    program: &Program,
    start: impl AsyncFnOnce(&Process, &F) -> anyhow::Result<Work>,
) -> ExitCode {
    // Two providers in one process would panic at first use, so the choice is made here, once.
    if rustls::crypto::ring::default_provider()
        .install_default()
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    let args = match Parsed::parse(program, std::env::args_os()) {
        Ok(args) => args,
        Err(error) => error.exit(),
    };
    let _written = telemetry::WrittenAtEnd;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(run(program, &args, start));
            // A look-up of a name may hang in a thread of its own, which dropping the runtime would wait for.
            runtime.shutdown_background();
            ended
        }
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
async fn run<F>(
    program: &Program,
    args: &Parsed<F>,
    start: impl AsyncFnOnce(&Process, &F) -> anyhow::Result<Work>,
) -> anyhow::Result<()> {
    let Parsed { process: args, own } = args;
    let (traces, exporter) = exporting(program, args)?.unzip();
    let log = telemetry::init(args.log.log_level, args.log.dev, traces)
        .context("failed to set up logging")?;
    let (process, server) = connect(program, args).await?;
    let (metrics, tasks) = (&process.metrics, &process.tasks);
    let mut work = start(&process, own).await?;
    let readiness = Arc::new(Readiness::new());
    readiness.require("caches", work.synced_check());
    for (name, check) in work.ready.drain(..) {
        readiness.require(name, check);
    }
    let ports = ProbePorts {
        health: args.serve.health_port,
        metrics: args.serve.metrics_port,
    };
    serve(ports, readiness.clone(), metrics.clone(), log, tasks)
        .await
        .context("failed to serve the probes")?;
    if let Some(admission) = work.admission.take() {
        let served = admission.serve(&process, &readiness).await;
        served.context("failed to serve the webhooks")?;
    }
    let leadership = if work.leads_nothing {
        Leadership::always(metrics)
    } else {
        leadership(args, &process, &work).await?
    };
    info!(version = program.version, server, "started");
    let terms = Terms {
        shutdown: tasks.token().clone(),
        grace: args.shutdown_deadline(),
        leads: leadership.changes(),
    };
    let stop = async {
        let stopped = tasks.stop_on_signal().await;
        (stopped, Instant::now())
    };
    let ((stopped, since), ()) = tokio::join!(stop, lead(work, metrics, &leadership, terms));
    stopped.context("failed to listen for signals")?;
    leadership.hand_over();
    let rest = args.shutdown_deadline().saturating_sub(since.elapsed());
    tasks
        .join(rest.max(AFTER_WORK))
        .await
        .context("failed to stop in order")?;
    if let Some(exporter) = exporter {
        exporter.end().await;
    }
    Ok(())
}

/// Where traces go, if anywhere.
fn exporting(program: &Program, args: &ProcessArgs) -> anyhow::Result<Option<(Traces, Exporter)>> {
    let Some(endpoint) = &args.log.otlp_endpoint else {
        return Ok(None);
    };
    telemetry::exporting(endpoint, program.name, program.version)
        .map(Some)
        .context("the collector of --otlp-endpoint cannot be used")
}

/// The process, and the address of its API server.
async fn connect(program: &Program, args: &ProcessArgs) -> anyhow::Result<(Process, String)> {
    let metrics = Arc::new(Metrics::new());
    metrics.program(program.name, program.version);
    let config = kubeconfig::load(args.kubeconfig.as_deref(), program.user_agent)
        .await
        .context("failed to find the API server")?;
    let server = config.cluster_url.to_string();
    let cluster = Cluster::connect(config, metrics.clone())
        .context("failed to set up the connection to the API server")?;
    let process = Process {
        concurrency: args.concurrency,
        identity: args
            .lease
            .lease_identity
            .clone()
            .unwrap_or_else(kubeconfig::host_name),
        own_namespace: args.serve.own_namespace.clone(),
        patience: args.shutdown_deadline().max(AFTER_WORK),
        ..Process::new(*program, cluster, metrics, Tasks::new())
    };
    Ok((process, server))
}

/// Works while this replica leads. Caches are kept by every replica, so a new leader starts at once.
async fn lead(work: Work, metrics: &Arc<Metrics>, leadership: &Leadership, terms: Terms) {
    if leadership.acquired(&terms.shutdown).await {
        work.run(&terms, metrics).await;
    }
}

async fn leadership(
    args: &ProcessArgs,
    process: &Process,
    work: &Work,
) -> anyhow::Result<Leadership> {
    let (lease, metrics) = (&args.lease, &process.metrics);
    let in_cluster = kubeconfig::in_cluster().await;
    let elects = lease
        .leader_elect
        .unwrap_or_else(|| in_cluster || work.share.is_some());
    if !elects {
        if work.share.is_some() {
            anyhow::bail!(
                "--share-owners needs the Lease by which replicas know of one another; take --leader-elect=false away"
            );
        }
        return Ok(Leadership::always(metrics));
    }
    let namespace = match &lease.lease_namespace {
        Some(namespace) => namespace.clone(),
        None => process.own_namespace().await,
    };
    let usual = process.program.name;
    let usual = work
        .shard
        .as_deref()
        .map_or_else(|| usual.to_owned(), |shard| format!("{usual}-{shard}"));
    let name = lease.lease_name.clone();
    let mut settings = LeaseSettings::new(namespace, name.unwrap_or(usual), &process.identity);
    lease.patience(work.share.is_some(), &mut settings);
    let (client, clock) = (process.cluster.controller(), process.cluster.clock());
    let (metrics, tasks) = (metrics.clone(), &process.tasks);
    let leadership = match &work.share {
        Some(share) => take_part(client, settings, clock, metrics, (tasks, share.clone())),
        None => Leadership::elect(client, settings, clock, metrics, tasks),
    };
    leadership.context("the lease flags do not fit together")
}
