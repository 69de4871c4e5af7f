//! Stores of the kinds we know by name: owners, blueprints, templates, service accounts.
//!
//! What is kept of an object is built once per resourceVersion (compiled templates, parsed selectors),
//! so that a reconcile does none of that work. An object that cannot be understood is kept as such: it
//! must not stop the watch, and whoever needs it can say what is wrong with it.

mod backoff;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::ApiResource;
use kube::runtime::watcher::{self, Event};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::mapper::Served;
use crate::raw_object::RawObject;
use crate::stamped::ObjectKey;

use backoff::{Heard, backed_off};

pub(crate) use backoff::UNABLE;

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
    kept: RwLock<Kept<E>>,
    synced: signal::Sender<bool>,
}

/// What a watch and replies to our own writes change, under one lock: each looks at what the other has put here.
struct Kept<E> {
    entries: HashMap<ObjectKey, Arc<E>>,
    /// While a listing is under way, the keys of the replies that came since it began.
    overlaid: Option<HashSet<ObjectKey>>,
}

/// What shows an object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Reply,
    Watch,
    Listing,
}

impl<E: Entry> Kept<E> {
    /// Whether an object in this version says nothing new: the echo of our own write, or what was there before it.
    fn has_passed(&self, key: &ObjectKey, version: u64, source: Source) -> bool {
        let Some(held) = self.entries.get(key).map(|held| held.version()) else {
            // A reply that comes after the deletion leaves no ghost.
            return source == Source::Reply;
        };
        match source {
            Source::Watch | Source::Listing if held == 0 => false,
            Source::Reply | Source::Watch => held >= version,
            // A listing shows what there is, whatever was kept before it: versions go back when etcd is restored.
            Source::Listing => held == version || (held > version && self.is_overlaid(key)),
        }
    }

    fn is_overlaid(&self, key: &ObjectKey) -> bool {
        let overlaid = self.overlaid.as_ref();
        overlaid.is_some_and(|overlaid| overlaid.contains(key))
    }
}

impl<E: Entry> Default for Reflector<E> {
    fn default() -> Self {
        Self {
            kept: RwLock::new(Kept {
                entries: HashMap::new(),
                overlaid: None,
            }),
            synced: signal::Sender::new(false),
        }
    }
}

