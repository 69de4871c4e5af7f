//! Connecting a controller of owners to its watches and queues, and running it.

mod following;
mod sharing;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tracing::info;

use super::{
    Artifacts, BlueprintFamily, DependencyIndex, Namespaces, OtherShards, Outages, OwnerController,
    OwnerKind, OwnerShell, Realizes, Scopes, Settling, Shard, ShardError, Templates, ToldOwners,
    blueprint_admission, realizes,
};
use crate::args::{AccountArgs, LimitArgs, OwnerArgs};
use crate::events::{EventRecorder, EventSettings};
use crate::mapper::{Kind, Mapper};
use crate::openapi::SchemaCache;
use crate::process::{Process, Queue, Reconciled, Work};
use crate::scheduler::{Next, Scheduler};
use crate::selections::Selections;
use crate::share::{MayShare, OwnShare};
use crate::stamped::{ObjectKey, STALE_AFTER, StampedWatches, WatchSettings};
use crate::status::StatusWriter;
use crate::status_key::{self, StatusKeys};
use crate::submit::Submitter;
use crate::tokens::{TokenCache, TokenSources};
use crate::ytt::Ytt;

use following::{follow_blueprints, follow_owners};
use sharing::follow_share;

/// How often unused watches are looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// ytt processes at a time.
pub(crate) const YTT_PROCESSES: usize = 4;

/// What the operator and the controller choose.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Whose objects are reconciled.
    pub kind: OwnerKind,
    /// The key for digests of secret values.
    pub status_keys: StatusKeys,
    /// Which service accounts are taken for them.
    pub accounts: AccountArgs,
    /// What one owner may ask for.
    pub limits: LimitArgs,
    /// Which owners are taken.
    pub shard: Shard,
}

impl Settings {
    /// As the flags say.
    ///
    /// # Errors
    /// When the flags do not fit together; the operator must correct them.
    pub async fn new(
        kind: OwnerKind,
        process: &Process,
        args: &OwnerArgs,
    ) -> Result<Self, ShardError> {
        let mut shard = Shard::new(&args.shard)?;
        if args.shard.share_owners {
            let fence = process.cluster.fence().clone();
            shard.share = MayShare(Some(OwnShare::new(&process.identity, fence)));
        }
        Ok(Self {
            kind,
            shard,
            status_keys: status_key::keep(args.status_key_secret.as_deref(), process).await,
            accounts: args.accounts.clone(),
            limits: args.limits,
        })
    }
}

/// The parts that every controller of owners has.
pub fn shell(settings: Settings, process: &Process) -> Arc<OwnerShell> {
    let (cluster, kind) = (&process.cluster, settings.kind);
    let field_manager = process.program.field_manager;
    let scheduler = process.queue("owners", process.concurrency);
    let dependencies = Arc::new(DependencyIndex::default());
    let tokens = tokens(process);
    let watched = wakes_owners(&settings, process, &scheduler, &dependencies);
    let wakes = (&scheduler, &dependencies);
    let artifacts = Artifacts::new(cluster, kind, field_manager, &process.tasks, wakes);
    let namespaces = Namespaces::new(cluster, &process.tasks, wakes);
    let shell = Arc::new(OwnerShell {
        kind,
        cluster: cluster.clone(),
        owners: Arc::default(),
        accounts: Arc::default(),
        submitter: submitter(&settings, process, watched, tokens.clone()),
        selections: Selections::new(cluster, &scheduler, &process.tasks),
        tokens,
        events: events(process),
        scheduler,
        metrics: process.metrics.clone(),
        clock: cluster.clock(),
        field_manager,
        dependencies,
        statuses: StatusWriter::new(cluster, kind.watched(), field_manager)
            .of_share(settings.shard.share.clone()),
        outages: Outages::default(),
        settling: Settling::default(),
        told: ToldOwners::default(),
        scopes: Scopes::default(),
        status_keys: settings.status_keys,
        account_args: settings.accounts,
        limits: settings.limits,
        shard: settings.shard,
        other_shards: OtherShards::new(cluster.clone(), kind),
        artifacts,
        namespaces,
    });
    shell.show_in_metrics();
    shell
}

