//! The watches themselves: started, grown, shared, dropped.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::{Notify, watch as signal};
use tokio::time::Instant;
use tracing::debug;

use crate::cluster::Cluster;
use crate::mapper::{Kind, Mapper, Served};
use crate::reflect::{WatchHealth, named_metadata};
use crate::share::MayShare;
use crate::shutdown::Tasks;
use crate::stamped::follow::{Follower, REFUSED_PAUSE, opening};
use crate::stamped::foreign_watches::{self, ForeignWatches};
use crate::stamped::uses::Uses;
use crate::stamped::{KindWatch, ObjectKey, Projection, Readiness, Stamped};
use crate::time_of_day::Clock;

/// A kind that was listed is answered with errors for so long before what is known of it is believed
/// no longer. An API server, etcd and a conversion webhook are back sooner; until then nothing is told.
/// And no watch stays open for as long, so that who else is heard then has been let in since.
pub const STALE_AFTER: Duration = Duration::from_mins(5);

/// Told the namespace and name of an owner.
pub type Wake = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Told kind and place of an object.
pub type Moved = Arc<dyn Fn(&Kind, &ObjectKey) + Send + Sync>;

/// Says of a resource, as in URLs, whether the API server is heard on watches of others.
pub type HearsOthers = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// What all watches of one controller have in common.
#[derive(Clone)]
pub struct WatchSettings {
    /// Objects with this label are watched.
    pub label: &'static str,
    /// Our field manager.
    pub field_manager: &'static str,
    /// Kind of the owners.
    pub owner_kind: &'static str,
    /// Says which objects are kept, by the namespace of their owner.
    pub share: MayShare,
    /// Called with namespace and name of an owner whose object changed.
    pub wake: Wake,
    /// Called with an object that is gone, or is not whose it was.
    pub moved: Moved,
    /// As [`STALE_AFTER`].
    pub stale_after: Duration,
    /// Whether the API server is well when it answers for one kind with errors.
    pub hears_others: HearsOthers,
    /// The time of day.
    pub clock: Clock,
}

#[derive(Default)]
struct Watched {
    kinds: HashMap<Kind, Arc<KindWatch>>,
    uses: Uses,
}

/// All watches of one controller.
pub struct StampedWatches {
    cluster: Cluster,
    mapper: Arc<Mapper>,
    settings: WatchSettings,
    tasks: Tasks,
    watched: Mutex<Watched>,
    foreign_watches: Arc<ForeignWatches>,
}

impl StampedWatches {
    /// No watch yet.
    pub fn new(
        cluster: Cluster,
        mapper: Arc<Mapper>,
        settings: WatchSettings,
        tasks: Tasks,
    ) -> Arc<Self> {
        Arc::new(Self {
            cluster,
            mapper,
            settings,
            tasks,
            watched: Mutex::default(),
            foreign_watches: Arc::default(),
        })
    }

