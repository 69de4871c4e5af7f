//! What the cluster holds of one kind: fed by a watch, overlaid by the replies to our own writes.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::object_key::ObjectKey;
use crate::reflect::{Overlaid, Source, Unlisted};
use crate::stamped::object::{Stamped, name_index};

/// Deletions remembered against replies that arrive after them.
const TOMBSTONES: usize = 1024;

/// Deleted objects whose end may not have been read yet.
const DEPARTED: usize = 512;

/// Objects of one kind, indexed by the uid of their controller owner.
#[derive(Debug, Default)]
pub struct Store {
    objects: Overlaid<Stamped>,
    by_owner: HashMap<Box<str>, BTreeSet<ObjectKey>>,
    tombstones: VecDeque<Tombstone>,
    /// The last that was seen of objects of immutable families. One may end and be deleted before any reconcile comes to
    /// look at it (`ttlSecondsAfterFinished: 0`); what it came to would be lost, and it would be run again.
    departed: VecDeque<Arc<Stamped>>,
}

/// An object that is gone, or has lost the label that the watch selects by.
#[derive(Debug)]
struct Tombstone {
    uid: Box<str>,
    /// The version with which it went. A reply that shows this one or a later one shows an object that is still there: the
    /// deletion of an object has a later version than all that it ever had.
    version: u64,
}

impl Tombstone {
    fn covers(&self, object: &Stamped) -> bool {
        self.uid == object.uid && object.resource_version < self.version
    }
}

/// Whose objects changed: the controller owner before and after.
pub type Touched = Vec<Arc<Stamped>>;

