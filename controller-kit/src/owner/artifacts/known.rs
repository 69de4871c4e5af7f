//! What is known of Artifacts: from the watch, and from the replies to our own requests.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use realizer::{KnownArtifact, KnownArtifacts, Owner};
use serde::Deserialize as _;
use serde_json::Value;
use tokio::time::Instant;

use crate::packed_text::PackedText;
use crate::reflect::{Change, Entry, version_of};
use crate::stamped::ObjectKey;
use crate::submit::SLOW_READ;

/// An Artifact, with its values if somebody needs them: status does not hold them, and they were good last.
pub(super) struct ArtifactEntry {
    pub(super) known: Arc<KnownArtifact>,
    pub(super) uid: Box<str>,
    version: u64,
    values: Option<PackedText>,
}

impl ArtifactEntry {
    /// With its values.
    pub(super) fn with_values(object: Value) -> Self {
        Self {
            values: Some(PackedText::of(&object["spec"]["outputs"])),
            ..Self::build(object)
        }
    }

    fn without_values(&self) -> Self {
        Self {
            known: self.known.clone(),
            uid: self.uid.clone(),
            version: self.version,
            values: None,
        }
    }
}

impl Entry for ArtifactEntry {
    /// There may be twenty for each step, of which one is ever read: a listing holds the values of none.
    fn build(object: Value) -> Self {
        Self {
            known: Arc::new(KnownArtifact::read(&object)),
            uid: object["metadata"]["uid"]
                .as_str()
                .unwrap_or_default()
                .into(),
            version: version_of(&object),
            values: None,
        }
    }
}

/// Why Artifacts are not to be had.
pub(super) struct Trouble {
    /// With what to do about it.
    pub(super) why: String,
    /// Whether it is not known which are there.
    pub(super) is_unlisted: bool,
    /// Whether it is of no use to write one now.
    pub(super) is_unwritable: bool,
}

/// All that is known.
#[derive(Default)]
pub(super) struct Known {
    by_owner: HashMap<ObjectKey, BTreeMap<String, Arc<ArtifactEntry>>>,
    /// Why none was written for an owner, or for any of a namespace, when that was tried last, and when.
    refused: HashMap<ObjectKey, (Instant, String)>,
}

impl Known {
    /// Names of those of an owner whose values are needed and not held. Those that are not needed any more are let go.
    pub(super) fn without_values(&mut self, key: &ObjectKey, owner: &Owner) -> Vec<String> {
        let needed: BTreeSet<&str> = owner.artifacts_to_read().collect();
        let Some(of_owner) = self.by_owner.get_mut(key) else {
            return Vec::new();
        };
        let mut missing = Vec::new();
        for (name, entry) in of_owner {
            match (needed.contains(name.as_str()), &entry.values) {
                (true, None) => missing.push(name.clone()),
                (false, Some(_)) => *entry = Arc::new(entry.without_values()),
                (true, Some(_)) | (false, None) => {}
            }
        }
        missing
    }

    /// What is known of those of an owner.
    pub(super) fn of(&self, key: &ObjectKey, owner: &Owner) -> KnownArtifacts {
        let of_owner = self.by_owner.get(key);
        let found = of_owner.into_iter().flatten();
        let found = found.map(|(name, entry)| (name.clone(), entry.known.clone()));
        let values = owner.artifacts_to_read().filter_map(|name| {
            let values = of_owner?.get(name)?.values.as_ref()?.value();
            Some((name.to_owned(), Vec::deserialize(values).ok()?))
        });
        KnownArtifacts {
            found: found.collect(),
            values: values.collect(),
            ..KnownArtifacts::default()
        }
    }

    /// One of them.
    pub(super) fn get(&self, owner: &ObjectKey, name: &str) -> Option<Arc<ArtifactEntry>> {
        self.by_owner.get(owner)?.get(name).cloned()
    }

    /// One of an owner could not be written, and so none could of it or, if that is what is wrong, in its namespace.
    pub(super) fn refuse(&mut self, owner: &ObjectKey, is_of_namespace: bool, why: String) {
        let refused = (Instant::now(), why);
        let of_whom = if is_of_namespace {
            all_of(&owner.namespace)
        } else {
            owner.clone()
        };
        self.refused.insert(of_whom, refused);
    }

    /// What was refused may be allowed by now.
    pub(super) fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// One of an owner was written.
    pub(super) fn allow(&mut self, owner: &ObjectKey) {
        self.refused.remove(owner);
        self.refused.remove(&all_of(&owner.namespace));
    }

    /// Why none was written for an owner when that was tried last. It is tried again after a while.
    pub(super) fn refusal(&self, owner: &ObjectKey) -> Option<Trouble> {
        let of_namespace = self.refused.get(&all_of(&owner.namespace));
        let (since, why) = self.refused.get(owner).or(of_namespace)?;
        Some(Trouble {
            why: why.clone(),
            is_unlisted: false,
            is_unwritable: since.elapsed() < SLOW_READ,
        })
    }

