//! The watches themselves: started, grown, shared, dropped.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, watch as signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::cluster::Cluster;
use crate::mapper::{Kind, Mapper, Served};
use crate::reflect::{Trouble, named_metadata};
use crate::refusals::Standing;
use crate::shutdown::Tasks;
use crate::stamped::follow::{Follower, REFUSED_PAUSE, events};
use crate::stamped::vigil::{self, Vigils};
use crate::stamped::{ObjectKey, Projection, Stamped, Store};

/// A kind that no owner uses is watched this much longer, so that a template edit does not list twice.
const LINGER: Duration = Duration::from_secs(30);

/// How long after the start of a watch reconciles wait for its first listing. Whoever comes later, or waited in vain, is
/// tried again: a kind that cannot be listed must not hold the slots of others.
pub(crate) const LISTING_PATIENCE: Duration = Duration::from_secs(10);

/// Told the namespace and name of an owner.
pub type Wake = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Told kind and place of an object.
pub type Moved = Arc<dyn Fn(&Kind, &ObjectKey) + Send + Sync>;

/// What all watches of one controller have in common.
#[derive(Clone)]
pub struct WatchSettings {
    /// Objects with this label are watched.
    pub label: &'static str,
    /// Our field manager.
    pub field_manager: &'static str,
    /// Kind of the owners.
    pub owner_kind: &'static str,
    /// Called with namespace and name of an owner whose object changed.
    pub wake: Wake,
    /// Called with an object that is gone, or is not whose it was.
    pub moved: Moved,
}

/// Whether a watch can be relied upon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Not yet listed, since the watch was started.
    Starting(Instant),
    /// Not yet listed, and the last try failed, by nobody's lack of rights.
    Failing {
        /// What the API server said.
        why: String,
        /// When the watch was started.
        since: Instant,
    },
    /// The store holds everything.
    Synced,
    /// The kind cannot be watched; the text names what is missing. It is read with the owner's token instead.
    Unavailable(String),
}

impl Readiness {
    /// Since when a first listing is awaited; `None` when it is known how it came out.
    fn awaited_since(&self) -> Option<Instant> {
        match self {
            Self::Starting(since) | Self::Failing { since, .. } => Some(*since),
            Self::Synced | Self::Unavailable(_) => None,
        }
    }

    /// A try to list failed.
    pub(super) fn fails(&mut self, why: String) {
        if let Some(since) = self.awaited_since() {
            *self = Self::Failing { why, since };
        }
    }
}

/// The watch over one kind.
pub struct KindWatch {
    served: Arc<Served>,
    projection: Projection,
    pub(super) store: RwLock<Store>,
    pub(super) readiness: signal::Sender<Readiness>,
    pub(super) cancel: CancellationToken,
    /// What a refusal was due to may have changed: another listing is worth a try.
    pub(super) again: Notify,
    /// The watch that this one replaces, until this one is listed: what is gone since then was never seen here.
    predecessor: Mutex<Option<Arc<Self>>>,
}

impl KindWatch {
    /// How the kind is served.
    pub fn served(&self) -> &Arc<Served> {
        &self.served
    }

    /// Which paths are kept.
    pub fn projection(&self) -> &Projection {
        &self.projection
    }

    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stamped>> {
        self.read().get(key)
    }

    /// The objects of one owner.
    pub(crate) fn owned_by(&self, owner: &ObjectKey, uid: &str) -> Vec<Arc<Stamped>> {
        self.read().owned_by(owner, uid)
    }

    /// The last that was seen of objects of this owner that are gone.
    pub(crate) fn departed(&self, uid: &str) -> Vec<Arc<Stamped>> {
        self.read().departed(uid)
    }

    /// The reply to our own write.
    pub(crate) fn overlay(&self, object: Stamped) {
        self.write().overlay(object);
    }

