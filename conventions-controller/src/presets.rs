//! Pod presets: what pods are given when they are created, in a namespace or in many.
//!
//! ```text
//!  watches: presets of three kinds, namespaces (labels) ─▶ entries: compiled once ─▶ index: by namespace, in order
//!                                                                                      │
//!  API server ── pod ─▶ admit ─▶ pod_presets::inject ◀─────────────────────────────────┘
//!                         │ └─▶ answer: patch, warnings, audit annotations
//!                         ├─▶ tell: events of conflicts
//!                         └─▶ counts ─▶ report: status of the preset, every few seconds
//! ```
//!
//! Every replica admits pods, and is ready once it knows all presets. What a preset does to a pod
//! is decided in the crate `pod-presets`, without I/O.

mod admit;
mod answer;
mod counts;
mod entries;
mod index;
mod kinds;
mod metrics;
mod report;
mod restart;
mod rules;
mod stale;
mod status;
mod subject;
mod tell;
mod template;

use std::sync::Arc;
use std::time::Duration;

use controller_kit::events::EventRecorder;
use controller_kit::process::{Process, Synced, Work};
use controller_kit::reflect::{Entry, Reflector};
use controller_kit::webhook::{Route, Routes, routes};
use pod_presets::Origin;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::args::PresetArgs;
use admit::PodAdmission;
use counts::Counts;
use entries::{NamespaceEntry, PresetEntry};
use index::Index;
use metrics::PresetMetrics;
use report::Reporter;
use restart::{Epoch, Restarter};
use rules::Rules;
use tell::Teller;
use template::{NamespaceNews, PresetNews};
pub(crate) use template::{Selected, TemplatePresets, Told, Touches};

/// How long a replica may be not ready because presets are not known.
const LATE: Duration = Duration::from_mins(1);

/// The path of pods.
const PODS: Route = Route {
    path: "/mutate-pods",
    kind: "Pod",
};

/// That of presets themselves, whatever their kind.
const PRESETS: Route = Route {
    path: "/validate-settings-carto-run-v1alpha1-podpreset",
    kind: "PodPreset",
};

/// What is watched.
#[derive(Default)]
struct Stores {
    cluster: Arc<Reflector<PresetEntry>>,
    namespaced: Arc<Reflector<PresetEntry>>,
    old: Arc<Reflector<PresetEntry>>,
    namespaces: Arc<Reflector<NamespaceEntry>>,
}

impl Stores {
    fn of(&self, origin: Origin) -> &Arc<Reflector<PresetEntry>> {
        match origin {
            Origin::Cluster => &self.cluster,
            Origin::Namespaced => &self.namespaced,
            Origin::NamespacedOld => &self.old,
        }
    }

    /// Of a kind that was never listed because the API server refuses that: the kind, and what it
    /// says. What was listed once goes on.
    fn refused(&self) -> Option<(&'static str, String)> {
        let of_presets = Origin::ALL.into_iter().find_map(|origin| {
            let refused = never_listed(self.of(origin))?;
            Some((origin.kind(), refused))
        });
        of_presets.or_else(|| Some((kinds::NAMESPACES.kind, never_listed(&self.namespaces)?)))
    }
}

fn never_listed<E: Entry>(store: &Reflector<E>) -> Option<String> {
    // Asked about each pod: what was listed costs no look at why another is not.
    (!store.is_synced()).then(|| store.refused()).flatten()
}

/// What changes with a watch.
#[derive(Default)]
struct News {
    /// A preset appeared, changed or went.
    presets: Notify,
    /// A namespace did.
    namespaces: Notify,
}

