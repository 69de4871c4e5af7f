//! Stores of the kinds we know by name: owners, blueprints, templates, service accounts.
//!
//! What is kept of an object is built once per resourceVersion (compiled templates, parsed selectors),
//! so that a reconcile does none of that work. An object that cannot be understood is kept as such: it
//! must not stop the watch, and whoever needs it can say what is wrong with it.

mod backoff;
mod health;
mod optional;
mod overlaid;
mod watched;

use std::sync::Arc;

use futures::StreamExt as _;
use kube::runtime::watcher::Event;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::sync::watch as signal;
use tokio_util::sync::CancellationToken;

use crate::stamped::ObjectKey;

pub(crate) use health::{Refused, WatchHealth, answer};
pub(crate) use optional::follow_if_installed;
pub(crate) use overlaid::{Overlaid, Source, Unlisted};
pub use watched::{Events, Watched};
pub(crate) use watched::{Kept, PAGE, Selection, named_metadata, selected_metadata, watched};

/// What a store keeps of an object.
pub trait Entry: Send + Sync + Sized + 'static {
    /// Builds the entry.
    fn build(object: Value) -> Self;

    /// The uid of the object, where another one of its name may be listed before its deletion is told.
    fn uid(&self) -> Option<&str> {
        None
    }
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
    /// What a watch and replies to our own writes change, under one lock: each looks at what the
    /// other has put here.
    kept: RwLock<Overlaid<E>>,
    synced: signal::Sender<bool>,
    /// Whether all entries of the first listing were told.
    told: signal::Sender<bool>,
    health: Mutex<WatchHealth>,
}

impl<E: Entry> Default for Reflector<E> {
    fn default() -> Self {
        Self {
            kept: RwLock::default(),
            synced: signal::Sender::new(false),
            told: signal::Sender::new(false),
            health: Mutex::default(),
        }
    }
}

impl<E: Entry> Reflector<E> {
    /// Empty, and fed by a watch that takes the place of a refused one: it is refused until the
    /// contrary is known.
    #[must_use]
    pub fn after(refused: &Self) -> Self {
        Self {
            health: Mutex::new(WatchHealth::after(&refused.health.lock())),
            ..Self::default()
        }
    }

    /// What the API server says, while it refuses the watch.
    pub fn refused(&self) -> Option<String> {
        self.health.lock().refused().map(str::to_owned)
    }

    /// What came of the watch of the kind's definition.
    fn note_definition(&self, event: &kube::runtime::watcher::Result<Event<Value>>) {
        self.health.lock().note_definition(event);
    }