    /// Number of objects held.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether none is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until the kind is listed or known to be unavailable, at most until `LISTING_PATIENCE` after the watch was
    /// started, and not at all for a watch that has been replaced.
    pub async fn ready(&self) -> Readiness {
        let mut receiver = self.readiness.subscribe();
        let now = receiver.borrow().clone();
        let Some(since) = now.awaited_since() else {
            return now;
        };
        let settled = receiver.wait_for(|readiness| readiness.awaited_since().is_none());
        tokio::select! {
            biased;
            _ = tokio::time::timeout_at(since + LISTING_PATIENCE, settled) => {}
            () = self.cancel.cancelled() => {}
        }
        self.readiness.borrow().clone()
    }

    /// Whether another watch has taken its place, or it has stopped.
    pub(crate) fn is_replaced(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// After a refusal: nobody can tell any more, until it is listed anew or refused once more.
    pub(super) fn is_tried_again(&self) -> bool {
        self.readiness.send_if_modified(|readiness| {
            let refused = matches!(readiness, Readiness::Unavailable(_));
            if refused {
                *readiness = Readiness::Starting(Instant::now());
            }
            refused
        })
    }

    fn is_failing(&self) -> bool {
        matches!(*self.readiness.borrow(), Readiness::Failing { .. })
    }

    /// What it holds, and what the watches held that it replaces and that it has not listed yet.
    pub(super) fn held(&self) -> Vec<Arc<Stamped>> {
        let mut held = self.read().all();
        let predecessor = self
            .predecessor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        held.extend(predecessor.iter().flat_map(|replaced| replaced.held()));
        held
    }

    pub(super) fn take_predecessor(&self) -> Option<Arc<Self>> {
        self.predecessor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(super) fn read(&self) -> std::sync::RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> std::sync::RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Watched {
    kinds: HashMap<Kind, Arc<KindWatch>>,
    uses: HashMap<Box<str>, BTreeSet<Kind>>,
    idle_since: HashMap<Kind, Instant>,
}

/// All watches of one controller.
pub struct StampedWatches {
    cluster: Cluster,
    mapper: Arc<Mapper>,
    settings: WatchSettings,
    tasks: Tasks,
    watched: Mutex<Watched>,
    vigils: Arc<Vigils>,
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
            vigils: Arc::default(),
        })
    }