    /// Takes what the watch saw. Returns the owner, if it is news.
    pub(super) fn follow(
        &mut self,
        kind: &str,
        change: &Change<'_, ArtifactEntry>,
    ) -> Option<ObjectKey> {
        let name = &*change.key.name;
        let owner = |entry: &Arc<ArtifactEntry>| {
            let owner = &entry.known.owner;
            (owner.kind == kind).then(|| ObjectKey::new(&change.key.namespace, &owner.name))
        };
        let (before, after) = (change.before.and_then(owner), change.after.and_then(owner));
        let is_put = match (&after, change.after) {
            (Some(after), Some(entry)) => self.put(after, name, entry.clone()),
            _ => false,
        };
        let is_removed = match (&before, change.before) {
            // Whoever edits it may say that it is somebody else's.
            (Some(owner), Some(entry)) if before != after => self.remove(owner, name, &entry.uid),
            _ => false,
        };
        let news = if is_removed { before } else { after };
        news.filter(|_| is_put || is_removed)
    }

    /// Takes the reply to a request, with its values.
    pub(super) fn take(&mut self, owner: &ObjectKey, name: &str, entry: Arc<ArtifactEntry>) {
        let of_owner = self.by_owner.entry(owner.clone()).or_default();
        let is_newer = |it: &Arc<ArtifactEntry>| it.version > entry.version;
        if !of_owner.get(name).is_some_and(is_newer) {
            of_owner.insert(name.to_owned(), entry);
        }
    }

    /// Puts an entry here, unless the same or a later one is here. Returns whether it was put.
    pub(super) fn put(&mut self, owner: &ObjectKey, name: &str, entry: Arc<ArtifactEntry>) -> bool {
        let of_owner = self.by_owner.entry(owner.clone()).or_default();
        let is_old = of_owner
            .get(name)
            .is_some_and(|it| it.version >= entry.version);
        if !is_old {
            of_owner.insert(name.to_owned(), entry);
        }
        !is_old
    }

    /// Removes exactly this one. Returns whether it was here.
    pub(super) fn remove(&mut self, owner: &ObjectKey, name: &str, uid: &str) -> bool {
        let Some(of_owner) = self.by_owner.get_mut(owner) else {
            return false;
        };
        let is_it = of_owner.get(name).is_some_and(|entry| *entry.uid == *uid);
        if is_it {
            of_owner.remove(name);
        }
        if of_owner.is_empty() {
            self.by_owner.remove(owner);
        }
        is_it
    }
}

/// Stands for all owners of a namespace; none has this name.
fn all_of(namespace: &str) -> ObjectKey {
    ObjectKey::new(namespace, "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(uid: &str, version: u64) -> Arc<ArtifactEntry> {
        Arc::new(ArtifactEntry::build(json!({
            "metadata": {"name": "a", "uid": uid, "resourceVersion": version.to_string()},
            "spec": {"owner": {"kind": "Workload", "name": "app"}},
        })))
    }

    fn saw(
        state: &mut Known,
        before: Option<&Arc<ArtifactEntry>>,
        after: Option<&Arc<ArtifactEntry>>,
    ) -> bool {
        let key = &ObjectKey::new("dev", "a");
        let change = Change { key, before, after };
        state.follow("Workload", &change).is_some()
    }

    #[test]
    fn what_the_watch_tells_of_our_own_writes_is_no_news() {
        let (mut state, owner) = (Known::default(), ObjectKey::new("dev", "app"));
        let (first, second) = (entry("1", 5), entry("2", 7));
        assert!(state.put(&owner, "a", first.clone()));
        assert!(!saw(&mut state, None, Some(&first)));
        assert!(state.remove(&owner, "a", "1"));
        assert!(state.put(&owner, "a", second.clone()));
        assert!(
            !saw(&mut state, Some(&first), None),
            "another one has its place"
        );
        assert!(!saw(&mut state, None, Some(&second)));
        let edited = entry("2", 9);
        assert!(
            saw(&mut state, Some(&second), Some(&edited)),
            "somebody else did"
        );
        assert!(saw(&mut state, Some(&edited), None));
        assert!(state.by_owner.is_empty());
        assert_eq!(
            state.follow(
                "Deliverable",
                &Change {
                    key: &ObjectKey::new("dev", "a"),
                    before: None,
                    after: Some(&first),
                }
            ),
            None
        );
    }

    #[test]
    fn a_listing_holds_no_values_and_a_reply_does() {
        let object = || json!({"spec": {"outputs": [{"name": "image", "value": "x"}]}});
        assert!(ArtifactEntry::build(object()).values.is_none());
        let read = ArtifactEntry::with_values(object());
        assert!(read.values.is_some());
        assert!(read.without_values().values.is_none());
    }

    #[test]
    fn what_is_refused_for_one_owner_keeps_no_other_of_its_namespace() {
        let mut state = Known::default();
        let key = |name: &str| ObjectKey::new("dev", name);
        state.refuse(&key("a"), false, "a webhook".to_owned());
        assert!(state.refusal(&key("a")).is_some());
        assert!(state.refusal(&key("b")).is_none());
        state.refuse(&key("a"), true, "a quota".to_owned());
        assert!(state.refusal(&key("b")).is_some_and(|it| it.is_unwritable));
        state.allow(&key("b"));
        assert!(state.refusal(&key("b")).is_none());
    }
}