    /// The entry with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<E>> {
        self.kept.read().get(key).cloned()
    }

    /// All entries, in no particular order.
    pub fn all(&self) -> Vec<(ObjectKey, Arc<E>)> {
        self.kept
            .read()
            .iter()
            .map(|(key, entry)| (key.clone(), entry.clone()))
            .collect()
    }

    /// Those keys, of what changed last first.
    pub(crate) fn newest_first(&self, wanted: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        self.kept.read().newest_first(wanted)
    }

    /// Shows every entry, in no particular order, without keeping any. Nothing else is written meanwhile.
    pub fn for_each(&self, mut show: impl FnMut(&E)) {
        for (_, entry) in self.kept.read().iter() {
            show(entry);
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.kept.read().len()
    }

    /// Whether there is no entry.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.kept.read().len() == 0
    }

    /// Whether the first listing is complete.
    pub fn is_synced(&self) -> bool {
        *self.synced.borrow()
    }

    /// Turns true with the first complete listing.
    pub(crate) fn synced_signal(&self) -> signal::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Whether whoever is told of changes was told of all entries of the first listing. That takes a moment longer.
    pub(crate) fn is_told(&self) -> bool {
        *self.told.borrow()
    }

    /// Turns true then.
    pub(crate) fn told_signal(&self) -> signal::Receiver<bool> {
        self.told.subscribe()
    }

    /// Takes the reply to our own write, unless the watch has passed it.
    pub fn overlay(&self, object: Value) {
        self.put(&key_of(&object), object, Source::Reply);
    }

    /// Follows the events until cancelled; `changed` is told about every change, after it is kept.
    /// During the first listing it is told only once everything is there.
    pub async fn follow(
        self: Arc<Self>,
        events: Events,
        cancel: CancellationToken,
        changed: impl Fn(Change<'_, E>) + Send,
    ) {
        self.follow_and_tell(events, cancel, changed, || {}).await;
    }

    /// The same; `refused` is told when the watch is refused, for another reason, or no longer,
    /// once the event that says so has been followed.
    pub async fn follow_and_tell(
        self: Arc<Self>,
        mut events: Events,
        cancel: CancellationToken,
        changed: impl Fn(Change<'_, E>) + Send,
        refused: impl Fn() + Send,
    ) {
        loop {
            let event = tokio::select! {
                () = cancel.cancelled() => return,
                event = events.next() => event,
            };
            let Some(event) = event else { return };
            let tells = self.health.lock().note(&event);
            match event {
                Err(error) => self.health.lock().log(&error),
                Ok(Event::Init) => self.kept.write().begin_listing(),
                Ok(Event::InitApply(object)) => {
                    self.kept.write().lists(&key_of(&object));
                    self.keep(object, &|change: Change<'_, E>| {
                        if self.is_synced() {
                            changed(change);
                        }
                    });
                }
                Ok(Event::InitDone) => {
                    self.health.lock().forget_logged();
                    self.end_listing(&changed);
                }
                Ok(Event::Apply(object)) => self.keep(object, &changed),
                Ok(Event::Delete(object)) => {
                    let key = key_of(&object);
                    if !self.has_successor(&key, &object) {
                        self.drop_key(&key, &changed);
                    }
                }
            }
            if tells {
                refused();
            }
        }
    }

    fn keep(&self, object: Value, changed: &impl Fn(Change<'_, E>)) {
        let key = key_of(&object);
        if let Some((before, after)) = self.put(&key, object, Source::Watch) {
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
        // A reply that comes after the deletion leaves no ghost.
        let is_old = |kept: &Overlaid<E>| {
            let is_ghost = source == Source::Reply && kept.get(key).is_none();
            is_ghost || kept.has_passed(key, version, source)
        };
        if is_old(&self.kept.read()) {
            return None;
        }
        let after = Arc::new(E::build(object));
        let mut kept = self.kept.write();
        if is_old(&kept) {
            return None;
        }
        let before = kept.put(key.clone(), (version, after.clone()), source);
        Some((before, after))
    }

    /// Whether what is kept is not what was deleted but the next one of that name, as a listing beside the watch may show it.
    /// Versions alone do not tell: who only lost the labels that are watched has been there since, and replies tell of it.
    fn has_successor(&self, key: &ObjectKey, deleted: &Value) -> bool {
        let uid = deleted["metadata"]["uid"].as_str().unwrap_or_default();
        let kept = self.kept.read();
        let is_another = kept
            .get(key)
            .and_then(|entry| entry.uid())
            .is_some_and(|kept| kept != uid);
        is_another && kept.is_newer(key, version_of(deleted))
    }

    fn drop_key(&self, key: &ObjectKey, changed: &impl Fn(Change<'_, E>)) {
        let before = self.kept.write().remove(key);
        changed(Change {
            key,
            before: before.as_ref(),
            after: None,
        });
    }

    /// What this says nothing of any more is not kept.
    pub(crate) fn keep_only(
        &self,
        is_kept: impl Fn(&ObjectKey) -> bool,
        changed: &impl Fn(Change<'_, E>),
    ) {
        let dropped: Vec<ObjectKey> = {
            let kept = self.kept.read();
            let keys = kept.iter().map(|(key, _)| key);
            keys.filter(|key| !is_kept(key)).cloned().collect()
        };
        for key in dropped {
            let mut kept = self.kept.write();
            // It may be wanted again by now, and have been listed since.
            if is_kept(&key) {
                continue;
            }
            let before = kept.remove(&key);
            drop(kept);
            changed(Change {
                key: &key,
                before: before.as_ref(),
                after: None,
            });
        }
    }

    /// Nothing is there any more.
    pub(crate) fn clear(&self, changed: &impl Fn(Change<'_, E>)) {
        for (key, _) in self.all() {
            self.drop_key(&key, changed);
        }
    }

    fn end_listing(&self, changed: &impl Fn(Change<'_, E>)) {
        let gone = self.kept.write().end_listing(Unlisted::Gone);
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
        self.told.send_replace(true);
    }
}

/// Namespace and name of an object.
pub fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(text("namespace"), text("name"))
}

/// Calls `happened` with the namespace and name of every object that changes after the first listing, keeping
/// nothing. After an interruption, when changes may have been missed, it is called once with `None`.
pub(crate) async fn follow_changes(
    mut events: Events,
    cancel: CancellationToken,
    synced: signal::Sender<bool>,
    happened: impl Fn(Option<&ObjectKey>) + Send,
) {
    let mut health = WatchHealth::default();
    loop {
        let event = tokio::select! {
            () = cancel.cancelled() => return,
            event = events.next() => event,
        };
        match event {
            None => return,
            Some(Err(error)) => health.log(&error),
            Some(Ok(Event::Init | Event::InitApply(_))) => {}
            Some(Ok(Event::InitDone)) => {
                health.forget_logged();
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

#[cfg(test)]
mod tests;
