//! Objects of others that stand where one of ours is to be. The watch of their kind does not show them, as they lack its label:
//! each is watched for itself, metadata only, as long as an owner waits for it.
//!
//! Only speeds things up: an owner whose object has no place here looks every half a minute.

use std::collections::HashMap;

use futures::StreamExt as _;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::ObjectKey;
use crate::mapper::Kind;
use crate::reflect::Events;

/// Watches at a time,
const MOST: usize = 64;

/// and of these in one namespace: a tenant may make any number of objects that are in the way.
const MOST_OF_A_NAMESPACE: usize = 16;

type Place = (Kind, ObjectKey);

/// The objects that are watched so.
#[derive(Default)]
pub(super) struct ForeignWatches(Mutex<Held>);

#[derive(Default)]
struct Held {
    watches: HashMap<Place, CancellationToken>,
    /// By object, which move it was that it made last; of so many as are watched.
    moves: HashMap<Place, u64>,
    moved: u64,
}

impl ForeignWatches {
    /// Takes a place for an object; `None` if it has one already, or there is none left.
    pub(super) fn begin(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        parent: &CancellationToken,
    ) -> Option<CancellationToken> {
        let mut held = self.0.lock();
        let place = (kind.clone(), key.clone());
        let places = held.watches.keys();
        let beside = places.filter(|(_, other)| other.namespace == key.namespace);
        if held.watches.contains_key(&place)
            || held.watches.len() >= MOST
            || beside.count() >= MOST_OF_A_NAMESPACE
        {
            return None;
        }
        let cancel = parent.child_token();
        held.watches.insert(place, cancel.clone());
        Some(cancel)
    }

    /// An object is gone, or not whose it was.
    pub(super) fn moved(&self, kind: &Kind, key: &ObjectKey) {
        let mut held = self.0.lock();
        if held.moves.len() >= MOST {
            held.moves.clear();
        }
        held.moved += 1;
        let number = held.moved;
        held.moves.insert((kind.clone(), key.clone()), number);
    }

    /// Another number after each move of the object.
    pub(super) fn moves(&self, kind: &Kind, key: &ObjectKey) -> u64 {
        let held = self.0.lock();
        let number = held.moves.get(&(kind.clone(), key.clone()));
        number.copied().unwrap_or_default()
    }

    /// Ends the watches of objects that nobody waits for.
    pub(super) fn retain(&self, is_awaited: impl Fn(&Kind, &ObjectKey) -> bool) {
        self.0.lock().watches.retain(|(kind, key), cancel| {
            let stays = is_awaited(kind, key);
            if !stays {
                cancel.cancel();
            }
            stays
        });
    }
}

/// Whether this can stand in a field selector as it is.
pub(super) fn is_plain(name: &str) -> bool {
    let fits = |char: char| char.is_ascii_alphanumeric() || "-._:".contains(char);
    !name.is_empty() && name.chars().all(fits)
}

/// What says whose an object is, and whether it may be taken over. It may change otherwise as often as it will.
fn marks(object: &Value) -> [Value; 5] {
    let metadata = &object["metadata"];
    [
        metadata["uid"].clone(),
        metadata["labels"].clone(),
        metadata["ownerReferences"].clone(),
        metadata["annotations"][api_types::labels::ADOPT].clone(),
        metadata["deletionTimestamp"].clone(),
    ]
}

