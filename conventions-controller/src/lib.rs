//! Applies pod conventions to PodIntents, and presets to pods.
//!
//! ```text
//! watches: PodIntents, ClusterPodConventions, ServiceAccounts, Secrets (metadata) ─▶ controller.rs: who is woken
//!                                                                                        │
//!          plan.rs (what is to be done; digest of all inputs) ◀── reconcile.rs ◀─────────┘
//!          realize.rs (images, webhooks) ─▶ conventions::chain ─▶ report.rs (status, events)
//! ```
//!
//! What pods get from presets is served beside that, by every replica: `presets.rs`.
//!
//! A separate deployable: it speaks with the other controllers only through objects and their
//! status on the API server. All decisions are in the crate `conventions`, without I/O; what it
//! shares with other controllers is in `controller-kit`.

mod admission;
mod again;
mod args;
mod authority;
mod conclusion;
mod controller;
mod entries;
mod fault;
mod images;
mod kept;
mod log;
mod memory;
mod metrics;
mod patience;
mod plan;
mod presets;
mod realize;
mod reconcile;
mod remembered;
mod report;
mod resync;
mod rollout;
mod room;
mod secrets;
mod tally;
mod trouble;

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock, Weak};

use anyhow::Context as _;
use controller_kit::args::ConcurrencyFlag;
use controller_kit::events::{EventRecorder, EventSettings};
use controller_kit::process::{Process, Program, Queue, Work};
use controller_kit::reflect::Watched;
use controller_kit::status::StatusWriter;
use controller_kit::waiting::WaitIndex;
use controller_kit::webhook::Routes;
use convention_client::Clients;
use image_registry::Images;
use parking_lot::Mutex;

pub use args::{ConventionArgs, ImageArgs, PresetArgs};
use authority::Authorities;
use controller::{CONVENTIONS, INTENTS, IntentController, Options, Stores};
use kept::KeptPasses;
use metrics::ConventionMetrics;
use patience::Patience;
use presets::{TemplatePresets, Told};
use remembered::Remembered;
use resync::Resync;
use rollout::Rollout;
use room::AnswersRoom;
use tally::{CONFIG_MAPS, Tally};
use trouble::Troubles;

/// This controller.
pub const PROGRAM: Program = Program {
    name: "conventions-controller",
    about: "Applies pod conventions to PodIntents

Asks the webhook of each ClusterPodConvention that selects a PodIntent what it would have the pod template be, and puts the \
result into the PodIntent's status.",
    version: env!("CARGO_PKG_VERSION"),
    user_agent: concat!("carto-conventions/", env!("CARGO_PKG_VERSION")),
    field_manager: "carto-conventions",
    concurrency: ConcurrencyFlag::new("max-concurrent-podintents", "PodIntents"),
};

const ACCOUNTS: Watched = Watched {
    group: "",
    version: "v1",
    kind: "ServiceAccount",
    plural: "serviceaccounts",
};

/// Those of cert-manager, which need not be installed.
const CERTIFICATE_REQUESTS: Watched = Watched {
    group: "cert-manager.io",
    version: "v1",
    kind: "CertificateRequest",
    plural: "certificaterequests",
};

/// Starts its watches.
///
/// # Errors
/// When the flags do not fit together; the operator must correct them.
pub async fn start(process: &Process, args: &ConventionArgs) -> anyhow::Result<Work> {
    let mut work = Work::default();
    let events = events(process);
    // First of all: pods wait for them, and for nothing that follows.
    let told = Arc::<OnceLock<Weak<IntentController>>>::default();
    let (presets, templates) = if args.presets.pod_presets {
        let told = preset_news(&told);
        let (routes, known) = presets::serve(process, &args.presets, &events, &mut work, &told);
        (routes, Some(known))
    } else {
        (Routes::new(), None)
    };
    let controller = Arc::new(controller(process, args, events, templates)?);
    told.get_or_init(|| Arc::downgrade(&controller));
    follow(&controller, process, &mut work);
    let counted = Arc::downgrade(&controller);
    process.metrics.before_gather(move |metrics| {
        if let Some(controller) = counted.upgrade() {
            metrics.owners(INTENTS.kind, &controller.count());
        }
    });
    work.admits(admission::admission(args, presets));
    if args.metrics_configmap {
        let namespace = process.own_namespace().await;
        keep_counts(&controller, process, &namespace, &mut work);
    }
    let queued = controller.clone();
    work.reconciles(Queue::new(
        &controller.scheduler,
        INTENTS.kind,
        move |key| {
            let controller = queued.clone();
            async move { controller.reconcile(&key).await }
        },
    ));
    Ok(work)
}

