//! Watches of selected objects: metadata only, of the labels and namespace that a Runnable selects by, and no more than
//! [`MOST_WATCHES`]. Whoever is beyond looks slowly.
//!
//! They only wake, and tell that nothing has changed: what a template sees is read with the Runnable's own rights.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller_kit::cluster::Cluster;
use controller_kit::mapper::{Kind, Served};
use controller_kit::reflect::{Change, Entry, Reflector, selected_metadata, version_of};
use controller_kit::scheduler::{Lane, OwnerKey, Scheduler};
use controller_kit::shutdown::Tasks;
use controller_kit::stamped::ObjectKey;
use realizer::runnable::SelectError;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Watches at a time; equal selections share one.
pub(crate) const MOST_WATCHES: usize = 256;

/// What is selected: objects of a kind with these labels, in one namespace if the kind has them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Selection {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<String>,
    pub(crate) labels: BTreeMap<String, String>,
}

/// An object that matches: that it is there, and in which version.
pub(crate) struct Match {
    version: u64,
    uid: Box<str>,
}

impl Entry for Match {
    fn build(object: Value, _: Option<&Self>) -> Self {
        let uid = object["metadata"]["uid"].as_str();
        Self {
            version: version_of(&object),
            uid: uid.unwrap_or_default().into(),
        }
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// Which objects match, in which versions: equal as long as nothing changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matches(BTreeSet<(Box<str>, u64)>);

/// What a Runnable has read, with whose rights, and what the watch said just before.
#[derive(Clone)]
pub(crate) struct Read {
    pub(crate) selection: Selection,
    pub(crate) account: String,
    pub(crate) matches: Matches,
    pub(crate) object: Result<Value, SelectError>,
}

struct Watch {
    matches: Arc<Reflector<Match>>,
    users: Arc<Mutex<BTreeSet<ObjectKey>>>,
    cancel: CancellationToken,
}

#[derive(Default)]
struct Known {
    watches: HashMap<Selection, Watch>,
    reads: HashMap<ObjectKey, Read>,
}

/// All selections of all Runnables.
pub(crate) struct Selections {
    cluster: Cluster,
    scheduler: Arc<Scheduler>,
    tasks: Tasks,
    known: Mutex<Known>,
}

impl Selections {
    pub(crate) fn new(cluster: &Cluster, scheduler: &Arc<Scheduler>, tasks: &Tasks) -> Self {
        Self {
            cluster: cluster.clone(),
            scheduler: scheduler.clone(),
            tasks: tasks.clone(),
            known: Mutex::default(),
        }
    }

    /// Has the selection watched for this Runnable, which stops to use any other. Says what matches, unless the watch does
    /// not know yet, cannot be had, or would be one too many.
    pub(crate) fn follow(
        &self,
        runnable: &ObjectKey,
        selection: &Selection,
        served: &Served,
    ) -> Option<Matches> {
        let mut known = self.lock();
        known.release(runnable, Some(selection));
        if !known.watches.contains_key(selection) && known.watches.len() < MOST_WATCHES {
            let watch = self.start(selection, served);
            known.watches.insert(selection.clone(), watch);
        }
        let watch = known.watches.get(selection)?;
        locked(&watch.users).insert(runnable.clone());
        watch.matches.is_synced().then(|| {
            let matching = watch.matches.all().into_iter();
            Matches(
                matching
                    .map(|(_, it)| (it.uid.clone(), it.version))
                    .collect(),
            )
        })
    }

    /// What the Runnable read when the same objects matched.
    pub(crate) fn read(
        &self,
        runnable: &ObjectKey,
        selection: &Selection,
        account: &str,
        matches: &Matches,
    ) -> Option<Result<Value, SelectError>> {
        let known = self.lock();
        let read = known.reads.get(runnable)?;
        let is_same =
            read.selection == *selection && read.account == account && read.matches == *matches;
        is_same.then(|| read.object.clone())
    }

    /// Keeps what a Runnable read.
    pub(crate) fn keep(&self, runnable: &ObjectKey, read: Read) {
        self.lock().reads.insert(runnable.clone(), read);
    }

    /// The Runnable selects nothing (any more).
    pub(crate) fn release(&self, runnable: &ObjectKey) {
        self.lock().release(runnable, None);
    }

    /// Forgets the Runnables that are gone, and stops the watches that nobody uses.
    pub(crate) fn sweep(&self, is_there: &dyn Fn(&ObjectKey) -> bool) {
        let mut known = self.lock();
        known.reads.retain(|runnable, _| is_there(runnable));
        known.watches.retain(|_, watch| {
            let mut users = locked(&watch.users);
            users.retain(is_there);
            if users.is_empty() {
                watch.cancel.cancel();
            }
            !users.is_empty()
        });
    }

    fn start(&self, selection: &Selection, served: &Served) -> Watch {
        let labels: Vec<String> = selection
            .labels
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let events = selected_metadata(
            self.cluster.controller().clone(),
            served,
            selection.namespace.as_deref(),
            &labels.join(","),
        );
        let watch = Watch {
            matches: Arc::default(),
            users: Arc::default(),
            cancel: self.tasks.token().child_token(),
        };
        let (scheduler, users) = (self.scheduler.clone(), watch.users.clone());
        let wake = move |_: Change<'_, Match>| {
            for user in locked(&users).iter() {
                let key = OwnerKey::new(&*user.namespace, &*user.name);
                scheduler.wake(key, Lane::Progress, None);
            }
        };
        let following = watch
            .matches
            .clone()
            .follow(events, watch.cancel.clone(), wake);
        self.tasks.spawn("selection-watch", following);
        watch
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        locked(&self.known)
    }
}

impl Known {
    fn release(&mut self, runnable: &ObjectKey, except: Option<&Selection>) {
        if self
            .reads
            .get(runnable)
            .is_some_and(|read| Some(&read.selection) != except)
        {
            self.reads.remove(runnable);
        }
        for (_, watch) in self
            .watches
            .iter()
            .filter(|(selection, _)| Some(*selection) != except)
        {
            locked(&watch.users).remove(runnable);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