/// Follows presets from now on. Says where pods and presets are admitted.
pub(crate) fn serve(
    process: &Process,
    args: &PresetArgs,
    events: &EventRecorder,
    work: &mut Work,
    told: &Told,
) -> (Routes, TemplatePresets) {
    let stores = Arc::new(Stores::default());
    let (index, news) = (Arc::new(Index::default()), Arc::new(News::default()));
    let epoch = Arc::<Epoch>::default();
    let told = also_begins(&epoch, told);
    let synced = follow(process, &stores, &index, &news, &told);
    work.is_ready_when("pod presets", ready_or_late(synced.clone(), Instant::now()));
    let metrics = Arc::new(PresetMetrics::new(&process.metrics.build()));
    let counts = Arc::new(Counts::new(process.cluster.clock()));
    let pods = PodAdmission {
        stores: stores.clone(),
        synced: synced.clone(),
        teller: Teller(events.clone()),
        counts: counts.clone(),
        room: PodAdmission::room(),
        ephemeral: args.preset_ephemeral_containers,
        metrics: metrics.clone(),
        index,
        news: news.clone(),
        judge: admit::judge,
    };
    let counted = stores.clone();
    let shown = metrics.clone();
    process
        .metrics
        .before_gather(move |_| show(&counted, &shown));
    let templates = TemplatePresets {
        index: pods.index.clone(),
        stores: stores.clone(),
        synced: synced.clone(),
    };
    let reporter = Reporter::new(process, &stores, &counts, &news);
    let restarter = args.restart_stale_owners.map(|per_minute| {
        let presets = templates.clone();
        Restarter::new(process, presets, events.clone(), epoch, per_minute)
    });
    reporter.start(process, args, &metrics, synced, restarter, work);
    let mut all = routes(&[PODS], pods);
    all.extend(routes(&[PRESETS], Rules::new(args)));
    (all, templates)
}

/// Whoever is told, there is another epoch.
fn also_begins(epoch: &Arc<Epoch>, told: &Told) -> Told {
    let (epoch, told) = (epoch.clone(), told.clone());
    Arc::new(move |news| {
        epoch.begin();
        told(news);
    })
}

/// Whether presets are known, or so late that there is something in the way, such as a right that is
/// missing. Pods are admitted as they are then, with a warning; to be not ready any longer would only
/// keep what the process does for PodIntents from those who ask for it.
fn ready_or_late(synced: Synced, started: Instant) -> impl Fn() -> bool + Send + Sync {
    move || synced.is_synced() || started.elapsed() >= LATE
}

/// Follows what pods may get. None of the kinds has to be installed. PodIntents wait for nothing of
/// it, but for those whose templates get presets.
fn follow(
    process: &Process,
    stores: &Arc<Stores>,
    index: &Arc<Index>,
    news: &Arc<News>,
    told: &Told,
) -> Synced {
    let mut work = Work::default();
    for origin in Origin::ALL {
        let (index, news) = (index.clone(), news.clone());
        let (told, known) = (told.clone(), stores.clone());
        work.follow_if_installed(
            process,
            "preset-watch",
            stores.of(origin),
            kinds::watched(origin),
            move |change| {
                index.changed(&change);
                news.presets.notify_one();
                if let Some(news) = PresetNews::of(&change, &known) {
                    told(&news);
                }
            },
        );
    }
    let (index, news, told) = (index.clone(), news.clone(), told.clone());
    let client = process.cluster.controller().clone();
    work.follow(
        &process.tasks,
        "namespace-watch",
        &stores.namespaces,
        kinds::NAMESPACES.metadata(client),
        move |change| {
            news.namespaces.notify_waiters();
            if let Some(news) = NamespaceNews::of(&change, &index) {
                told(&news);
            }
        },
    );
    work.synced()
}

/// How many presets there are.
fn show(stores: &Stores, metrics: &PresetMetrics) {
    let (mut valid, mut invalid) = ([0; 2], [0; 2]);
    for origin in Origin::ALL {
        let kind = usize::from(origin.is_namespaced());
        stores.of(origin).for_each(|entry| {
            valid[kind] += usize::from(entry.compiled.is_ok());
            invalid[kind] += usize::from(entry.compiled.is_err());
        });
    }
    for (kind, name) in [Origin::Cluster.kind(), Origin::Namespaced.kind()]
        .into_iter()
        .enumerate()
    {
        metrics.presets(name, valid[kind], invalid[kind]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn presets_that_nobody_may_read_keep_a_replica_from_being_ready_for_a_minute_only() {
        let unknown: Arc<Reflector<PresetEntry>> = Arc::default();
        let mut work = Work::default();
        let events = futures::stream::pending();
        work.follow(
            &controller_kit::shutdown::Tasks::new(),
            "preset-watch",
            &unknown,
            Box::pin(events),
            |_| {},
        );
        let is_ready = ready_or_late(work.synced(), Instant::now());
        assert!(!is_ready());
        tokio::time::advance(LATE).await;
        assert!(is_ready());
    }
}
