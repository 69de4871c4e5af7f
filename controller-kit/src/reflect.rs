//! Stores of the kinds we know by name: owners, blueprints, templates, service accounts.
//!
//! What is kept of an object is built once per resourceVersion (compiled templates, parsed selectors),
//! so that a reconcile does none of that work. An object that cannot be understood is kept as such: it
//! must not stop the watch, and whoever needs it can say what is wrong with it.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::ApiResource;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use serde_json::Value;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::mapper::Served;
use crate::raw_object::RawObject;
use crate::stamped::ObjectKey;

const PAGE: u32 = 100;

/// What a store keeps of an object.
pub trait Entry: Send + Sync + Sized + 'static {
    /// Builds the entry; `previous` is what was kept before, for whatever need not be built again.
    fn build(object: Value, previous: Option<&Self>) -> Self;

    /// The resourceVersion, to order observations.
    fn version(&self) -> u64;
}

/// A change that a store saw.
pub struct Change<'a, E> {
    /// Which object.
    pub key: &'a ObjectKey,
    /// What was kept before.
    pub before: Option<&'a Arc<E>>,
    /// What is kept now.
    pub after: Option<&'a Arc<E>>,
}

/// Reads the version of an object's metadata.
pub fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// A store fed by a watch.
pub struct Reflector<E> {
    entries: RwLock<HashMap<ObjectKey, Arc<E>>>,
    /// While a listing is under way, the keys of the replies that came since it began.
    overlaid: Mutex<Option<HashSet<ObjectKey>>>,
    synced: signal::Sender<bool>,
}

impl<E: Entry> Default for Reflector<E> {
    fn default() -> Self {
        Self {
            entries: RwLock::default(),
            overlaid: Mutex::default(),
            synced: signal::Sender::new(false),
        }
    }
}