impl Store {
    /// The object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Stamped>> {
        self.objects.get(key).cloned()
    }

    /// The objects whose controller owner has this uid, or, of cluster-scoped objects, this namespace and name; ordered by
    /// key.
    pub(crate) fn owned_by(&self, owner: &ObjectKey, uid: &str) -> Vec<Arc<Stamped>> {
        let by_name = name_index(&owner.namespace, &owner.name);
        let keys = [self.by_owner.get(uid), self.by_owner.get(&by_name)];
        keys.into_iter()
            .flatten()
            .flatten()
            .filter_map(|key| self.get(key))
            .collect()
    }

    /// The last that was seen of objects that are gone and whose controller owner had this uid.
    pub(crate) fn departed(&self, uid: &str) -> Vec<Arc<Stamped>> {
        let is_owned = |object: &&Arc<Stamped>| {
            let controller = object.controller.as_ref();
            controller.is_some_and(|controller| *controller.uid == *uid)
        };
        self.departed.iter().filter(is_owned).cloned().collect()
    }

    /// All objects, in no particular order.
    pub fn all(&self) -> Touched {
        let held = self.objects.iter();
        held.map(|(_, object)| object.clone()).collect()
    }

    /// What is here and not in `later`.
    pub(crate) fn missing_in(&self, later: &Self) -> Touched {
        self.objects
            .iter()
            .filter(|(key, _)| later.objects.get(key).is_none())
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// Number of objects.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A new listing begins.
    pub(crate) fn begin_listing(&mut self) {
        self.objects.begin_listing();
    }

    /// The listing is complete: what it did not show is gone, unless a reply put it here meanwhile.
    pub(crate) fn end_listing(&mut self) -> Touched {
        let gone = self.objects.end_listing(Unlisted::Created);
        gone.iter().filter_map(|key| self.remove(key)).collect()
    }

    /// The watch or a listing shows an object. Returns whose owners are to look again.
    pub fn show(&mut self, object: Stamped) -> Touched {
        self.objects.lists(&object.key);
        let version = object.resource_version;
        if self.objects.has_passed(&object.key, version, Source::Watch) {
            return Vec::new();
        }
        self.replace(object, Source::Watch)
    }

    /// A reply to our own write shows an object. The reply is newer than what the watch has delivered,
    /// unless the object was deleted in between.
    pub(crate) fn overlay(&mut self, object: Stamped) {
        if self.tombstones.iter().any(|dead| dead.covers(&object)) {
            return;
        }
        let version = object.resource_version;
        if !self.objects.has_passed(&object.key, version, Source::Reply) {
            self.replace(object, Source::Reply);
            return;
        }
        let held = self.objects.get_mut(&object.key);
        if let Some(held) = held.filter(|held| held.uid == object.uid) {
            // The watch was faster than the reply, which may still say what we know of the object.
            Arc::make_mut(held).hear_of(object);
        }
    }

    /// An object is gone for good.
    pub fn hide(&mut self, key: &ObjectKey, uid: &str) -> Touched {
        self.hide_since(key, uid, u64::MAX)
    }

    fn hide_since(&mut self, key: &ObjectKey, uid: &str, version: u64) -> Touched {
        self.tombstones.push_back(Tombstone {
            uid: uid.into(),
            version,
        });
        if self.tombstones.len() > TOMBSTONES {
            self.tombstones.pop_front();
        }
        match self.objects.get(key) {
            Some(held) if *held.uid == *uid => self.remove(key).into_iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The watch says that an object is gone, or lost the label that the watch selects by: this is the last state of it.
    pub(crate) fn hide_last_seen(&mut self, mut object: Stamped) -> Touched {
        let held = self.objects.get(&object.key);
        let memory = held.filter(|held| held.uid == object.uid);
        let memory = memory.map(|held| held.memory.clone());
        // An API that tells no versions does not tell either whether a reply is older.
        let version = match object.resource_version {
            0 => u64::MAX,
            version => version,
        };
        let touched = self.hide_since(&object.key, &object.uid, version);
        if object.is_of_family() {
            object.memory = memory.unwrap_or_default();
            self.departed.push_back(Arc::new(object));
            if self.departed.len() > DEPARTED {
                self.departed.pop_front();
            }
        }
        touched
    }

    /// Drops what belongs to owners in other namespaces: it is there, but another process sees to it.
    pub(crate) fn keep_only(&mut self, is_kept: impl Fn(&str) -> bool) {
        let others = self.objects.iter();
        let others = others.filter(|(_, object)| !is_kept(&object.owner_namespace));
        let others: Vec<ObjectKey> = others.map(|(key, _)| key.clone()).collect();
        for key in others {
            self.remove(&key);
        }
        self.departed
            .retain(|object| is_kept(&object.owner_namespace));
    }

    fn replace(&mut self, mut object: Stamped, source: Source) -> Touched {
        // A label that comes back brings the same uid back: it is no ghost.
        self.tombstones.retain(|dead| dead.uid != object.uid);
        self.departed.retain(|gone| gone.uid != object.uid);
        let (key, version) = (object.key.clone(), object.resource_version);
        let before = self.get(&key);
        if let Some(before) = before.as_ref().filter(|before| before.uid == object.uid) {
            object.remember(before);
        }
        if before.as_ref().is_some_and(|before| **before == object) {
            // Nothing a reconcile could see, but the version has moved on.
            self.objects.put(key, (version, Arc::new(object)), source);
            return Vec::new();
        }
        let mut touched: Touched = before.iter().filter_map(|_| self.remove(&key)).collect();
        if let Some(owner) = object.owner_index() {
            self.by_owner.entry(owner).or_default().insert(key.clone());
        }
        let object = Arc::new(object);
        self.objects.put(key, (version, object.clone()), source);
        touched.push(object);
        touched
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<Arc<Stamped>> {
        let removed = self.objects.remove(key)?;
        if let Some(owner) = removed.owner_index()
            && let Some(keys) = self.by_owner.get_mut(&owner)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_owner.remove(&owner);
            }
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mapper::Kind;
    use crate::stamped::projection::Projection;
    use serde_json::json;

    fn object(name: &str, uid: &str, version: u64, value: &str) -> Stamped {
        let object = json!({
            "metadata": {"name": name, "namespace": "n", "uid": uid, "resourceVersion": version.to_string(),
                "ownerReferences": [{"kind": "Workload", "name": "w", "uid": "owner", "controller": true}]},
            "data": {"k": value}});
        Stamped::from_value(
            &object,
            &Kind::new("v1", "ConfigMap"),
            &Projection::new([vec!["data".to_owned()]]),
            "m",
        )
    }

    fn value(store: &Store, name: &str) -> Option<String> {
        store
            .get(&ObjectKey::new("n", name))
            .map(|held| held.content()["data"]["k"].as_str().unwrap().to_owned())
    }

    #[test]
    fn an_older_event_does_not_undo_the_reply_to_our_write() {
        let mut store = Store::default();
        store.show(object("a", "u", 5, "old"));
        store.overlay(object("a", "u", 8, "new"));
        assert!(store.show(object("a", "u", 6, "between")).is_empty());
        assert_eq!(value(&store, "a").as_deref(), Some("new"));
        assert!(
            store.show(object("a", "u", 8, "new")).is_empty(),
            "the echo of our own write wakes nobody"
        );
        assert_eq!(store.show(object("a", "u", 9, "later")).len(), 2);
    }

    #[test]
    fn a_reply_that_arrives_after_the_deletion_leaves_no_ghost() {
        let mut store = Store::default();
        store.show(object("a", "u", 5, "x"));
        store.hide(&ObjectKey::new("n", "a"), "u");
        store.overlay(object("a", "u", 7, "x"));
        assert!(store.is_empty());
    }

    /// Somebody took its label away, and it was read since.
    #[test]
    fn an_object_that_only_lost_its_label_is_there_when_a_reply_shows_it() {
        let mut store = Store::default();
        store.show(object("a", "u", 5, "x"));
        store.hide_last_seen(object("a", "u", 7, "x"));
        store.overlay(object("a", "u", 6, "x"));
        assert!(store.is_empty(), "that is how it was before");
        store.overlay(object("a", "u", 7, "hidden"));
        assert_eq!(value(&store, "a").as_deref(), Some("hidden"));
    }

    #[test]
    fn a_late_deletion_of_a_predecessor_leaves_the_successor() {
        let mut store = Store::default();
        store.overlay(object("a", "second", 9, "x"));
        assert!(store.hide(&ObjectKey::new("n", "a"), "first").is_empty());
        assert_eq!(store.len(), 1);
    }

    #[test]
    fn a_listing_removes_what_it_does_not_show_but_not_what_was_written_meanwhile() {
        let mut store = Store::default();
        store.show(object("stays", "1", 1, "x"));
        store.show(object("goes", "2", 1, "x"));
        store.begin_listing();
        store.show(object("stays", "1", 1, "x"));
        store.overlay(object("written", "3", 7, "x"));
        let touched = store.end_listing();
        assert_eq!(
            touched
                .iter()
                .map(|object| &*object.key.name)
                .collect::<Vec<_>>(),
            ["goes"]
        );
        assert_eq!(store.len(), 2);
        store.begin_listing();
        store.show(object("stays", "1", 1, "x"));
        assert_eq!(
            store.end_listing().len(),
            1,
            "the next listing would have shown it"
        );
    }

    #[test]
    fn a_listing_after_a_restore_undoes_the_replies_of_before() {
        let mut store = Store::default();
        store.show(object("a", "u", 5, "restored"));
        store.overlay(object("a", "u", 80, "lost"));
        store.begin_listing();
        assert_eq!(store.show(object("a", "u", 5, "restored")).len(), 2);
        store.overlay(object("a", "u", 7, "written since"));
        assert!(store.show(object("a", "u", 5, "restored")).is_empty());
        store.end_listing();
        assert_eq!(value(&store, "a").as_deref(), Some("written since"));
        assert_eq!(store.show(object("a", "u", 8, "later")).len(), 2);
    }

    #[test]
    fn what_is_known_by_a_reply_outlives_events_and_readings_that_know_nothing() {
        let known = |version: u64| {
            let mut object = object("a", "u", version, "x");
            object.memory.run = Some(Box::new(crate::stamped::KnownAs {
                digest: Some("sha256:x".into()),
                sequence: 3,
                state: None,
                beside: None,
            }));
            object
        };
        let remembered = |store: &Store| {
            let held = store.get(&ObjectKey::new("n", "a")).unwrap();
            held.memory.run.as_ref().map(|run| run.sequence)
        };
        let mut store = Store::default();
        // The watch was faster than the reply.
        store.show(object("a", "u", 5, "x"));
        store.overlay(known(5));
        assert_eq!(remembered(&store), Some(3));
        // Read again, and changed by somebody.
        store.overlay(object("a", "u", 5, "x"));
        store.show(object("a", "u", 6, "y"));
        assert_eq!(remembered(&store), Some(3));
        // Another object of that name is another object.
        store.show(object("a", "other", 7, "x"));
        assert_eq!(remembered(&store), None);
    }

    #[test]
    fn the_last_state_of_a_deleted_run_is_kept_and_that_of_other_objects_is_not() {
        let mut store = Store::default();
        let mut of_family = |name: &str, lifecycle: &str| {
            let object = json!({
                "metadata": {"name": name, "namespace": "n", "uid": name, "resourceVersion": "5",
                    "labels": {"carto.run/template-lifecycle": lifecycle},
                    "ownerReferences": [{"kind": "Workload", "name": "w", "uid": "owner", "controller": true}]},
            });
            let kind = Kind::new("v1", "ConfigMap");
            let object = Stamped::from_value(&object, &kind, &Projection::default(), "m");
            store.show(object.clone());
            store.hide_last_seen(object);
        };
        of_family("run", "tekton");
        of_family("settings", "mutable");
        let names: Vec<_> = store
            .departed("owner")
            .iter()
            .map(|gone| gone.key.name.to_string())
            .collect();
        assert_eq!(names, ["run"]);
        assert!(store.departed("somebody").is_empty());
    }

    #[test]
    fn owners_find_their_objects() {
        let mut store = Store::default();
        store.show(object("a", "1", 1, "x"));
        store.show(object("b", "2", 1, "x"));
        let owner = ObjectKey::new("n", "w");
        assert_eq!(store.owned_by(&owner, "owner").len(), 2);
        store.hide(&ObjectKey::new("n", "a"), "1");
        assert_eq!(store.owned_by(&owner, "owner").len(), 1);
        assert!(store.owned_by(&owner, "somebody").is_empty());
    }

    #[test]
    fn an_object_that_gets_its_label_back_is_seen_again() {
        let mut store = Store::default();
        store.show(object("a", "u", 1, "x"));
        store.hide(&ObjectKey::new("n", "a"), "u");
        store.show(object("a", "u", 3, "x"));
        store.overlay(object("a", "u", 4, "y"));
        assert_eq!(value(&store, "a").as_deref(), Some("y"));
    }
}
