//! Who uses which kinds, and since when nobody uses one. Pure.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::mapper::Kind;

/// A kind that no owner uses is watched this much longer, so that a template edit does not list twice.
pub(super) const LINGER: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Uses {
    by_owner: HashMap<Box<str>, BTreeSet<Kind>>,
    idle_since: HashMap<Kind, Instant>,
}

impl Uses {
    /// Somebody is about to use a kind.
    pub(super) fn begin(&mut self, kind: &Kind) {
        self.idle_since.remove(kind);
    }

    pub(super) fn add(&mut self, owner_uid: &str, kind: &Kind) {
        let uses = self.by_owner.get(owner_uid);
        if !uses.is_some_and(|kinds| kinds.contains(kind)) {
            let uses = self.by_owner.entry(owner_uid.into()).or_default();
            uses.insert(kind.clone());
        }
    }

    pub(super) fn set(&mut self, owner_uid: &str, kinds: BTreeSet<Kind>) {
        if self.by_owner.get(owner_uid) == Some(&kinds) {
            return;
        }
        if kinds.is_empty() {
            self.by_owner.remove(owner_uid);
        } else {
            self.by_owner.insert(owner_uid.into(), kinds);
        }
    }

    /// Notes which of these kinds nobody uses now.
    pub(super) fn look<'k>(&mut self, kinds: impl Iterator<Item = &'k Kind>, now: Instant) {
        let used: BTreeSet<&Kind> = self.by_owner.values().flatten().collect();
        let unused = kinds.filter(|kind| !used.contains(kind));
        let idle_since = |kind: &Kind| self.idle_since.get(kind).copied().unwrap_or(now);
        self.idle_since = unused
            .map(|kind| (kind.clone(), idle_since(kind)))
            .collect();
    }

    /// Whether nobody has used this kind for a while.
    pub(super) fn are_over(&self, kind: &Kind, now: Instant) -> bool {
        let since = self.idle_since.get(kind);
        since.is_some_and(|since| now.duration_since(*since) >= LINGER)
    }
}