    /// Our field manager.
    pub fn field_manager(&self) -> &'static str {
        self.settings.field_manager
    }

    /// The watch over a kind, started or grown as needed.
    pub fn ensure(&self, served: &Arc<Served>, needed: &Projection) -> Arc<KindWatch> {
        let mut watched = self.lock();
        watched.idle_since.remove(&served.kind);
        let mut projection = match watched.kinds.get(&served.kind) {
            Some(existing) => existing.projection.clone(),
            None => Projection::default(),
        };
        let grew = projection.grow(needed);
        let existing = watched.kinds.get(&served.kind).cloned();
        if let Some(existing) = existing
            .as_ref()
            .filter(|existing| !grew && existing.served == *served)
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
        self.lock()
            .kinds
            .get(kind)
            .is_some_and(|watch| !watch.projection.clone().grow(needed))
    }

    /// The reply to our own deletion.
    pub fn deleted(&self, kind: &Kind, key: &ObjectKey, uid: &str) {
        let watch = self.lock().kinds.get(kind).cloned();
        let Some(watch) = watch else { return };
        let hidden = watch.write().hide(key, uid);
        // The event of this deletion will find nothing to hide, so that whoever waits for the place is told here.
        for object in &hidden {
            (self.settings.moved)(kind, &object.key);
        }
    }

    /// The reply to our own deletion of an object that stays for a while, for its finalizers.
    pub fn going(&self, kind: &Kind, body: &Value) {
        let watch = self.lock().kinds.get(kind).cloned();
        if let Some(watch) = watch {
            let manager = self.settings.field_manager;
            let kind = &watch.served.kind;
            let going = Stamped::from_value(body, kind, &watch.projection, manager);
            watch.overlay(going);
        }
    }

    /// Has it told of the end of an object that is not ours, and of its change of hands. The watch of a kind shows only what
    /// has its label; where that may not be watched, neither may this.
    pub(crate) fn attend(&self, kind: &Kind, namespace: &str, name: &str) {
        let watch = self.lock().kinds.get(kind).cloned();
        let synced = watch.filter(|watch| *watch.readiness.borrow() == Readiness::Synced);
        let Some(watch) = synced.filter(|_| vigil::is_plain(name)) else {
            return;
        };
        let namespace = if watch.served.namespaced {
            namespace
        } else {
            ""
        };
        let key = ObjectKey::new(namespace, name);
        if watch.get(&key).is_some() {
            return;
        }
        let Some(cancel) = self.vigils.begin(kind, &key, self.tasks.token()) else {
            return;
        };
        let events = named_metadata(self.cluster.controller().clone(), &watch.served, &key);
        let (vigils, moved) = (self.vigils.clone(), self.settings.moved.clone());
        let kind = kind.clone();
        let following = vigil::follow(events, cancel, move || {
            vigils.moved(&kind, &key);
            moved(&kind, &key);
        });
        self.tasks.spawn("vigil", following);
    }

    /// Another number whenever an object that is attended is known to have moved.
    pub(crate) fn moves(&self, kind: &Kind, key: &ObjectKey) -> u64 {
        self.vigils.moves(kind, key)
    }

    /// No longer tells of objects that nobody waits for.
    pub(crate) fn attend_only(&self, is_awaited: impl Fn(&Kind, &ObjectKey) -> bool) {
        self.vigils.retain(is_awaited);
    }

    /// One object of a kind, if that is watched.
    pub(crate) fn get(&self, kind: &Kind, key: &ObjectKey) -> Option<Arc<Stamped>> {
        let watch = self.lock().kinds.get(kind).cloned();
        watch.and_then(|watch| watch.get(key))
    }

    /// All objects of one owner in every watched kind.
    pub(crate) fn owned_by(
        &self,
        owner: &ObjectKey,
        uid: &str,
    ) -> Vec<(Arc<Served>, Arc<Stamped>)> {
        let kinds: Vec<Arc<KindWatch>> = self.lock().kinds.values().cloned().collect();
        let owned = |kind: &Arc<KindWatch>| {
            let served = kind.served.clone();
            kind.owned_by(owner, uid)
                .into_iter()
                .map(move |object| (served.clone(), object))
        };
        kinds.iter().flat_map(owned).collect()
    }

    /// The cluster-scoped kinds of which objects are held.
    pub(crate) fn cluster_scoped_kinds(&self) -> BTreeSet<Kind> {
        let kinds: Vec<Arc<KindWatch>> = self.lock().kinds.values().cloned().collect();
        let held = kinds
            .iter()
            .filter(|watch| !watch.served.namespaced && !watch.is_empty());
        held.map(|watch| watch.served.kind.clone()).collect()
    }

    /// The kinds that are watched, as resources in URLs, and whether each watch is refused.
    pub(crate) fn refused(&self) -> Vec<(String, bool)> {
        let kinds: Vec<Arc<KindWatch>> = self.lock().kinds.values().cloned().collect();
        let is_refused =
            |watch: &KindWatch| matches!(&*watch.readiness.borrow(), Readiness::Unavailable(_));
        kinds
            .iter()
            .map(|watch| (watch.served.qualified(), is_refused(watch)))
            .collect()
    }

    /// Number of objects held in all kinds.
    pub(crate) fn object_count(&self) -> usize {
        let kinds: Vec<Arc<KindWatch>> = self.lock().kinds.values().cloned().collect();
        kinds.iter().map(|kind| kind.len()).sum()
    }

    /// The kinds that are watched now.
    pub fn kinds(&self) -> Vec<Kind> {
        self.lock().kinds.keys().cloned().collect()
    }

    /// Records that an owner is about to use a kind, before its walk has come to the end: a walk may take longer than an
    /// unused watch is kept, and would end with a kind that nobody watches.
    pub(crate) fn add_use(&self, owner_uid: &str, kind: &Kind) {
        let mut watched = self.lock();
        let uses = watched.uses.get(owner_uid);
        if !uses.is_some_and(|kinds| kinds.contains(kind)) {
            watched
                .uses
                .entry(owner_uid.into())
                .or_default()
                .insert(kind.clone());
        }
    }

    /// Records which kinds an owner uses; an empty set when it is gone.
    pub(crate) fn set_uses(&self, owner_uid: &str, kinds: BTreeSet<Kind>) {
        let mut watched = self.lock();
        if watched.uses.get(owner_uid) == Some(&kinds) {
            return;
        }
        if kinds.is_empty() {
            watched.uses.remove(owner_uid);
        } else {
            watched.uses.insert(owner_uid.into(), kinds);
        }
    }

    /// Stops the watches of kinds that no owner has used for a while. Called every few seconds.
    pub fn sweep(&self, now: Instant) {
        let mut watched = self.lock();
        let used: BTreeSet<Kind> = watched.uses.values().flatten().cloned().collect();
        let unused: Vec<Kind> = watched
            .kinds
            .keys()
            .filter(|kind| !used.contains(kind))
            .cloned()
            .collect();
        watched.idle_since.retain(|kind, _| !used.contains(kind));
        for kind in unused {
            let since = *watched.idle_since.entry(kind.clone()).or_insert(now);
            if now.duration_since(since) >= LINGER
                && let Some(dropped) = watched.kinds.remove(&kind)
            {
                debug!(%kind, "no owner uses this kind any more, its watch stops");
                watched.idle_since.remove(&kind);
                dropped.cancel.cancel();
            }
        }
    }

    /// A kind's definition changed: what is known of it is read anew on next use.
    pub(crate) fn forget_group(&self, group: &str) {
        self.mapper.forget_group(group);
        self.try_refused(|kind| kind.group() == group);
        self.try_failing(|kind| kind.group() == group);
    }

    /// Definitions may have changed unseen.
    pub(crate) fn forget_definitions(&self) {
        self.mapper.forget_all();
        self.try_refused(|_| true);
        self.try_failing(|_| true);
    }

    /// Rights changed: watches that were refused are tried again.
    pub(crate) fn rights_changed(&self) {
        self.try_refused(|_| true);
    }

    /// A refused watch goes on in its place, with what it has seen: one that started empty would not know what changed
    /// meanwhile, and one that waited for its next use would not exist for the owners that are done.
    fn try_refused(&self, concerns: impl Fn(&Kind) -> bool) {
        for (kind, watch) in &self.lock().kinds {
            if concerns(kind) && watch.is_tried_again() {
                watch.again.notify_one();
            }
        }
    }

    /// A kind that could not be listed may be served another way now. Nobody waits for it longer because of that.
    fn try_failing(&self, concerns: impl Fn(&Kind) -> bool) {
        for (kind, watch) in &self.lock().kinds {
            if concerns(kind) && watch.is_failing() {
                watch.again.notify_one();
            }
        }
    }

    fn start(
        &self,
        served: Arc<Served>,
        projection: Projection,
        predecessor: Option<Arc<KindWatch>>,
    ) -> Arc<KindWatch> {
        let (quiet, standing) = match predecessor {
            Some(_) => (false, Standing::of_a_successor()),
            None => (true, Standing::default()),
        };
        // One that only needs more paths than a watch that does not come about is not waited for anew.
        let since = predecessor
            .as_ref()
            .and_then(|replaced| replaced.readiness.borrow().awaited_since());
        let since = since.unwrap_or_else(Instant::now);
        let watch = Arc::new(KindWatch {
            served,
            projection,
            store: RwLock::default(),
            readiness: signal::Sender::new(Readiness::Starting(since)),
            cancel: self.tasks.token().child_token(),
            again: Notify::new(),
            predecessor: Mutex::new(predecessor),
        });
        let follower = Follower {
            watch: watch.clone(),
            settings: self.settings.clone(),
            quiet,
            standing,
            told: false,
            trouble: Trouble::default(),
            pause: REFUSED_PAUSE,
        };
        let (client, watched) = (self.cluster.controller().clone(), watch.clone());
        let label = self.settings.label;
        let open = move || events(client.clone(), &watched, label);
        self.tasks.spawn("stamped-watch", follower.run(open));
        watch
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    /// An API server that never answers: which watches exist does not depend on it.
    fn watches(tasks: &Tasks) -> Arc<StampedWatches> {
        let silent = || {
            let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
                std::future::pending::<
                    Result<http::Response<kube::client::Body>, std::convert::Infallible>,
                >()
            });
            kube::Client::new(service, "default")
        };
        let cluster = Cluster::new(silent(), silent(), Arc::new(Metrics::new()));
        let mapper = Arc::new(Mapper::new(cluster.clone()));
        let settings = WatchSettings {
            label: "carto.run/workload-name",
            field_manager: "m",
            owner_kind: "Workload",
            wake: Arc::new(|_, _| {}),
            moved: Arc::new(|_, _| {}),
        };
        StampedWatches::new(cluster, mapper, settings, tasks.clone())
    }

    type Answer = http::Response<kube::client::Body>;

    fn json_answer(code: u16, body: &Value) -> Answer {
        let body = kube::client::Body::from(body.to_string().into_bytes());
        http::Response::builder().status(code).body(body).unwrap()
    }

    /// Watches over an API server that answers listings and refuses or keeps open what else is asked.
    fn scripted(
        tasks: &Tasks,
        answer: impl Fn(&str) -> Option<Answer> + Clone + Send + Sync + 'static,
        wake: Wake,
    ) -> Arc<StampedWatches> {
        scripted_with(tasks, answer, wake, Arc::new(|_, _| {}))
    }

    fn scripted_with(
        tasks: &Tasks,
        answer: impl Fn(&str) -> Option<Answer> + Clone + Send + Sync + 'static,
        wake: Wake,
        moved: Moved,
    ) -> Arc<StampedWatches> {
        let client = || {
            let answer = answer.clone();
            let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
                let answer = answer(&request.uri().to_string());
                async move {
                    match answer {
                        Some(answer) => Ok::<_, std::convert::Infallible>(answer),
                        None => std::future::pending().await,
                    }
                }
            });
            kube::Client::new(service, "default")
        };
        let cluster = Cluster::new(client(), client(), Arc::new(Metrics::new()));
        let mapper = Arc::new(Mapper::new(cluster.clone()));
        let settings = WatchSettings {
            label: "carto.run/workload-name",
            field_manager: "m",
            owner_kind: "Workload",
            wake,
            moved,
        };
        StampedWatches::new(cluster, mapper, settings, tasks.clone())
    }

    /// The event of our own deletion finds nothing left, so that whoever waits for the place would never hear of it.
    #[tokio::test]
    async fn our_own_deletion_is_told_to_those_who_wait_for_the_place() {
        let tasks = Tasks::new();
        let answer = |uri: &str| {
            (!uri.contains("watch=true")).then(|| json_answer(200, &listing(&["a", "b"])))
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        let moved: Moved = Arc::new(move |kind, key| {
            heard.lock().unwrap().push(format!("{kind} {}", key.name));
        });
        let watches = scripted_with(&tasks, answer, Arc::new(|_, _| {}), moved);
        let watch = watches.ensure(&served("Test"), &path("status"));
        assert_eq!(watch.ready().await, Readiness::Synced);
        told.lock().unwrap().clear();
        let kind = &watch.served().kind;
        watches.deleted(kind, &ObjectKey::new("n", "a"), "a");
        assert_eq!(*told.lock().unwrap(), [format!("{kind} a")]);
        watches.deleted(kind, &ObjectKey::new("n", "b"), "another");
        assert_eq!(told.lock().unwrap().len(), 1, "another object has the name");
        tasks.token().cancel();
    }

    fn listing(names: &[&str]) -> Value {
        let items: Vec<Value> = names
            .iter()
            .map(|name| {
                serde_json::json!({"metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "5",
                    "ownerReferences": [{"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": format!("of-{name}"), "uid": "o", "controller": true}]}})
            })
            .collect();
        serde_json::json!({"metadata": {"resourceVersion": "9"}, "items": items})
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_was_refused_for_a_moment_is_relied_upon_again() {
        let tasks = Tasks::new();
        let refused = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = refused.clone();
        let answer = move |uri: &str| {
            if !uri.contains("watch=true") {
                return Some(json_answer(200, &listing(&["a"])));
            }
            let first = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            let refusal = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "not yet"});
            first.then(|| json_answer(403, &refusal))
        };
        let watches = scripted(&tasks, answer, Arc::new(|_, _| {}));
        let watch = watches.ensure(&served("Test"), &path("status"));
        let mut readiness = watch.readiness.subscribe();
        readiness
            .wait_for(|now| matches!(now, Readiness::Unavailable(_)))
            .await
            .unwrap();
        readiness
            .wait_for(|now| *now == Readiness::Synced)
            .await
            .unwrap();
        tasks.token().cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_watch_says_so_and_misses_nothing_once_it_is_granted() {
        let tasks = Tasks::new();
        let granted = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let listings = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let grant = granted.clone();
        let answer = move |uri: &str| {
            let granted = granted.load(std::sync::atomic::Ordering::Relaxed);
            let refusal = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
            if uri.contains("watch=true") {
                return (!granted).then(|| json_answer(403, &refusal));
            }
            let first = listings.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            Some(match (first, granted) {
                (true, _) => json_answer(200, &listing(&["stays", "goes"])),
                (false, false) => json_answer(403, &refusal),
                (false, true) => json_answer(200, &listing(&["stays", "comes"])),
            })
        };
        let woken = Arc::new(Mutex::new(BTreeSet::new()));
        let heard = woken.clone();
        let wake: Wake = Arc::new(move |_, name| {
            heard.lock().unwrap().insert(name.to_owned());
        });
        let watches = scripted(&tasks, answer, wake);
        let watch = watches.ensure(&served("Test"), &path("status"));
        let told = async |expected: &[&str]| {
            let expected: BTreeSet<String> =
                expected.iter().map(|name| (*name).to_owned()).collect();
            test_support::eventually("owners are woken", Duration::from_mins(1), async || {
                let seen = woken.lock().unwrap().clone();
                if seen == expected { Ok(()) } else { Err(seen) }
            })
            .await;
            woken.lock().unwrap().clear();
        };
        told(&["of-stays", "of-goes"]).await;
        assert!(matches!(watch.ready().await, Readiness::Unavailable(_)));

        grant.store(true, std::sync::atomic::Ordering::Relaxed);
        watches.rights_changed();
        assert_eq!(watch.ready().await, Readiness::Synced);
        told(&["of-goes", "of-comes"]).await;
        assert!(!watch.is_replaced());
        assert_eq!(watches.kinds(), [watch.served().kind.clone()]);
        tasks.token().cancel();
    }

    #[tokio::test]
    async fn what_goes_while_a_watch_is_replaced_wakes_its_owner() {
        let tasks = Tasks::new();
        let listings = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let answer = move |uri: &str| {
            if uri.contains("watch=true") {
                return None;
            }
            let before = listings.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            let names: &[&str] = if before {
                &["stays", "goes"]
            } else {
                &["stays"]
            };
            Some(json_answer(200, &listing(names)))
        };
        let woken = Arc::new(Mutex::new(Vec::new()));
        let heard = woken.clone();
        let wake: Wake = Arc::new(move |namespace, name| {
            heard.lock().unwrap().push(format!("{namespace}/{name}"));
        });
        let watches = scripted(&tasks, answer, wake);
        let first = watches.ensure(&served("Test"), &path("status"));
        assert_eq!(first.ready().await, Readiness::Synced);
        assert!(woken.lock().unwrap().is_empty());

        let second = watches.ensure(&served("Test"), &path("spec"));
        assert!(first.is_replaced());
        assert_eq!(second.ready().await, Readiness::Synced);
        let woken = test_support::eventually(
            "both owners are woken",
            Duration::from_mins(1),
            async || {
                let woken = woken.lock().unwrap().clone();
                (woken.len() == 2).then_some(woken)
            },
        )
        .await;
        assert_eq!(woken, ["n/of-stays", "n/of-goes"]);
        tasks.token().cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_a_watch_that_was_replaced() {
        let tasks = Tasks::new();
        let watches = watches(&tasks);
        let small = watches.ensure(&served("Test"), &path("status.url"));
        watches.ensure(&served("Test"), &path("spec"));
        let began = Instant::now();
        assert!(matches!(small.ready().await, Readiness::Starting(_)));
        assert_eq!(began.elapsed(), Duration::ZERO);
        tasks.token().cancel();
    }

    /// A listing as a kind has it whose conversion webhook does not answer, until it is mended.
    #[tokio::test(start_paused = true)]
    async fn a_kind_that_cannot_be_listed_is_waited_for_once_and_says_why() {
        let tasks = Tasks::new();
        let mended = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let mend = mended.clone();
        let answer = move |uri: &str| {
            if uri.contains("watch=true") {
                return None;
            }
            let failure = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500, "message": "conversion webhook failed"});
            let mended = mended.load(std::sync::atomic::Ordering::Relaxed);
            Some(if mended {
                json_answer(200, &listing(&["a"]))
            } else {
                json_answer(500, &failure)
            })
        };
        let watches = scripted(&tasks, answer, Arc::new(|_, _| {}));
        let began = Instant::now();
        let watch = watches.ensure(&served("Test"), &path("status"));
        let (one, other) = tokio::join!(watch.ready(), watch.ready());
        assert_eq!(began.elapsed(), LISTING_PATIENCE);
        assert_eq!(one, other);
        let Readiness::Failing { why, since } = one else {
            panic!("{one:?}");
        };
        assert!(why.contains("conversion webhook failed"), "{why}");
        assert_eq!(since, began);
        // Whoever comes later is not kept, nor by a watch that needs more paths.
        assert!(matches!(watch.ready().await, Readiness::Failing { .. }));
        let grown = watches.ensure(&served("Test"), &path("spec"));
        assert!(matches!(grown.ready().await, Readiness::Starting(_)));
        assert_eq!(began.elapsed(), LISTING_PATIENCE);

        // Its definition is edited: it need not wait for the back-off to end.
        let mut readiness = grown.readiness.subscribe();
        let failing = readiness.wait_for(|now| matches!(now, Readiness::Failing { .. }));
        failing.await.unwrap();
        tokio::time::sleep(Duration::from_mins(10)).await;
        mend.store(true, std::sync::atomic::Ordering::Relaxed);
        let edited = Instant::now();
        watches.forget_group("test.run");
        readiness
            .wait_for(|now| *now == Readiness::Synced)
            .await
            .unwrap();
        assert!(edited.elapsed() < Duration::from_secs(1));
        tasks.token().cancel();
    }

    #[tokio::test(start_paused = true)]
    async fn a_kind_that_may_be_listed_but_not_watched_is_listed_ever_less_often() {
        let tasks = Tasks::new();
        let listings = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = listings.clone();
        let answer = move |uri: &str| {
            let refusal = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"});
            if uri.contains("watch=true") {
                return Some(json_answer(403, &refusal));
            }
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Some(json_answer(200, &listing(&["a"])))
        };
        let watches = scripted(&tasks, answer, Arc::new(|_, _| {}));
        watches.ensure(&served("Test"), &path("status"));
        tokio::time::sleep(Duration::from_hours(1)).await;
        let listed = listings.load(std::sync::atomic::Ordering::Relaxed);
        assert!((10..=25).contains(&listed), "{listed}");
        tasks.token().cancel();
    }

    #[tokio::test]
    async fn a_kind_in_use_by_a_walk_under_way_is_kept() {
        let tasks = Tasks::new();
        let watches = watches(&tasks);
        let kind = served("Test").kind.clone();
        watches.ensure(&served("Test"), &path("status"));
        watches.add_use("owner", &kind);
        let now = Instant::now();
        watches.sweep(now);
        watches.sweep(now + LINGER);
        assert_eq!(watches.kinds(), [kind]);
        tasks.token().cancel();
    }

    fn served(kind: &str) -> Arc<Served> {
        Arc::new(Served {
            kind: Kind::new("test.run/v1", kind),
            plural: format!("{}s", kind.to_lowercase()),
            namespaced: true,
            status_subresource: true,
        })
    }

    fn path(path: &str) -> Projection {
        Projection::new([path.split('.').map(str::to_owned).collect()])
    }

    #[tokio::test]
    async fn a_kind_is_watched_once_for_all_owners() {
        let tasks = Tasks::new();
        let watches = watches(&tasks);
        let first = watches.ensure(&served("Test"), &path("status.url"));
        let second = watches.ensure(&served("Test"), &path("status.url"));
        assert!(Arc::ptr_eq(&first, &second));
        tasks.token().cancel();
    }

    #[tokio::test]
    async fn a_watch_that_needs_more_paths_replaces_the_one_with_fewer() {
        let tasks = Tasks::new();
        let watches = watches(&tasks);
        let small = watches.ensure(&served("Test"), &path("status.url"));
        assert!(!watches.covers(&small.served().kind, &path("spec")));
        let grown = watches.ensure(&served("Test"), &path("spec"));
        assert!(small.cancel.is_cancelled());
        assert!(watches.covers(&grown.served().kind, &path("status.url.deeper")));
        assert!(watches.covers(&grown.served().kind, &path("spec")));
        tasks.token().cancel();
    }

    #[tokio::test]
    async fn a_watch_stops_when_its_kind_was_unused_for_a_while() {
        let tasks = Tasks::new();
        let watches = watches(&tasks);
        let (used, unused) = (served("Used"), served("Unused"));
        let watch = watches.ensure(&unused, &path("status"));
        watches.ensure(&used, &path("status"));
        let both = BTreeSet::from([used.kind.clone(), unused.kind.clone()]);
        watches.set_uses("owner", both);
        let now = Instant::now();
        watches.sweep(now);
        watches.sweep(now + LINGER * 2);
        assert_eq!(watches.kinds().len(), 2, "an owner uses both");

        watches.set_uses("owner", BTreeSet::from([used.kind.clone()]));
        watches.sweep(now);
        watches.sweep(now + LINGER / 2);
        assert_eq!(watches.kinds().len(), 2, "not long enough");
        watches.sweep(now + LINGER);
        assert_eq!(watches.kinds(), std::slice::from_ref(&used.kind));
        assert!(watch.cancel.is_cancelled());

        watches.set_uses("owner", BTreeSet::new());
        watches.sweep(now);
        watches.sweep(now + LINGER);
        assert!(watches.kinds().is_empty());
        tasks.token().cancel();
    }
}
