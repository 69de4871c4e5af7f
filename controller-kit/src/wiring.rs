//! Connecting a controller of owners to its watches and queues, and running it.

mod following;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::args::LimitArgs;
use crate::cluster::Cluster;
use crate::events::{EventRecorder, EventSettings};
use crate::mapper::{Kind, Mapper};
use crate::metrics::Metrics;
use crate::openapi::SchemaCache;
use crate::owner::{
    BlueprintFamily, OwnerController, OwnerKind, OwnerShell, Pending, Reconciled, Scopes, Settling,
    Templates, Troubles, Waiters,
};
use crate::scheduler::{OwnerKey, Scheduler, SchedulerConfig, Terms};
use crate::shutdown::Tasks;
use crate::stamped::{ObjectKey, STALE_AFTER, StampedWatches, WatchSettings};
use crate::status_key::StatusKeys;
use crate::submit::Submitter;
use crate::tokens::{TokenCache, TokenSources};
use crate::ytt::{MemoryLimit, Ytt};

use following::follow_blueprints;
pub use following::{Synced, follow_owners};

/// How often unused watches are looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// ytt processes at a time.
pub(crate) const YTT_PROCESSES: usize = 4;

/// What the operator and the controller choose.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Whose objects are reconciled.
    pub kind: OwnerKind,
    /// Owners reconciled at a time.
    pub concurrency: usize,
    /// Our field manager.
    pub field_manager: &'static str,
}

/// What wiring needs of the process.
#[derive(Clone, Copy)]
pub struct Environment<'e> {
    /// Requests.
    pub cluster: &'e Cluster,
    /// Counters.
    pub metrics: &'e Arc<Metrics>,
    /// Where background work is started.
    pub tasks: &'e Tasks,
    /// The ytt binary.
    pub ytt: &'e Path,
    /// The memory that each ytt process may take.
    pub ytt_memory: MemoryLimit,
    /// The key for digests of secret values.
    pub status_keys: &'e StatusKeys,
    /// What one owner may ask for.
    pub limits: LimitArgs,
}

/// A queue and what is done with its keys.
pub struct Queue {
    scheduler: Arc<Scheduler>,
    kind: &'static str,
    reconcile: Arc<dyn Fn(OwnerKey) -> BoxFuture<'static, Reconciled> + Send + Sync>,
}

