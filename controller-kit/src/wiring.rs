//! Connecting an owner controller to its watches and queues, and running it.

use std::borrow::Borrow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use realizer::Family;
use tokio::sync::watch as signal;

use crate::cluster::Cluster;
use crate::events::{EventRecorder, EventSettings};
use crate::mapper::Mapper;
use crate::metrics::Metrics;
use crate::openapi::SchemaCache;
use crate::owner::{BlueprintEntry, Clock, OwnerController, Parts, Templates};
use crate::reflect::{Entry, Reflector, Watched, follow_changes};
use crate::scheduler::{Scheduler, SchedulerConfig};
use crate::shutdown::Tasks;
use crate::stamped::{StampedWatches, WatchSettings};
use crate::submit::Submitter;
use crate::tokens::{TokenCache, TokenSources};
use crate::ytt::Ytt;

/// How often unused watches are looked for.
const SWEEP: Duration = Duration::from_secs(10);
/// ytt processes at a time.
const YTT_PROCESSES: usize = 4;

/// What the operator chooses.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Workloads or Deliverables.
    pub family: Family,
    /// Owners reconciled at a time.
    pub concurrency: usize,
    /// Our field manager.
    pub field_manager: &'static str,
    /// The ytt binary.
    pub ytt: PathBuf,
}

/// A wired controller: its watches run, its queues wait to be started.
pub struct Wired<B> {
    /// The controller.
    pub controller: Arc<OwnerController<B>>,
    /// Queue of owners.
    pub scheduler: Arc<Scheduler>,
    /// Queue of blueprints.
    pub blueprint_scheduler: Arc<Scheduler>,
    synced: Vec<signal::Receiver<bool>>,
}

/// Starts all watches of an owner controller.
pub fn wire<B>(
    settings: &Settings,
    cluster: &Cluster,
    metrics: &Arc<Metrics>,
    tasks: &Tasks,
) -> Wired<B>
where
    B: Entry + Borrow<BlueprintEntry>,
{
    let family = settings.family;
    let clock: Clock = Arc::new(wall_clock);
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
    let scheduler = Arc::new(Scheduler::new(SchedulerConfig {
        concurrency: settings.concurrency,
        ..SchedulerConfig::default()
    }));
    let blueprint_scheduler = Arc::new(Scheduler::new(SchedulerConfig {
        concurrency: 1,
        ..SchedulerConfig::default()
    }));
    scheduler.observe(metrics, "owners");
    blueprint_scheduler.observe(metrics, "blueprints");
    let mapper = Arc::new(Mapper::new(cluster.clone()));
    let waking = scheduler.clone();
    let watch_settings = WatchSettings {
        label: family.owner_name_label(),
        field_manager: settings.field_manager,
        owner_kind: family.owner_kind(),
        wake: Arc::new(move |namespace: &str, name: &str| {
            OwnerController::<B>::stamped_changed(&waking, namespace, name);
        }),
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
    ));
    let controller = OwnerController::new(Parts {
        family,
        cluster: cluster.clone(),
        owners: Arc::default(),
        blueprints: Arc::default(),
        templates: Arc::new(Templates::new(family.template_kinds())),
        accounts: Arc::default(),
        submitter,
        tokens,
        ytt: Arc::new(Ytt::new(
            settings.ytt.clone(),
            YTT_PROCESSES,
            metrics.clone(),
        )),
        events,
        scheduler: scheduler.clone(),
        blueprint_scheduler: blueprint_scheduler.clone(),
        metrics: metrics.clone(),
        clock,
        field_manager: settings.field_manager,
    });
    let synced = follow(&controller, cluster, tasks);
    Wired {
        controller,
        scheduler,
        blueprint_scheduler,
        synced,
    }
}