    /// Our field manager.
    pub fn field_manager(&self) -> &'static str {
        self.settings.field_manager
    }

    /// The watch over a kind, started or grown as needed.
    pub fn ensure(&self, served: &Arc<Served>, needed: &Projection) -> Arc<KindWatch> {
        let mut watched = self.watched.lock();
        watched.uses.begin(&served.kind);
        let mut projection = match watched.kinds.get(&served.kind) {
            Some(existing) => existing.projection().clone(),
            None => Projection::default(),
        };
        let grew = projection.grow(needed);
        let existing = watched.kinds.get(&served.kind).cloned();
        if let Some(existing) = existing
            .as_ref()
            .filter(|existing| !grew && existing.served() == served)
        {
            return existing.clone();
        }
        let started = self.start(served.clone(), projection, existing);
        if let Some(outgrown) = watched.kinds.insert(served.kind.clone(), started.clone()) {
            outgrown.cancel.cancel();
        }
        started
    }

    /// Whether a kind is watched with all these paths already.
    pub fn covers(&self, kind: &Kind, needed: &Projection) -> bool {
        self.watched
            .lock()
            .kinds
            .get(kind)
            .is_some_and(|watch| !watch.projection().clone().grow(needed))
    }

    /// The reply to our own deletion.
    pub fn deleted(&self, kind: &Kind, key: &ObjectKey, uid: &str) {
        let Some(watch) = self.watch(kind) else {
            return;
        };
        let hidden = watch.write().hide(key, uid);
        // The event of this deletion will find nothing to hide, so that whoever waits for the place is told here.
        for object in &hidden {
            (self.settings.moved)(kind, &object.key);
        }
    }

    /// The reply to our own deletion of an object that stays for a while, for its finalizers.
    pub fn going(&self, kind: &Kind, body: &Value) {
        if let Some(watch) = self.watch(kind) {
            let going = watch.project(body, self.settings.field_manager);
            watch.overlay(going);
        }
    }

    /// Has it told of the end of an object that is not ours, and of its change of hands. The watch of a kind shows only what
    /// has its label; where that may not be watched, neither may this.
    pub(crate) fn attend(&self, kind: &Kind, namespace: &str, name: &str) {
        let synced = self
            .watch(kind)
            .filter(|watch| *watch.readiness.borrow() == Readiness::Synced);
        let Some(watch) = synced.filter(|_| foreign_watches::is_plain(name)) else {
            return;
        };
        let namespace = if watch.served().namespaced {
            namespace
        } else {
            ""
        };
        let key = ObjectKey::new(namespace, name);
        if watch.get(&key).is_some() {
            return;
        }
        let Some(cancel) = self.foreign_watches.begin(kind, &key, self.tasks.token()) else {
            return;
        };
        let events = named_metadata(self.cluster.controller().clone(), watch.served(), &key);
        let (foreign_watches, moved) = (self.foreign_watches.clone(), self.settings.moved.clone());
        let kind = kind.clone();
        let following = foreign_watches::follow(events, cancel, move || {
            foreign_watches.moved(&kind, &key);
            moved(&kind, &key);
        });
        self.tasks.spawn("vigil", following);
    }

    /// Another number whenever an object that is attended is known to have moved.
    pub(crate) fn moves(&self, kind: &Kind, key: &ObjectKey) -> u64 {
        self.foreign_watches.moves(kind, key)
    }

    /// No longer tells of objects that nobody waits for.
    pub(crate) fn attend_only(&self, is_awaited: impl Fn(&Kind, &ObjectKey) -> bool) {
        self.foreign_watches.retain(is_awaited);
    }

    /// One object of a kind, if that is watched.
    pub(crate) fn get(&self, kind: &Kind, key: &ObjectKey) -> Option<Arc<Stamped>> {
        self.watch(kind)?.get(key)
    }

    fn watch(&self, kind: &Kind) -> Option<Arc<KindWatch>> {
        self.watched.lock().kinds.get(kind).cloned()
    }

    /// All of them, to be looked at without holding up whoever asks for one.
    fn all(&self) -> Vec<Arc<KindWatch>> {
        self.watched.lock().kinds.values().cloned().collect()
    }

    /// All objects of one owner in every watched kind.
    pub(crate) fn owned_by(
        &self,
        owner: &ObjectKey,
        uid: &str,
    ) -> Vec<(Arc<Served>, Arc<Stamped>)> {
        let owned = |kind: Arc<KindWatch>| {
            let objects = kind.owned_by(owner, uid).into_iter();
            objects.map(move |object| (kind.served().clone(), object))
        };
        self.all().into_iter().flat_map(owned).collect()
    }

    /// The cluster-scoped kinds of which objects are held.
    pub(crate) fn cluster_scoped_kinds(&self) -> BTreeSet<Kind> {
        let all = self.all();
        let held = all.iter();
        let held = held.filter(|watch| !watch.served().namespaced && !watch.is_empty());
        held.map(|watch| watch.served().kind.clone()).collect()
    }

    /// The kinds that are watched, as resources in URLs, and whether each watch is refused.
    pub(crate) fn refused(&self) -> Vec<(String, bool)> {
        self.each(|readiness| matches!(readiness, Readiness::Unavailable(_)))
    }

    /// The same, and whether what each holds is not believed any more.
    pub(crate) fn stale(&self) -> Vec<(String, bool)> {
        self.each(|readiness| matches!(readiness, Readiness::Stale { .. }))
    }

    fn each(&self, is_so: fn(&Readiness) -> bool) -> Vec<(String, bool)> {
        let said =
            |watch: &Arc<KindWatch>| (watch.served().qualified(), is_so(&watch.readiness.borrow()));
        self.all().iter().map(said).collect()
    }

    /// Number of objects held in all kinds.
    pub(crate) fn object_count(&self) -> usize {
        self.all().iter().map(|kind| kind.len()).sum()
    }

    /// The kinds that are watched now.
    #[cfg(test)]
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.watched.lock().kinds.keys().cloned().collect()
    }

    /// Records that an owner is about to use a kind, before its walk has come to the end: a walk may take longer than an
    /// unused watch is kept, and would end with a kind that nobody watches.
    pub(crate) fn add_use(&self, owner_uid: &str, kind: &Kind) {
        self.watched.lock().uses.add(owner_uid, kind);
    }

    /// Records which kinds an owner uses; an empty set when it is gone.
    pub(crate) fn set_uses(&self, owner_uid: &str, kinds: BTreeSet<Kind>) {
        self.watched.lock().uses.set(owner_uid, kinds);
    }

    /// Stops the watches of kinds that no owner has used for a while. Called every few seconds.
    pub fn sweep(&self, now: Instant) {
        let Watched { kinds, uses } = &mut *self.watched.lock();
        uses.look(kinds.keys(), now);
        kinds.retain(|kind, watch| {
            let stays = !uses.are_over(kind, now);
            if !stays {
                debug!(%kind, "no owner uses this kind any more, its watch stops");
                watch.cancel.cancel();
            }
            stays
        });
    }

    /// A kind's definition changed: what is known of it is read anew on next use.
    pub(crate) fn forget_group(&self, group: &str) {
        self.mapper.forget_group(group);
        let concerns = |kind: &Kind| kind.group() == group;
        self.try_again(|kind, watch| {
            concerns(kind) && (watch.is_tried_again() || watch.is_failing())
        });
    }

    /// Definitions may have changed unseen.
    pub(crate) fn forget_definitions(&self) {
        self.mapper.forget_all();
        self.try_again(|_, watch| watch.is_tried_again() || watch.is_failing());
    }

    /// Rights changed: watches that were refused are tried again.
    pub(crate) fn rights_changed(&self) {
        self.try_again(|_, watch| watch.is_tried_again());
    }

    /// A refused watch goes on in its place, with what it has seen: one that started empty would not know what changed
    /// meanwhile, and one that waited for its next use would not exist for the owners that are done. A kind that could not be
    /// listed may be served another way now; nobody waits for it longer because of that.
    fn try_again(&self, concerns: impl Fn(&Kind, &KindWatch) -> bool) {
        for (kind, watch) in &self.watched.lock().kinds {
            if concerns(kind, watch) {
                watch.again.notify_one();
            }
        }
    }

    /// Drops what belongs to owners in other namespaces.
    pub(crate) fn keep_only(&self, is_kept: impl Fn(&str) -> bool) {
        for watch in self.all() {
            watch.write().keep_only(&is_kept);
        }
    }

    /// It has become more: all kinds are read anew, and relied upon when they have been.
    pub(crate) fn read_anew(&self) {
        for watch in self.all() {
            watch.reads_anew();
        }
    }

    /// Wakes the owners of all cluster-scoped objects: some of them may be gone, and nothing else would tell.
    pub(crate) fn wake_for_cluster_scoped(&self, is_concerned: impl Fn(&str) -> bool) {
        let all = self.all().into_iter();
        for watch in all.filter(|watch| !watch.served().namespaced) {
            for object in watch.held() {
                let controller = object.controller.as_ref();
                let controller = controller.filter(|it| it.is_ours(self.settings.owner_kind));
                if let Some(owner) = controller.filter(|_| is_concerned(&object.owner_namespace)) {
                    (self.settings.wake)(&object.owner_namespace, &owner.name);
                }
            }
        }
    }

    fn start(
        &self,
        served: Arc<Served>,
        projection: Projection,
        predecessor: Option<Arc<KindWatch>>,
    ) -> Arc<KindWatch> {
        let (quiet, health) = match predecessor {
            Some(_) => (false, WatchHealth::of_a_successor()),
            None => (true, WatchHealth::default()),
        };
        let readiness = match &predecessor {
            Some(replaced) => replaced.readiness.borrow().of_a_successor(),
            None => Readiness::Starting(Instant::now()),
        };
        let watch = Arc::new(KindWatch {
            served,
            projection,
            store: RwLock::default(),
            readiness: signal::Sender::new(readiness),
            cancel: self.tasks.token().child_token(),
            again: Notify::new(),
            relist: Notify::new(),
            relists: AtomicU64::new(0),
            predecessor: Mutex::new(predecessor),
        });
        let follower = Follower {
            watch: watch.clone(),
            settings: self.settings.clone(),
            quiet,
            health,
            notified: false,
            pause: REFUSED_PAUSE,
            listing: 0,
            share_listing: 0,
            is_whole: false,
            beside: None,
        };
        let client = self.cluster.controller().clone();
        let open = opening(client, &watch, &self.settings);
        self.tasks.spawn("stamped-watch", follower.run(open));
        watch
    }
}

#[cfg(test)]
mod tests;