impl Queue {
    /// Reconciles the objects of `kind` that `scheduler` names.
    pub fn new<R>(
        scheduler: &Arc<Scheduler>,
        kind: &'static str,
        reconcile: impl Fn(OwnerKey) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = Reconciled> + Send + 'static,
    {
        Self {
            scheduler: scheduler.clone(),
            kind,
            reconcile: Arc::new(move |key| Box::pin(reconcile(key))),
        }
    }
}

/// A wired controller: its watches run, its queues wait to be started.
pub struct Wired {
    shell: Arc<OwnerShell>,
    queues: Vec<Queue>,
    synced: Synced,
    stamped_kinds: StampedKinds,
}

/// The kinds that templates name.
pub type StampedKinds = Arc<dyn Fn() -> BTreeSet<Kind> + Send + Sync>;

/// The parts that every controller of owners has.
pub fn shell(settings: Settings, environment: Environment<'_>) -> Arc<OwnerShell> {
    let Environment {
        cluster,
        metrics,
        tasks,
        ..
    } = environment;
    let clock = cluster.clock();
    let sources = TokenSources {
        clock: clock.clone(),
        jitter: Arc::new(crate::jitter::random),
    };
    let tokens = Arc::new(TokenCache::new(
        cluster.controller().clone(),
        sources,
        metrics.clone(),
    ));
    let events = EventRecorder::start(
        cluster.controller(),
        &EventSettings::default(),
        clock.clone(),
        metrics.clone(),
        tasks,
    );
    let scheduler = queue("owners", settings.concurrency, environment);
    let mapper = Arc::new(Mapper::new(cluster.clone()));
    let waiters = Arc::new(Waiters::default());
    let (waking, freeing, waiting) = (scheduler.clone(), scheduler.clone(), waiters.clone());
    let heard = metrics.clone();
    let watch_settings = WatchSettings {
        label: settings.kind.name_label,
        field_manager: settings.field_manager,
        owner_kind: settings.kind.kind,
        wake: Arc::new(move |namespace: &str, name: &str| {
            OwnerShell::stamped_changed(&waking, namespace, name);
        }),
        moved: Arc::new(move |kind: &Kind, key: &ObjectKey| {
            OwnerShell::object_moved(&freeing, &waiting, kind, key);
        }),
        stale_after: STALE_AFTER,
        hears_others: Arc::new(move |resource| heard.hears_others(resource)),
        clock: clock.clone(),
    };
    let watches = StampedWatches::new(
        cluster.clone(),
        mapper.clone(),
        watch_settings,
        tasks.clone(),
    );
    let submitter = Arc::new(Submitter::new(
        cluster.clone(),
        mapper,
        watches,
        tokens.clone(),
        SchemaCache::default(),
        environment.limits.rendering_bytes(),
    ));
    let shell = Arc::new(OwnerShell {
        kind: settings.kind,
        cluster: cluster.clone(),
        owners: Arc::default(),
        accounts: Arc::default(),
        submitter,
        tokens,
        events,
        scheduler,
        metrics: metrics.clone(),
        clock,
        field_manager: settings.field_manager,
        waiters,
        pending: Pending::default(),
        troubles: Troubles::default(),
        settling: Settling::default(),
        scopes: Scopes::default(),
        status_keys: environment.status_keys.clone(),
        limits: environment.limits,
    });
    shell.show_in_metrics();
    shell
}

/// A queue whose depth is a metric.
pub fn queue(
    name: &'static str,
    concurrency: usize,
    environment: Environment<'_>,
) -> Arc<Scheduler> {
    let pulse = environment.cluster.pulse().clone();
    let shown = pulse.clone();
    environment
        .metrics
        .before_gather(move |metrics| metrics.pace(shown.pace()));
    let scheduler = Arc::new(Scheduler::new(SchedulerConfig {
        concurrency,
        congested: Arc::new(move || pulse.is_congested()),
        ..SchedulerConfig::default()
    }));
    scheduler.observe(environment.metrics, name);
    scheduler
}

/// Renders ytt templates for one controller.
pub fn ytt(environment: Environment<'_>) -> Arc<Ytt> {
    Arc::new(Ytt::new(
        environment.ytt.to_owned(),
        YTT_PROCESSES,
        environment.ytt_memory,
        environment.metrics.clone(),
    ))
}

/// Starts a controller of owners that are realized by blueprints.
pub fn wire<F: BlueprintFamily>(
    concurrency: usize,
    field_manager: &'static str,
    environment: Environment<'_>,
) -> Wired {
    let settings = Settings {
        kind: F::FAMILY.into(),
        concurrency,
        field_manager,
    };
    let controller = Arc::new(OwnerController::<F> {
        shell: shell(settings, environment),
        blueprints: Arc::default(),
        templates: Arc::new(Templates::new(F::FAMILY.template_kinds())),
        ytt: ytt(environment),
        blueprint_scheduler: queue("blueprints", 1, environment),
    });
    let mut synced = Synced::default();
    follow_blueprints(&controller, environment, &mut synced);
    follow_owners(&controller.shell, environment, &mut synced);
    let (owners, blueprints) = (controller.clone(), controller.clone());
    let queues = vec![
        Queue::new(
            &controller.shell.scheduler,
            F::FAMILY.owner_kind(),
            move |key| {
                let controller = owners.clone();
                async move { controller.reconcile(&key).await }
            },
        ),
        Queue::new(
            &controller.blueprint_scheduler,
            F::FAMILY.blueprint_kind(),
            move |key| {
                let controller = blueprints.clone();
                async move { controller.reconcile_blueprint(&key).await }
            },
        ),
    ];
    let templates = controller.templates.clone();
    let stamped_kinds: StampedKinds = Arc::new(move || templates.stamped_kinds());
    Wired::new(controller.shell.clone(), queues, synced, stamped_kinds)
}

impl Wired {
    /// A controller whose watches were started.
    pub fn new(
        shell: Arc<OwnerShell>,
        queues: Vec<Queue>,
        synced: Synced,
        stamped_kinds: StampedKinds,
    ) -> Self {
        Self {
            shell,
            queues,
            synced,
            stamped_kinds,
        }
    }

    /// A check for the readiness probe.
    pub(crate) fn synced_check(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let synced = self.synced.clone();
        move || synced.is_synced()
    }

    /// Works on all queues on these terms. Returns when no reconcile runs any more.
    pub async fn run(&self, terms: &Terms) {
        tokio::select! {
            // A process that was never synced is to end all the same.
            () = terms.shutdown.cancelled() => return,
            () = async {
                self.synced.wait().await;
                self.shell.status_keys.known().await;
            } => {}
        }
        let work = self.queues.iter().map(|queue| self.work(queue, terms));
        tokio::join!(futures::future::join_all(work), self.sweep(&terms.shutdown));
    }

    async fn work(&self, queue: &Queue, terms: &Terms) {
        let shell = self.shell.clone();
        let (kind, reconcile) = (queue.kind, queue.reconcile.clone());
        crate::scheduler::run(queue.scheduler.clone(), terms.clone(), move |key| {
            let (shell, reconcile) = (shell.clone(), reconcile.clone());
            async move {
                shell.begin_term();
                let mut timer = shell.metrics.reconcile_timer(kind);
                let reconciled = reconcile(key).await;
                timer.outcome(reconciled.outcome);
                reconciled.next
            }
        })
        .await;
    }

    /// Until the shutdown. What asks the API server may take long, and holds up nothing else.
    async fn sweep(&self, shutdown: &CancellationToken) {
        let sweep = async {
            let mut interval = tokio::time::interval(SWEEP);
            loop {
                interval.tick().await;
                self.shell.sweep();
            }
        };
        let watch_for_left_behind = async {
            let mut interval = tokio::time::interval(SWEEP);
            interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                let kinds = (self.stamped_kinds)();
                self.shell.watch_for_left_behind(kinds).await;
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            ((), ()) = futures::future::join(sweep, watch_for_left_behind) => {}
        }
    }
}