/// The tokens of the owners' service accounts.
fn tokens(process: &Process) -> Arc<TokenCache> {
    let sources = TokenSources {
        clock: process.cluster.clock(),
        jitter: Arc::new(crate::jitter::random),
    };
    let controller = process.cluster.controller().clone();
    Arc::new(TokenCache::new(
        controller,
        sources,
        process.metrics.clone(),
    ))
}

/// Who writes events, as the controller.
fn events(process: &Process) -> EventRecorder {
    EventRecorder::start(
        process.cluster.controller(),
        &EventSettings::default(),
        process.cluster.clock(),
        process.metrics.clone(),
        &process.tasks,
    )
}

/// What watches of stamped objects wake: the owner of an object that changed, and whoever waits for
/// the place of one that moved.
fn wakes_owners(
    settings: &Settings,
    process: &Process,
    scheduler: &Arc<Scheduler>,
    dependencies: &Arc<DependencyIndex>,
) -> WatchSettings {
    let (waking, freeing, waiting) = (scheduler.clone(), scheduler.clone(), dependencies.clone());
    let (metrics, shard) = (process.metrics.clone(), settings.shard.clone());
    let share = shard.share.clone();
    WatchSettings {
        share,
        label: settings.kind.name_label,
        field_manager: process.program.field_manager,
        owner_kind: settings.kind.kind,
        wake: Arc::new(move |namespace: &str, name: &str| {
            if shard.takes_from(namespace) {
                OwnerShell::stamped_changed(&waking, namespace, name);
            }
        }),
        moved: Arc::new(move |kind: &Kind, key: &ObjectKey| {
            OwnerShell::object_moved(&freeing, &waiting, kind, key);
        }),
        stale_after: STALE_AFTER,
        hears_others: Arc::new(move |resource| metrics.hears_others(resource)),
        clock: process.cluster.clock(),
    }
}

/// What writes stamped objects, as their owners, and watches them.
fn submitter(
    settings: &Settings,
    process: &Process,
    watched: WatchSettings,
    tokens: Arc<TokenCache>,
) -> Arc<Submitter> {
    let cluster = &process.cluster;
    let mapper = Arc::new(Mapper::new(cluster.clone()));
    let tasks = process.tasks.clone();
    let watches = StampedWatches::new(cluster.clone(), mapper.clone(), watched, tasks);
    Arc::new(Submitter::new(
        cluster.clone(),
        mapper,
        watches,
        tokens,
        SchemaCache::default(),
        settings.limits.rendering_bytes(),
    ))
}

/// Renders ytt templates for one controller.
pub fn ytt(process: &Process, args: &OwnerArgs) -> Arc<Ytt> {
    Arc::new(Ytt::new(
        args.ytt.clone(),
        YTT_PROCESSES,
        args.ytt_memory_limit,
        process.metrics.clone(),
    ))
}

/// The work of a process that serves the webhook and does nothing else, if that is what the flags ask for.
///
/// # Errors
/// When nothing is served then; the operator must correct the flags.
pub fn only_webhook(args: &OwnerArgs) -> anyhow::Result<Option<Work>> {
    if !args.only_webhook {
        return Ok(None);
    }
    anyhow::ensure!(
        args.webhook.is_served(),
        "--only-webhook needs a certificate to serve with: --cert-dir or --webhook-secret"
    );
    let mut work = Work::default();
    work.leads_nothing();
    work.admits(blueprint_admission::of_blueprints(&args.webhook));
    Ok(Some(work))
}