/// The time of day.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the clock enters"
)]
pub fn wall_clock() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Every watch, and whom its events wake.
fn follow<B>(
    controller: &Arc<OwnerController<B>>,
    cluster: &Cluster,
    tasks: &Tasks,
) -> Vec<signal::Receiver<bool>>
where
    B: Entry + Borrow<BlueprintEntry>,
{
    let family = controller.family();
    let client = || cluster.controller().clone();
    let token = || tasks.token().clone();
    let mut synced = Vec::new();
    for (kind, store) in controller.templates().stores() {
        let (store, told) = (store.clone(), controller.clone());
        synced.push(store.synced_signal());
        let events = Watched::carto(kind, template_plural(kind)).objects(client());
        tasks.spawn(
            "template-watch",
            store.follow(events, token(), move |change| {
                told.template_changed(kind, &change);
            }),
        );
    }
    let blueprints = Watched::carto(family.blueprint_kind(), family.blueprint_plural());
    let told = controller.clone();
    synced.push(spawn(
        tasks,
        "blueprint-watch",
        controller.blueprints(),
        blueprints.objects(client()),
        move |change| told.blueprint_changed(&change),
    ));
    let accounts = Watched {
        group: "",
        version: "v1",
        kind: "ServiceAccount",
        plural: "serviceaccounts",
    };
    let told = controller.clone();
    synced.push(spawn(
        tasks,
        "account-watch",
        controller.accounts(),
        accounts.metadata(client()),
        move |change| told.account_changed(&change),
    ));
    let told = controller.clone();
    let owners = Watched::carto(family.owner_kind(), family.owner_plural());
    synced.push(spawn(
        tasks,
        "owner-watch",
        controller.owners(),
        owners.objects(client()),
        move |change| told.owner_changed(&change),
    ));
    for (kind, plural) in [
        ("Role", "roles"),
        ("RoleBinding", "rolebindings"),
        ("ClusterRole", "clusterroles"),
        ("ClusterRoleBinding", "clusterrolebindings"),
    ] {
        let watched = Watched {
            group: "rbac.authorization.k8s.io",
            version: "v1",
            kind,
            plural,
        };
        let told = controller.clone();
        let happened = move |key: Option<&crate::stamped::ObjectKey>| {
            told.rights_changed(key.map(|key| &*key.namespace));
        };
        tasks.spawn(
            "rights-watch",
            follow_changes(
                watched.metadata(client()),
                token(),
                signal::Sender::new(false),
                happened,
            ),
        );
    }
    let definitions = Watched {
        group: "apiextensions.k8s.io",
        version: "v1",
        kind: "CustomResourceDefinition",
        plural: "customresourcedefinitions",
    };
    let told = controller.clone();
    let happened = move |key: Option<&crate::stamped::ObjectKey>| match key {
        Some(key) => told.definition_changed(&key.name),
        None => told.definitions_missed(),
    };
    tasks.spawn(
        "definition-watch",
        follow_changes(
            definitions.metadata(client()),
            token(),
            signal::Sender::new(false),
            happened,
        ),
    );
    synced
}

fn spawn<E: Entry>(
    tasks: &Tasks,
    name: &'static str,
    store: &Arc<Reflector<E>>,
    events: crate::reflect::Events,
    changed: impl Fn(crate::reflect::Change<'_, E>) + Send + 'static,
) -> signal::Receiver<bool> {
    let synced = store.synced_signal();
    tasks.spawn(
        name,
        store.clone().follow(events, tasks.token().clone(), changed),
    );
    synced
}

fn template_plural(kind: &str) -> &'static str {
    match kind {
        "ClusterSourceTemplate" => "clustersourcetemplates",
        "ClusterImageTemplate" => "clusterimagetemplates",
        "ClusterConfigTemplate" => "clusterconfigtemplates",
        "ClusterDeploymentTemplate" => "clusterdeploymenttemplates",
        _ => "clustertemplates",
    }
}

impl<B> Wired<B>
where
    B: Entry + Borrow<BlueprintEntry>,
{
    /// Whether everything was listed once.
    pub fn is_synced(&self) -> bool {
        self.synced.iter().all(|synced| *synced.borrow())
    }

    /// A check for the readiness probe.
    pub fn synced_check(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let synced = self.synced.clone();
        move || synced.iter().all(|synced| *synced.borrow())
    }

    /// Waits until everything was listed once: before that, a template that exists would look missing.
    pub async fn synced(&self) {
        for synced in &self.synced {
            // The sender lives as long as the store, which the controller holds.
            let _ = synced.clone().wait_for(|synced| *synced).await;
        }
    }

    /// Pauses the queues when this replica does not lead, and resumes them when it does.
    pub fn lead(&self, leads: bool) {
        for queue in [&self.scheduler, &self.blueprint_scheduler] {
            if leads { queue.resume() } else { queue.pause() }
        }
    }

    /// Works on both queues until shutdown. Returns when running reconciles have ended.
    pub async fn run(&self, tasks: &Tasks) {
        tokio::select! {
            // A process that was never synced is to end all the same.
            () = tasks.token().cancelled() => return,
            () = self.synced() => {}
        }
        let owners = self.controller.clone();
        let blueprints = self.controller.clone();
        let kind = self.controller.family().owner_kind();
        let blueprint_kind = self.controller.family().blueprint_kind();
        let metrics = self.controller.metrics().clone();
        let counted = metrics.clone();
        let sweeper = self.controller.clone();
        let cancelled = tasks.token().clone();
        let sweep = async move {
            let mut interval = tokio::time::interval(SWEEP);
            loop {
                tokio::select! {
                    () = cancelled.cancelled() => return,
                    _ = interval.tick() => sweeper.sweep(),
                }
            }
        };
        let reconcile_owners =
            crate::scheduler::run(self.scheduler.clone(), tasks.token().clone(), move |key| {
                let (controller, metrics) = (owners.clone(), metrics.clone());
                async move {
                    let _timer = metrics.reconcile_timer(kind);
                    controller.reconcile(&key).await
                }
            });
        let reconcile_blueprints = crate::scheduler::run(
            self.blueprint_scheduler.clone(),
            tasks.token().clone(),
            move |key| {
                let (controller, metrics) = (blueprints.clone(), counted.clone());
                async move {
                    let _timer = metrics.reconcile_timer(blueprint_kind);
                    controller.reconcile_blueprint(&key).await
                }
            },
        );
        tokio::join!(reconcile_owners, reconcile_blueprints, sweep);
    }
}