impl<E: Entry> Reflector<E> {
    /// The entry with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<E>> {
        self.read().get(key).cloned()
    }

    /// All entries, in no particular order.
    pub fn all(&self) -> Vec<(ObjectKey, Arc<E>)> {
        self.read()
            .iter()
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first listing is complete.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Turns true with the first complete listing.
    pub(crate) fn synced_signal(&self) -> signal::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Takes the reply to our own write, unless the watch has passed it.
    pub(crate) fn overlay(&self, object: Value) {
        let key = key_of(&object);
        let mut entries = self.write();
        let Some(held) = entries.get(&key) else {
            return;
        };
        if held.version() < version_of(&object) {
            let entry = Arc::new(E::build(object, Some(held)));
            if let Some(overlaid) = &mut *self.overlaid() {
                overlaid.insert(key.clone());
            }
            entries.insert(key, entry);
        }
    }

    /// Follows the events until cancelled; `changed` is told about every change, after it is kept.
    /// During the first listing it is told only once everything is there.
    pub async fn follow(
        self: Arc<Self>,
        mut events: Events,
        cancel: CancellationToken,
        changed: impl Fn(Change<'_, E>) + Send,
    ) {
        let mut listed: HashSet<ObjectKey> = HashSet::new();
        let mut trouble = Trouble::default();
        loop {
            let event = tokio::select! {
                () = cancel.cancelled() => return,
                event = events.next() => event,
            };
            match event {
                None => return,
                Some(Err(error)) => trouble.log(&error),
                Some(Ok(Event::Init)) => {
                    listed.clear();
                    *self.overlaid() = Some(HashSet::new());
                }
                Some(Ok(Event::InitApply(object))) => {
                    let key = key_of(&object);
                    // A listing shows what there is, whatever was kept before it: versions go back when etcd is restored.
                    let newest = !self.is_overlaid(&key);
                    listed.insert(key);
                    self.keep(object, newest, self.is_synced(), &changed);
                }
                Some(Ok(Event::InitDone)) => {
                    trouble.end();
                    self.end_listing(&std::mem::take(&mut listed), &changed);
                }
                Some(Ok(Event::Apply(object))) => self.keep(object, false, true, &changed),
                Some(Ok(Event::Delete(object))) => self.drop_key(&key_of(&object), &changed),
            }
        }
    }

    /// Keeps what a watch or a listing shows; `newest` if it is known to be newer than what is kept.
    fn keep(&self, object: Value, newest: bool, tell: bool, changed: &impl Fn(Change<'_, E>)) {
        let key = key_of(&object);
        let before = self.get(&key);
        let version = version_of(&object);
        // The echo of our own write, already overlaid.
        let is_passed = |before: u64| before == version || (before > version && !newest);
        if before
            .as_ref()
            .is_some_and(|before| before.version() != 0 && is_passed(before.version()))
        {
            return;
        }
        let after = Arc::new(E::build(object, before.as_deref()));
        self.write().insert(key.clone(), after.clone());
        if tell {
            changed(Change {
                key: &key,
                before: before.as_ref(),
                after: Some(&after),
            });
        }
    }

    fn drop_key(&self, key: &ObjectKey, changed: &impl Fn(Change<'_, E>)) {
        let before = self.write().remove(key);
        changed(Change {
            key,
            before: before.as_ref(),
            after: None,
        });
    }

    fn end_listing(&self, listed: &HashSet<ObjectKey>, changed: &impl Fn(Change<'_, E>)) {
        let gone: Vec<ObjectKey> = self
            .read()
            .keys()
            .filter(|key| !listed.contains(*key))
            .cloned()
            .collect();
        *self.overlaid() = None;
        for key in gone {
            self.drop_key(&key, changed);
        }
        if self.synced.send_replace(true) {
            return;
        }
        for (key, entry) in self.all() {
            changed(Change {
                key: &key,
                before: None,
                after: Some(&entry),
            });
        }
    }

    fn is_overlaid(&self, key: &ObjectKey) -> bool {
        let overlaid = self.overlaid();
        overlaid
            .as_ref()
            .is_some_and(|overlaid| overlaid.contains(key))
    }

    fn overlaid(&self) -> MutexGuard<'_, Option<HashSet<ObjectKey>>> {
        self.overlaid.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, HashMap<ObjectKey, Arc<E>>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, HashMap<ObjectKey, Arc<E>>> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Namespace and name of an object.
pub fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}

/// Events of one kind, as plain values.
pub type Events = BoxStream<'static, watcher::Result<Event<Value>>>;

/// A kind to watch.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// API group, empty for the core group.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural.
    pub plural: &'static str,
}

impl Watched {
    /// A kind of our own group.
    pub const fn carto(kind: &'static str, plural: &'static str) -> Self {
        Self {
            group: "carto.run",
            version: "v1alpha1",
            kind,
            plural,
        }
    }

    fn resource(&self) -> ApiResource {
        let api_version = if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        };
        ApiResource {
            group: self.group.to_owned(),
            version: self.version.to_owned(),
            api_version,
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// Full objects.
    pub fn objects(&self, client: kube::Client) -> Events {
        watched::<false>(client, &self.resource(), page())
    }

    /// Metadata only.
    pub fn metadata(&self, client: kube::Client) -> Events {
        watched::<true>(client, &self.resource(), page())
    }
}

fn page() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

/// The events of one resource as plain values; interruptions heal by themselves.
pub(crate) fn watched<const METADATA_ONLY: bool>(
    client: kube::Client,
    resource: &ApiResource,
    config: watcher::Config,
) -> Events {
    events_of::<METADATA_ONLY>(kube::Api::all_with(client, resource), config)
}

/// Metadata of the objects of a kind with these labels, in one namespace or in all; label selector as in URLs.
pub fn selected_metadata(
    client: kube::Client,
    served: &Served,
    namespace: Option<&str>,
    labels: &str,
) -> Events {
    let resource = served.resource();
    let api = match namespace.filter(|_| served.namespaced) {
        Some(namespace) => kube::Api::namespaced_with(client, namespace, &resource),
        None => kube::Api::all_with(client, &resource),
    };
    events_of::<true>(api, page().labels(labels))
}

fn events_of<const METADATA_ONLY: bool>(
    api: kube::Api<RawObject<METADATA_ONLY>>,
    config: watcher::Config,
) -> Events {
    watcher::watcher(api, config)
        .map_ok(as_value)
        .default_backoff()
        .boxed()
}

fn as_value<const METADATA_ONLY: bool>(event: Event<RawObject<METADATA_ONLY>>) -> Event<Value> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(object.value()),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(object.value()),
        Event::Delete(object) => Event::Delete(object.value()),
    }
}

/// Calls `happened` with the namespace and name of every object that changes after the first listing, keeping
/// nothing. After an interruption, when changes may have been missed, it is called once with `None`.
pub(crate) async fn follow_changes(
    mut events: Events,
    cancel: CancellationToken,
    synced: signal::Sender<bool>,
    happened: impl Fn(Option<&ObjectKey>) + Send,
) {
    let mut trouble = Trouble::default();
    loop {
        let event = tokio::select! {
            () = cancel.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Err(error)) => trouble.log(&error),
            Some(Ok(Event::Init | Event::InitApply(_))) => {}
            Some(Ok(Event::InitDone)) => {
                trouble.end();
                if synced.send_replace(true) {
                    happened(None);
                }
            }
            Some(Ok(Event::Apply(object) | Event::Delete(object))) => {
                happened(Some(&key_of(&object)));
            }
        }
    }
}

/// What was told of one watch that does not come about: once is enough, as it is tried again every second or so.
#[derive(Default)]
struct Trouble {
    told: Option<&'static str>,
}

impl Trouble {
    /// A kind that is never listed leaves the process idle and not ready: the log is where its operator looks then.
    fn log(&mut self, error: &watcher::Error) {
        let text = crate::cluster::chain(error);
        if let Some(advice) = self.news(error) {
            warn!(error = %text, "{advice}");
        } else {
            debug!(error = %text, "watch interrupted");
        }
    }

    /// The advice, unless it was the last one.
    fn news(&mut self, error: &watcher::Error) -> Option<&'static str> {
        let advice = advice(error).filter(|advice| self.told != Some(*advice))?;
        self.told = Some(advice);
        Some(advice)
    }

    /// It came about; the next trouble is another one.
    fn end(&mut self) {
        self.told = None;
    }
}