/// Starts a controller of owners that are realized by blueprints.
///
/// # Errors
/// When the flags do not fit together; the operator must correct them.
pub async fn start<F: BlueprintFamily>(
    process: &Process,
    args: &OwnerArgs,
) -> anyhow::Result<Work> {
    if let Some(work) = only_webhook(args)? {
        return Ok(work);
    }
    let settings = Settings::new(F::FAMILY.into(), process, args).await?;
    let manager = process.program.field_manager;
    let controller = Arc::new(OwnerController::<F> {
        shell: shell(settings, process),
        blueprints: Arc::default(),
        templates: Arc::new(Templates::new(F::FAMILY.template_kinds())),
        ytt: ytt(process, args),
        blueprint_scheduler: process.queue("blueprints", 1),
        blueprint_statuses: StatusWriter::new(&process.cluster, F::watched(), manager),
    });
    let mut work = Work::default();
    follow_blueprints(&controller, process, &mut work);
    let blueprints = controller.clone();
    let (scheduler, kind) = (&controller.blueprint_scheduler, F::FAMILY.blueprint_kind());
    let reports = controller.shell.queue(scheduler, kind, move |key| {
        let controller = blueprints.clone();
        async move { controller.reconcile_blueprint(&key).await }
    });
    let waking = controller.clone();
    begin_and_wake(&controller, process, args, &mut work, move || {
        waking.wake_blueprints();
    });
    work.reconciles(reports);
    Ok(work)
}

/// Begins what every controller of owners does.
pub fn begin<R: Realizes>(
    controller: &Arc<R>,
    process: &Process,
    args: &OwnerArgs,
    work: &mut Work,
) {
    begin_and_wake(controller, process, args, work, || {});
}

/// The same; `wake_beside` wakes what is reconciled beside the owners, when that falls to this replica.
fn begin_and_wake<R: Realizes>(
    controller: &Arc<R>,
    process: &Process,
    args: &OwnerArgs,
    work: &mut Work,
    wake_beside: impl Fn() + Send + 'static,
) {
    let shell = controller.shell();
    if let Some(shard) = &shell.shard.name {
        let Shard {
            labels, namespaces, ..
        } = &shell.shard;
        info!(%shard, labels, ?namespaces, "takes a part of the owners");
        work.is_of_shard(shard);
    }
    if let Some(share) = &shell.shard.share.0 {
        work.shares(share);
        follow_share(shell, share, process, wake_beside);
    }
    follow_owners(shell, process, work);
    let keys = shell.status_keys.clone();
    work.needs(async move { keys.known().await });
    work.reconciles(realizes::queue(controller));
    work.does_beside(shell.clone().sweep_for_ever());
    work.does_beside(keep_looking_for_left_behind(controller.clone()));
    work.admits(blueprint_admission::of_blueprints(&args.webhook));
}

/// What asks the API server may take long, and holds up nothing else.
async fn keep_looking_for_left_behind<R: Realizes>(controller: Arc<R>) {
    let mut interval = tokio::time::interval(SWEEP);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let kinds = controller.stamped_kinds();
        controller.shell().watch_for_left_behind(kinds).await;
    }
}

impl OwnerShell {
    /// A queue of owners, or of what they are realized by.
    pub(super) fn queue<R>(
        self: &Arc<Self>,
        scheduler: &Arc<Scheduler>,
        kind: &'static str,
        reconcile: impl Fn(ObjectKey) -> R + Send + Sync + 'static,
    ) -> Queue
    where
        R: Future<Output = Reconciled> + Send + 'static,
    {
        let shell = self.clone();
        let reconcile = Arc::new(reconcile);
        Queue::new(scheduler, kind, move |key| {
            let (shell, reconcile) = (shell.clone(), reconcile.clone());
            async move {
                let Some(share) = &shell.shard.share.0 else {
                    shell.begin_term();
                    return reconcile(key).await;
                };
                // What falls to this replica later wakes it then.
                let Some(permit) = share.enter(&key.namespace) else {
                    return Reconciled::gone(Next::Done);
                };
                shell.begin_term();
                tokio::select! {
                    biased;
                    () = permit.dropped() => Reconciled::gone(Next::Done),
                    reconciled = reconcile(key) => reconciled,
                }
            }
        })
    }

    async fn sweep_for_ever(self: Arc<Self>) {
        let mut interval = tokio::time::interval(SWEEP);
        loop {
            interval.tick().await;
            self.sweep();
        }
    }
}