/// Tells the controller of presets that changed. Before there is one, nobody waits for them.
fn preset_news(controller: &Arc<OnceLock<Weak<IntentController>>>) -> Told {
    let controller = controller.clone();
    Arc::new(move |change| {
        if let Some(controller) = controller.get().and_then(Weak::upgrade) {
            controller.presets_changed(change);
        }
    })
}

fn events(process: &Process) -> EventRecorder {
    EventRecorder::start(
        process.cluster.controller(),
        &EventSettings::default(),
        process.cluster.clock(),
        process.metrics.clone(),
        &process.tasks,
    )
}

fn controller(
    process: &Process,
    args: &ConventionArgs,
    events: EventRecorder,
    presets: Option<TemplatePresets>,
) -> anyhow::Result<IntentController> {
    let (cluster, clock) = (&process.cluster, process.cluster.clock());
    let metrics = Arc::new(ConventionMetrics::new(&process.metrics.build()));
    let images = Images::new(args.images.settings(), metrics.clone())
        .context("images cannot be read as the flags say")?;
    let clients = Clients::new(args.client(process.program.user_agent))
        .context("webhooks cannot be called")?;
    let resolution = args.images.resolution();
    let resolve_at_end = args.resolve_images_at_end;
    Ok(IntentController {
        stores: Stores::default(),
        cluster: cluster.clone(),
        scheduler: process.queue("podintents", process.concurrency),
        dependencies: WaitIndex::default(),
        images,
        clients,
        answers: AnswersRoom::new(args.webhook_answers_memory, args.max_webhook_answer),
        metrics,
        authorities: Authorities::default(),
        has_begun: AtomicBool::new(false),
        replica: process.metrics.clone(),
        term: AtomicU64::new(0),
        patience: Patience::default(),
        counts_changed: Arc::default(),
        options: Options {
            resolve_at_end,
            resolution: format!("{resolution} {resolve_at_end}"),
            most_request_bytes: u64::from(args.max_webhook_request) << 20,
        },
        presets,
        statuses: StatusWriter::new(cluster, INTENTS, process.program.field_manager),
        events,
        clock,
        resync: Resync::new(args.resync(), controller_kit::jitter::random),
        rollout: Rollout::new(args.convention_rollout_per_second),
        written: Mutex::default(),
        kept: KeptPasses::default(),
        remembered: Remembered::default(),
        troubles: Troubles::default(),
    })
}

/// Keeps the ConfigMap of counts.
fn keep_counts(
    controller: &Arc<IntentController>,
    process: &Process,
    namespace: &str,
    work: &mut Work,
) {
    let changed = &controller.counts_changed;
    let manager = process.program.field_manager;
    let tally = Tally::new(&process.cluster, namespace, manager, changed);
    let client = process.cluster.controller().clone();
    let told = changed.clone();
    work.follow(
        &process.tasks,
        "tally-watch",
        &tally.stored,
        CONFIG_MAPS.named(client, namespace, &tally.key.name),
        move |_| told.notify_one(),
    );
    let counted = controller.clone();
    work.does_beside(async move { tally.keep(&counted.stores).await });
}

/// Follows all that PodIntents depend on.
fn follow(controller: &Arc<IntentController>, process: &Process, work: &mut Work) {
    let client = || process.cluster.controller().clone();
    let (tasks, stores) = (&process.tasks, &controller.stores);
    let told = controller.clone();
    work.follow(
        tasks,
        "convention-watch",
        &stores.conventions,
        CONVENTIONS.objects(client()),
        move |change| told.convention_changed(&change),
    );
    let told = controller.clone();
    work.follow(
        tasks,
        "account-watch",
        &stores.accounts,
        ACCOUNTS.objects(client()),
        move |change| told.account_changed(&change),
    );
    let told = controller.clone();
    work.follow(
        tasks,
        "secret-watch",
        &stores.secrets,
        secrets::SECRETS.metadata(client()),
        move |change| told.secret_changed(&change),
    );
    let told = controller.clone();
    work.follow_if_installed(
        process,
        "certificate-watch",
        &stores.requests,
        CERTIFICATE_REQUESTS,
        move |change| told.request_changed(&change),
    );
    let told = controller.clone();
    work.follow(
        tasks,
        "intent-watch",
        &stores.intents,
        INTENTS.objects(client()),
        move |change| told.intent_changed(&change),
    );
}
