//! What a watch shows, overlaid by the replies to our own writes: each may be newer than the other,
//! in whatever order they come.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::stamped::ObjectKey;

/// What shows an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The reply to a write of our own.
    Reply,
    /// The watch, or a listing that is under way.
    Watch,
}

/// The newest that is known of each object.
#[derive(Debug)]
pub(crate) struct Overlaid<V> {
    /// With the resourceVersion, which orders observations.
    held: HashMap<ObjectKey, (u64, Arc<V>)>,
    listing: Option<Listing>,
}

/// A listing that is under way.
#[derive(Debug, Default)]
struct Listing {
    shown: HashSet<ObjectKey>,
    /// Of what replies came since it began.
    replied: HashSet<ObjectKey>,
}

/// What the end of a listing says of objects that it did not show, and a reply did meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unlisted {
    /// They are gone: replies only change what is there.
    Gone,
    /// They were created: the watch will tell if they go.
    Created,
}

impl<V> Default for Overlaid<V> {
    fn default() -> Self {
        Self {
            held: HashMap::new(),
            listing: None,
        }
    }
}

impl<V> Overlaid<V> {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Arc<V>> {
        self.held.get(key).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut Arc<V>> {
        self.held.get_mut(key).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Arc<V>)> {
        self.held.iter().map(|(key, (_, value))| (key, value))
    }

    /// Those keys, of what changed last first.
    pub(crate) fn newest_first(&self, wanted: impl Fn(&ObjectKey) -> bool) -> Vec<ObjectKey> {
        let held = self.held.iter().filter(|(key, _)| wanted(key));
        let mut found: Vec<_> = held.map(|(key, (version, _))| (*version, key)).collect();
        found.sort_unstable_by(|one, other| other.cmp(one));
        found.into_iter().map(|(_, key)| key.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether a listing is under way.
    #[cfg(test)]
    pub(crate) fn is_listed(&self) -> bool {
        self.listing.is_some()
    }

    /// A listing begins.
    pub(crate) fn begin_listing(&mut self) {
        self.listing = Some(Listing::default());
    }

    /// The listing under way, if there is one, shows this object.
    pub(crate) fn lists(&mut self, key: &ObjectKey) {
        if let Some(listing) = &mut self.listing {
            listing.shown.insert(key.clone());
        }
    }

    /// Whether an object in this version says nothing new: the echo of our own write, or what was
    /// there before it.
    pub(crate) fn has_passed(&self, key: &ObjectKey, version: u64, source: Source) -> bool {
        let Some((held, _)) = self.held.get(key) else {
            return false;
        };
        let held = *held;
        match (source, &self.listing) {
            (Source::Watch, _) if held == 0 => false,
            // A listing shows what there is, whatever was kept before it: versions go back when
            // etcd is restored.
            (Source::Watch, Some(listing)) => {
                held == version || (held > version && listing.replied.contains(key))
            }
            (Source::Reply, _) | (Source::Watch, None) => held >= version,
        }
    }

    /// Whether what is here is newer than this version, if that is known.
    pub(crate) fn is_newer(&self, key: &ObjectKey, version: u64) -> bool {
        let held = self.held.get(key);
        version != 0 && held.is_some_and(|(held, _)| *held > version)
    }

    /// Puts an object here in this version. Returns what was here.
    pub(crate) fn put(
        &mut self,
        key: ObjectKey,
        (version, value): (u64, Arc<V>),
        source: Source,
    ) -> Option<Arc<V>> {
        if source == Source::Reply
            && let Some(listing) = &mut self.listing
        {
            listing.replied.insert(key.clone());
        }
        let before = self.held.insert(key, (version, value));
        before.map(|(_, value)| value)
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Arc<V>> {
        self.held.remove(key).map(|(_, value)| value)
    }

    /// The listing is complete. Returns what is gone, which is for the caller to remove.
    pub(crate) fn end_listing(&mut self, unlisted: Unlisted) -> Vec<ObjectKey> {
        let Some(listing) = self.listing.take() else {
            return Vec::new();
        };
        let stays = |key: &ObjectKey| {
            let is_created = unlisted == Unlisted::Created && listing.replied.contains(key);
            listing.shown.contains(key) || is_created
        };
        let gone = self.held.keys().filter(|key| !stays(key));
        gone.cloned().collect()
    }
}