/// What the operator can do about it; nothing about what passes by itself.
fn advice(error: &watcher::Error) -> Option<&'static str> {
    let code = crate::refusals::answer(error).map(|status| status.code);
    match (code, error) {
        (Some(403), _) => {
            Some("a kind cannot be watched: grant the controller get, list and watch on it")
        }
        (Some(401), _) => Some(
            "the API server does not accept our credentials: see the kubeconfig, or the pod's service account",
        ),
        (Some(404), _) => Some(
            "a kind is not served: ours come with the CRDs (kubectl apply --server-side -f deploy/crds)",
        ),
        (None, watcher::Error::InitialListFailed(_)) => Some(
            "the API server does not answer: see that it runs at the address told at the start",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_an_operator_can_mend_is_told_and_what_passes_by_itself_is_not() {
        let answered = |code: u16| {
            kube::Error::Api(Box::new(kube::core::Status {
                code,
                ..kube::core::Status::default()
            }))
        };
        for (code, word) in [(401, "credentials"), (403, "grant"), (404, "deploy/crds")] {
            let told = advice(&watcher::Error::InitialListFailed(answered(code))).unwrap();
            assert!(told.contains(word), "{code}: {told}");
        }
        let silent = || kube::Error::LinesCodecMaxLineLengthExceeded;
        assert!(advice(&watcher::Error::InitialListFailed(silent())).is_some());
        for passing in [
            watcher::Error::WatchFailed(silent()),
            watcher::Error::InitialListFailed(answered(503)),
            watcher::Error::WatchFailed(answered(410)),
        ] {
            assert_eq!(advice(&passing), None, "{passing}");
        }
        let mut trouble = Trouble::default();
        let unanswered = watcher::Error::InitialListFailed(silent());
        let denied = watcher::Error::WatchStartFailed(answered(403));
        let told = |trouble: &mut Trouble, error| trouble.news(error).is_some();
        assert!(told(&mut trouble, &unanswered) && !told(&mut trouble, &unanswered));
        assert!(told(&mut trouble, &denied));
        trouble.end();
        assert!(told(&mut trouble, &denied));
    }

    struct Kept(u64, String);

    impl Entry for Kept {
        fn build(object: Value, _: Option<&Self>) -> Self {
            Self(
                version_of(&object),
                object["data"].as_str().unwrap_or("malformed").to_owned(),
            )
        }
        fn version(&self) -> u64 {
            self.0
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the tables read better without references"
    )]
    fn object(name: &str, version: u64, data: Value) -> Value {
        json!({"metadata": {"name": name, "resourceVersion": version.to_string()}, "data": data})
    }

    fn listing<const N: usize>(objects: [Value; N]) -> Vec<Event<Value>> {
        let shown = objects.into_iter().map(Event::InitApply);
        let (begin, end) = ([Event::Init], [Event::InitDone]);
        begin.into_iter().chain(shown).chain(end).collect()
    }

    async fn changes(events: Vec<Event<Value>>, reflector: &Arc<Reflector<Kept>>) -> Vec<String> {
        let seen = Mutex::new(Vec::new());
        let stream: Events = futures::stream::iter(events.into_iter().map(Ok)).boxed();
        let note = |change: Change<'_, Kept>| {
            let text = |entry: Option<&Arc<Kept>>| {
                entry.map_or_else(|| "-".to_owned(), |entry| entry.1.clone())
            };
            seen.lock().unwrap().push(format!(
                "{} {}>{}",
                change.key.name,
                text(change.before),
                text(change.after)
            ));
        };
        reflector
            .clone()
            .follow(stream, CancellationToken::new(), note)
            .await;
        let mut seen = seen.into_inner().unwrap();
        seen.sort();
        seen
    }

    #[tokio::test]
    async fn changes_are_told_once_the_first_listing_is_complete() {
        let reflector = Arc::new(Reflector::<Kept>::default());
        let first = listing([object("a", 1, json!("x")), object("b", 2, json!(5))]);
        assert_eq!(changes(first, &reflector).await, ["a ->x", "b ->malformed"]);
        assert!(reflector.is_synced());
        let second = listing([object("a", 3, json!("y"))]);
        assert_eq!(
            changes(second, &reflector).await,
            ["a x>y", "b malformed>-"]
        );
    }

    #[tokio::test]
    async fn the_echo_of_an_overlaid_write_is_no_change() {
        let reflector = Arc::new(Reflector::<Kept>::default());
        changes(listing([object("a", 1, json!("x"))]), &reflector).await;
        reflector.overlay(object("a", 4, json!("ours")));
        assert!(
            changes(
                vec![Event::Apply(object("a", 3, json!("older")))],
                &reflector
            )
            .await
            .is_empty()
        );
        assert!(
            changes(
                vec![Event::Apply(object("a", 4, json!("ours")))],
                &reflector
            )
            .await
            .is_empty()
        );
        assert_eq!(
            changes(
                vec![Event::Apply(object("a", 5, json!("theirs")))],
                &reflector
            )
            .await,
            ["a ours>theirs"]
        );
    }

    #[tokio::test]
    async fn a_listing_after_a_restore_takes_back_what_was_lost() {
        let reflector = Arc::new(Reflector::<Kept>::default());
        let first = listing([object("a", 80, json!("lost")), object("b", 81, json!("b"))]);
        changes(first, &reflector).await;
        let second = listing([
            object("a", 5, json!("restored")),
            object("b", 81, json!("b")),
        ]);
        assert_eq!(changes(second, &reflector).await, ["a lost>restored"]);
        let late = vec![Event::Apply(object("a", 4, json!("late")))];
        assert!(changes(late, &reflector).await.is_empty());
    }

    #[tokio::test]
    async fn a_listing_does_not_undo_what_was_written_while_it_was_under_way() {
        let reflector = Arc::new(Reflector::<Kept>::default());
        let first = listing([object("a", 5, json!("x"))]);
        changes(first, &reflector).await;
        let (events, listing) = futures::channel::mpsc::unbounded();
        let mut following = tokio::task::JoinSet::new();
        following.spawn(reflector.clone().follow(
            listing.map(Ok).boxed(),
            CancellationToken::new(),
            |_| {},
        ));
        events.unbounded_send(Event::Init).unwrap();
        let begun = async || reflector.overlaid().is_some();
        test_support::eventually(
            "the listing begins",
            std::time::Duration::from_mins(1),
            begun,
        )
        .await;
        reflector.overlay(object("a", 6, json!("ours")));
        for event in [
            Event::InitApply(object("a", 5, json!("x"))),
            Event::InitDone,
        ] {
            events.unbounded_send(event).unwrap();
        }
        drop(events);
        following.join_next().await.unwrap().unwrap();
        assert_eq!(reflector.get(&ObjectKey::new("", "a")).unwrap().1, "ours");
    }
}
