//! The labels of namespaces, for blueprints that ask for them (docs/behaviour/selection.md#namespaces).
//!
//! Namespaces are watched, by their metadata alone, from the first time on that an owner is reconciled whose blueprint asks
//! for them. Where none does, nothing is asked and nothing is held. Tenants of the default roles cannot write namespaces, so
//! their labels are believed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch as signal;
use tokio::time::{Instant, timeout};

use super::{Dependency, DependencyIndex};
use crate::cluster::Cluster;
use crate::reflect::{Change, Entry, Reflector, Watched};
use crate::scheduler::{Lane, Scheduler};
use crate::shutdown::Tasks;
use crate::stamped::{ObjectKey, string_map};
use crate::submit::Unavailable;

const WATCHED: Watched = Watched {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
};
/// How long a reconcile waits for the first listing, before it makes room for others.
const LISTING: Duration = Duration::from_secs(2);

/// The labels of one namespace, or why they may not be read.
pub(super) type NamespaceLabels = Result<BTreeMap<String, String>, String>;

/// The labels of one namespace.
struct NamespaceEntry {
    labels: BTreeMap<String, String>,
}

impl Entry for NamespaceEntry {
    fn build(object: Value) -> Self {
        Self {
            labels: string_map(&object["metadata"]["labels"]),
        }
    }
}

/// The labels of all namespaces.
pub struct Namespaces {
    cluster: Cluster,
    tasks: Tasks,
    wakes: Wakes,
    store: Arc<Reflector<NamespaceEntry>>,
    /// Whether it is known what there is, and since when that is asked; none as long as they are not watched.
    known: Mutex<Option<(signal::Receiver<bool>, Instant)>>,
}

impl Namespaces {
    /// Nothing is watched yet.
    pub(super) fn new(
        cluster: &Cluster,
        tasks: &Tasks,
        (scheduler, dependencies): (&Arc<Scheduler>, &Arc<DependencyIndex>),
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            tasks: tasks.clone(),
            wakes: Wakes {
                scheduler: scheduler.clone(),
                dependencies: dependencies.clone(),
            },
            store: Arc::default(),
            known: Mutex::default(),
        }
    }

    /// The labels of the namespace of an owner, which is woken when they change.
    ///
    /// # Errors
    /// While the API server has neither listed nor refused them.
    pub(super) async fn labels(&self, owner: &ObjectKey) -> Result<NamespaceLabels, Unavailable> {
        // Waits before it looks: a label that comes or goes in between would wake nobody.
        self.wakes.dependencies.add(owner, awaited(owner));
        let (mut known, since) = self.begin();
        let listed = timeout(LISTING, known.wait_for(|known| *known)).await;
        // What was listed before a refusal says nothing of now: nobody is let in by a label that may be gone.
        if let Some(why) = self.store.refused() {
            return Ok(Err(why));
        }
        if listed.is_err() {
            let why = "the namespaces are not listed yet";
            return Err(Unavailable::unlisted(why, since));
        }
        let namespace = self.store.get(&ObjectKey::new("", &owner.namespace));
        Ok(Ok(
            namespace.map_or_else(BTreeMap::new, |entry| entry.labels.clone())
        ))
    }

    /// Watches them from now on.
    fn begin(&self) -> (signal::Receiver<bool>, Instant) {
        let mut known = self.known.lock();
        if let Some(known) = &*known {
            return known.clone();
        }
        let sender = signal::Sender::new(false);
        let begun = (sender.subscribe(), Instant::now());
        *known = Some(begun.clone());
        self.follow(sender);
        begun
    }

    fn follow(&self, known: signal::Sender<bool>) {
        let (told, wakes) = (known.clone(), self.wakes.clone());
        let changed = move |change: Change<'_, NamespaceEntry>| {
            told.send_replace(true);
            wakes.changed(&change);
        };
        let wakes = self.wakes.clone();
        let refused = move || {
            known.send_replace(true);
            wakes.all();
        };
        let events = WATCHED.metadata(self.cluster.controller().clone());
        let (store, cancel) = (self.store.clone(), self.tasks.token().clone());
        let following = store.follow_and_tell(events, cancel, changed, refused);
        self.tasks.spawn("namespace-watch", following);
    }
}

/// That the labels of the namespace of an owner change.
pub(super) fn awaited(owner: &ObjectKey) -> Dependency {
    Dependency::Namespace(owner.namespace.clone())
}

/// Whom changed labels wake.
#[derive(Clone)]
struct Wakes {
    scheduler: Arc<Scheduler>,
    dependencies: Arc<DependencyIndex>,
}

impl Wakes {
    fn changed(&self, change: &Change<'_, NamespaceEntry>) {
        let before = change.before.map(|entry| &entry.labels);
        if before != change.after.map(|entry| &entry.labels) {
            let namespace = Dependency::Namespace(change.key.name.clone());
            self.wake(self.dependencies.take(&namespace));
        }
    }

    /// Those of all namespaces.
    fn all(&self) {
        self.wake(self.dependencies.take_all_namespaces());
    }

    fn wake(&self, owners: impl IntoIterator<Item = ObjectKey>) {
        for owner in owners {
            self.scheduler.wake(owner, Lane::Fresh, None);
        }
    }
}