/// Follows one object until cancelled; `moved` is told when it is gone, or not whose it was. It is also told of the first
/// listing: the object may have moved between the look that found it in the way and that listing.
pub(super) async fn follow(mut events: Events, cancel: CancellationToken, moved: impl Fn() + Send) {
    // Nothing is known before the first listing; then it is there or not.
    let mut known: Option<Option<[Value; 5]>> = None;
    let mut listed = None;
    loop {
        let event = tokio::select! {
            () = cancel.cancelled() => return,
            event = events.next() => event,
        };
        let now = match event {
            None => return,
            Some(Err(error)) => {
                debug!(%error, "an object that is in the way is not watched");
                continue;
            }
            Some(Ok(Event::Init)) => {
                listed = None;
                continue;
            }
            Some(Ok(Event::InitApply(object))) => {
                listed = Some(marks(&object));
                continue;
            }
            Some(Ok(Event::InitDone)) => listed.take(),
            Some(Ok(Event::Apply(object))) => Some(marks(&object)),
            Some(Ok(Event::Delete(_))) => None,
        };
        let is_news = known.as_ref() != Some(&now);
        known = Some(now);
        if is_news {
            moved();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use serde_json::json;

    use super::*;

    fn object(uid: &str, annotations: &Value) -> Value {
        json!({"metadata": {"name": "a", "uid": uid, "annotations": annotations}})
    }

    async fn told(events: Vec<Event<Value>>) -> usize {
        let told = AtomicUsize::new(0);
        let events = futures::stream::iter(events.into_iter().map(Ok)).boxed();
        let count = || {
            told.fetch_add(1, Ordering::Relaxed);
        };
        follow(events, CancellationToken::new(), count).await;
        told.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn owners_hear_of_its_end_and_of_whose_it_is_and_of_nothing_else() {
        let plain = || object("u", &json!({"heartbeat": "1"}));
        let there = || vec![Event::Init, Event::InitApply(plain()), Event::InitDone];
        let after = |event| there().into_iter().chain([event]).collect();
        // Each of them hears of the first listing, whatever that shows.
        assert_eq!(told(there()).await, 1, "given up before");
        let gone = vec![Event::Init, Event::InitDone];
        assert_eq!(told(gone).await, 1, "gone before");
        assert_eq!(told(after(Event::Delete(plain()))).await, 2);
        let beat = object("u", &json!({"heartbeat": "2"}));
        assert_eq!(told(after(Event::Apply(beat))).await, 1);
        let given = object("u", &json!({"heartbeat": "1", "carto.run/adopt": "true"}));
        assert_eq!(told(after(Event::Apply(given))).await, 2);
        let other = object("v", &json!({"heartbeat": "1"}));
        assert_eq!(told(after(Event::Apply(other))).await, 2);
        let again = there().into_iter().chain(there());
        assert_eq!(told(again.collect()).await, 1, "listed anew");
        let missed = there().into_iter().chain([Event::Init, Event::InitDone]);
        assert_eq!(told(missed.collect()).await, 2, "gone between two listings");
    }

    #[test]
    fn places_are_bounded_and_given_on() {
        let foreign_watches = ForeignWatches::default();
        let kind = Kind::new("v1", "ConfigMap");
        let parent = CancellationToken::new();
        let key = |namespace: usize, name: usize| {
            ObjectKey::new(&namespace.to_string(), &name.to_string())
        };
        let begin = |key: &ObjectKey| foreign_watches.begin(&kind, key, &parent);
        for name in 0..MOST_OF_A_NAMESPACE {
            assert!(begin(&key(0, name)).is_some());
        }
        assert!(begin(&key(0, 99)).is_none(), "its share is taken");
        let mut namespace = 1;
        while begin(&key(namespace, 0)).is_some() {
            namespace += 1;
        }
        assert_eq!(foreign_watches.0.lock().watches.len(), MOST);
        let first = foreign_watches.0.lock().watches[&(kind.clone(), key(0, 0))].clone();
        assert!(begin(&key(0, 0)).is_none(), "it is watched already");
        foreign_watches.retain(|_, other| *other != key(0, 0));
        assert!(first.is_cancelled());
        assert!(begin(&key(0, 99)).is_some());
    }

    #[test]
    fn each_move_has_another_number() {
        let foreign_watches = ForeignWatches::default();
        let kind = Kind::new("v1", "ConfigMap");
        let key = ObjectKey::new("n", "a");
        let mut seen = std::collections::BTreeSet::from([foreign_watches.moves(&kind, &key)]);
        for other in 0..2 * MOST {
            foreign_watches.moved(&kind, &ObjectKey::new("n", &other.to_string()));
            foreign_watches.moved(&kind, &key);
            assert!(seen.insert(foreign_watches.moves(&kind, &key)));
        }
    }

    #[test]
    fn only_names_without_signs_of_a_selector_are_asked_for() {
        for name in ["a", "a.b-c", "system:node"] {
            assert!(is_plain(name), "{name}");
        }
        for other in ["", "a,b", "a=b", "a\\", "a b", "a!"] {
            assert!(!is_plain(other), "{other}");
        }
    }
}