impl<E: Entry> Reflector<E> {
    /// The entry with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<E>> {
        self.kept.read().entries.get(key).cloned()
    }

    /// All entries, in no particular order.
    pub fn all(&self) -> Vec<(ObjectKey, Arc<E>)> {
        self.kept
            .read()
            .entries
            .iter()
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// Shows every entry, in no particular order, without keeping any. Nothing else is written meanwhile.
    pub(crate) fn for_each(&self, mut show: impl FnMut(&E)) {
        for entry in self.kept.read().entries.values() {
            show(entry);
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.kept.read().entries.len()
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
        self.put(&key_of(&object), object, Source::Reply);
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
                    self.kept.write().overlaid = Some(HashSet::new());
                }
                Some(Ok(Event::InitApply(object))) => {
                    listed.insert(key_of(&object));
                    self.keep(object, Source::Listing, &|change: Change<'_, E>| {
                        if self.is_synced() {
                            changed(change);
                        }
                    });
                }
                Some(Ok(Event::InitDone)) => {
                    trouble.end();
                    self.end_listing(&std::mem::take(&mut listed), &changed);
                }
                Some(Ok(Event::Apply(object))) => self.keep(object, Source::Watch, &changed),
                Some(Ok(Event::Delete(object))) => self.drop_key(&key_of(&object), &changed),
            }
        }
    }

    fn keep(&self, object: Value, source: Source, changed: &impl Fn(Change<'_, E>)) {
        let key = key_of(&object);
        if let Some((before, after)) = self.put(&key, object, source) {
            changed(Change {
                key: &key,
                before: before.as_ref(),
                after: Some(&after),
            });
        }
    }

    /// Puts an object here unless what is here has passed it. Returns what was here and what is now.
    ///
    /// Building takes its time, and nobody waits for it: what came meanwhile is looked at again under the lock.
    fn put(
        &self,
        key: &ObjectKey,
        object: Value,
        source: Source,
    ) -> Option<(Option<Arc<E>>, Arc<E>)> {
        let version = version_of(&object);
        let previous = {
            let kept = self.kept.read();
            if kept.has_passed(key, version, source) {
                return None;
            }
            kept.entries.get(key).cloned()
        };
        let after = Arc::new(E::build(object, previous.as_deref()));
        let mut kept = self.kept.write();
        if kept.has_passed(key, version, source) {
            return None;
        }
        if source == Source::Reply
            && let Some(overlaid) = &mut kept.overlaid
        {
            overlaid.insert(key.clone());
        }
        let before = kept.entries.insert(key.clone(), after.clone());
        Some((before, after))
    }

    fn drop_key(&self, key: &ObjectKey, changed: &impl Fn(Change<'_, E>)) {
        let before = self.kept.write().entries.remove(key);
        changed(Change {
            key,
            before: before.as_ref(),
            after: None,
        });
    }

    fn end_listing(&self, listed: &HashSet<ObjectKey>, changed: &impl Fn(Change<'_, E>)) {
        let gone: Vec<ObjectKey> = {
            let mut kept = self.kept.write();
            kept.overlaid = None;
            let unlisted = kept.entries.keys().filter(|key| !listed.contains(*key));
            unlisted.cloned().collect()
        };
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
        self.events::<false>(client)
    }

    /// Metadata only.
    pub fn metadata(&self, client: kube::Client) -> Events {
        self.events::<true>(client)
    }

    /// What tells of rights and definitions is among these kinds, so nobody tells them.
    fn events<const METADATA_ONLY: bool>(&self, client: kube::Client) -> Events {
        let api = kube::Api::all_with(client, &self.resource());
        events_of::<METADATA_ONLY>(api, page(), Heard::ByTrying)
    }
}

fn page() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

/// The events of one resource as plain values; interruptions heal by themselves. A watch that is refused is tried rarely: who
/// hears of changed rights or definitions starts another one.
pub(crate) fn watched<const METADATA_ONLY: bool>(
    client: kube::Client,
    resource: &ApiResource,
    config: watcher::Config,
) -> Events {
    let api = kube::Api::all_with(client, resource);
    events_of::<METADATA_ONLY>(api, config, Heard::Elsewhere)
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
    events_of::<true>(api, page().labels(labels), Heard::Elsewhere)
}

/// Metadata of one object, which need not be there.
pub(crate) fn named_metadata(client: kube::Client, served: &Served, key: &ObjectKey) -> Events {
    let resource = served.resource();
    let api = if served.namespaced {
        kube::Api::namespaced_with(client, &key.namespace, &resource)
    } else {
        kube::Api::all_with(client, &resource)
    };
    let named = page().fields(&format!("metadata.name={}", key.name));
    events_of::<true>(api, named, Heard::Elsewhere)
}

fn events_of<const METADATA_ONLY: bool>(
    api: kube::Api<RawObject<METADATA_ONLY>>,
    config: watcher::Config,
    heard: Heard,
) -> Events {
    let events = watcher::watcher(api, config).map_ok(as_value);
    backed_off(events, heard, crate::jitter::random).boxed()
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

/// The most texts that are remembered of one watch; a text may hold a time or a number of its own.
const MOST_TOLD: usize = 16;

/// What was told of one watch that does not come about. Once is enough: it is tried again and again.
#[derive(Default)]
pub(crate) struct Trouble {
    told: BTreeSet<String>,
}

impl Trouble {
    /// A kind that is never listed leaves the process idle and not ready: the log is where its operator looks then.
    fn log(&mut self, error: &watcher::Error) {
        let text = crate::cluster::chain(error);
        match advice(error) {
            Some(advice) if self.is_news(&text) => warn!(error = %text, "{advice}"),
            _ => debug!(error = %text, "watch interrupted"),
        }
    }

    /// Whether this was not told yet.
    pub(crate) fn is_news(&mut self, text: &str) -> bool {
        self.told.len() < MOST_TOLD && self.told.insert(text.to_owned())
    }

    /// It came about; the next trouble is another one.
    pub(crate) fn end(&mut self) {
        self.told.clear();
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
        (Some(_), watcher::Error::InitialListFailed(_)) => Some(
            "a kind cannot be listed: see what the API server says; it is tried again ever less often",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::sync::Mutex;

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
        for (code, word) in [
            (401, "credentials"),
            (403, "grant"),
            (404, "deploy/crds"),
            (429, "ever less often"),
            (500, "ever less often"),
        ] {
            let told = advice(&watcher::Error::InitialListFailed(answered(code))).unwrap();
            assert!(told.contains(word), "{code}: {told}");
        }
        let silent = || kube::Error::LinesCodecMaxLineLengthExceeded;
        assert!(advice(&watcher::Error::InitialListFailed(silent())).is_some());
        for passing in [
            watcher::Error::WatchFailed(silent()),
            watcher::Error::WatchFailed(answered(410)),
        ] {
            assert_eq!(advice(&passing), None, "{passing}");
        }
    }

    #[test]
    fn each_text_is_told_once_until_the_watch_has_come_about() {
        let mut trouble = Trouble::default();
        let told = |trouble: &mut Trouble, texts: &[&str]| -> Vec<bool> {
            texts.iter().map(|text| trouble.is_news(text)).collect()
        };
        assert_eq!(
            told(&mut trouble, &["a", "a", "b", "a", "b"]),
            [true, false, true, false, false]
        );
        trouble.end();
        assert_eq!(told(&mut trouble, &["b", "b"]), [true, false]);
        let numbered: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let numbered: Vec<&str> = numbered.iter().map(String::as_str).collect();
        let news = told(&mut trouble, &numbered)
            .into_iter()
            .filter(|news| *news);
        assert!(news.count() < MOST_TOLD);
    }

    struct Seen(u64, String);

    thread_local! {
        /// What happens while the next entry is built, as if another thread had done it.
        static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    }

    fn meanwhile(happens: impl FnOnce() + 'static) {
        MEANWHILE.set(Some(Box::new(happens)));
    }

    impl Entry for Seen {
        fn build(object: Value, _: Option<&Self>) -> Self {
            if let Some(happens) = MEANWHILE.take() {
                happens();
            }
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

    async fn changes(events: Vec<Event<Value>>, reflector: &Arc<Reflector<Seen>>) -> Vec<String> {
        let seen = Mutex::new(Vec::new());
        let stream: Events = futures::stream::iter(events.into_iter().map(Ok)).boxed();
        let note = |change: Change<'_, Seen>| {
            let text = |entry: Option<&Arc<Seen>>| {
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
        let reflector = Arc::new(Reflector::<Seen>::default());
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
        let reflector = Arc::new(Reflector::<Seen>::default());
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
        let reflector = Arc::new(Reflector::<Seen>::default());
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
        let reflector = Arc::new(Reflector::<Seen>::default());
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
        let begun = async || reflector.kept.read().overlaid.is_some();
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

    #[tokio::test]
    async fn what_comes_while_an_older_object_is_built_stays() {
        let reflector = Arc::new(Reflector::<Seen>::default());
        let held = || reflector.get(&ObjectKey::new("", "a")).unwrap().1.clone();
        changes(listing([object("a", 1, json!("x"))]), &reflector).await;
        // A reply, while the watch builds what was there before it.
        let replied = reflector.clone();
        meanwhile(move || replied.overlay(object("a", 3, json!("ours"))));
        let older = vec![Event::Apply(object("a", 2, json!("older")))];
        assert!(changes(older, &reflector).await.is_empty());
        assert_eq!(held(), "ours");
        // The same while a listing builds it.
        let replied = reflector.clone();
        meanwhile(move || replied.overlay(object("a", 5, json!("ours again"))));
        assert!(
            changes(listing([object("a", 4, json!("listed"))]), &reflector)
                .await
                .is_empty()
        );
        assert_eq!(held(), "ours again");
        // What the watch shows, while an older reply is built.
        let watched = reflector.clone();
        meanwhile(move || watched.keep(object("a", 7, json!("theirs")), Source::Watch, &|_| {}));
        reflector.overlay(object("a", 6, json!("late")));
        assert_eq!(held(), "theirs");
        // Its deletion, too.
        let watched = reflector.clone();
        meanwhile(move || watched.drop_key(&ObjectKey::new("", "a"), &|_| {}));
        reflector.overlay(object("a", 8, json!("ghost")));
        assert!(reflector.is_empty());
    }

    #[tokio::test]
    async fn a_change_is_told_from_what_it_replaced() {
        let reflector = Arc::new(Reflector::<Seen>::default());
        changes(listing([object("a", 1, json!("x"))]), &reflector).await;
        let replied = reflector.clone();
        meanwhile(move || replied.overlay(object("a", 2, json!("ours"))));
        let newer = vec![Event::Apply(object("a", 3, json!("theirs")))];
        assert_eq!(changes(newer, &reflector).await, ["a ours>theirs"]);
    }
}
