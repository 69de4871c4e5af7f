//! Who is woken by what: an index of objects that are reconciled by what they depend on.
//!
//! Only speeds things up. After a restart every object is reconciled anyway and says again what it
//! depends on, so nothing here is needed for correctness.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use parking_lot::Mutex;

use crate::object_key::ObjectKey;

/// Who waits for what, for one who holds a lock of its own.
#[derive(Debug)]
pub(crate) struct Waiting<W> {
    owners: HashMap<W, BTreeSet<ObjectKey>>,
    /// The other way round, so that replacing what one waits for does not visit what all others do.
    awaited: HashMap<ObjectKey, Vec<W>>,
}

impl<W> Default for Waiting<W> {
    fn default() -> Self {
        Self {
            owners: HashMap::new(),
            awaited: HashMap::new(),
        }
    }
}

impl<W: Clone + Eq + Hash> Waiting<W> {
    fn insert(&mut self, owner: &ObjectKey, what: W) {
        self.owners.entry(what).or_default().insert(owner.clone());
    }

    /// Replaces what one waits for.
    pub(crate) fn set(&mut self, owner: &ObjectKey, awaited: &[W]) {
        self.forget(owner);
        for what in awaited {
            self.insert(owner, what.clone());
        }
        if !awaited.is_empty() {
            self.awaited.insert(owner.clone(), awaited.to_vec());
        }
    }

    /// One more thing that one waits for.
    pub(crate) fn add(&mut self, owner: &ObjectKey, what: W) {
        let awaited = self.awaited.entry(owner.clone()).or_default();
        if awaited.contains(&what) {
            return;
        }
        awaited.push(what.clone());
        self.insert(owner, what);
    }

    /// Who waits for this, and waits no longer.
    pub(crate) fn take(&mut self, what: &W) -> BTreeSet<ObjectKey> {
        let owners = self.owners.remove(what).unwrap_or_default();
        for owner in &owners {
            if let Some(awaited) = self.awaited.get_mut(owner) {
                awaited.retain(|other| other != what);
                if awaited.is_empty() {
                    self.awaited.remove(owner);
                }
            }
        }
        owners
    }

    /// Whether anybody waits for this.
    pub(crate) fn is_awaited(&self, what: &W) -> bool {
        self.owners.contains_key(what)
    }

    /// All that is waited for.
    pub(crate) fn all(&self) -> impl Iterator<Item = &W> {
        self.owners.keys()
    }

    /// Whether nobody waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.owners.is_empty() && self.awaited.is_empty()
    }

    fn forget(&mut self, owner: &ObjectKey) {
        for what in self.awaited.remove(owner).unwrap_or_default() {
            if let Some(owners) = self.owners.get_mut(&what) {
                owners.remove(owner);
                if owners.is_empty() {
                    self.owners.remove(&what);
                }
            }
        }
    }
}

/// Who depends on what.
///
/// ```
/// use controller_kit::stamped::ObjectKey;
/// use controller_kit::waiting::WaitIndex;
///
/// let (index, app) = (WaitIndex::default(), ObjectKey::new("dev", "app"));
/// index.set(&app, &["account", "secret"]);
/// assert_eq!(index.waiting_for(&"secret").into_iter().collect::<Vec<_>>(), [app.clone()]);
/// index.set(&app, &["account"]);
/// assert!(index.waiting_for(&"secret").is_empty());
/// ```
#[derive(Debug)]
pub struct WaitIndex<W>(Mutex<Waiting<W>>);

impl<W> Default for WaitIndex<W> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<W: Clone + Eq + Hash> WaitIndex<W> {
    /// Replaces what one depends on.
    pub fn set(&self, owner: &ObjectKey, awaited: &[W]) {
        self.0.lock().set(owner, awaited);
    }

    /// One more thing that one depends on, besides what it said last.
    pub fn add(&self, owner: &ObjectKey, what: W) {
        self.0.lock().add(owner, what);
    }

    /// Who depends on this, and goes on to.
    pub fn waiting_for(&self, what: &W) -> BTreeSet<ObjectKey> {
        let waiting = self.0.lock();
        waiting.owners.get(what).cloned().unwrap_or_default()
    }
}
