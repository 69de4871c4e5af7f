//! Owners that wait for something outside: a service account, a right, a kind.
//!
//! Only speeds things up. After a restart every owner is reconciled anyway, and a missing right is
//! retried slowly, so nothing here is needed for correctness.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use crate::stamped::ObjectKey;

/// What an owner waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Awaited {
    /// A service account.
    Account(ObjectKey),
    /// A right of accounts in this namespace.
    Rights(Box<str>),
    /// A kind of this API group.
    Group(Box<str>),
}

/// Who waits for what.
#[derive(Debug, Default)]
pub struct Waiters {
    waiting: Mutex<HashMap<Awaited, BTreeSet<ObjectKey>>>,
}

impl Waiters {
    /// Replaces what an owner waits for.
    pub fn set(&self, owner: &ObjectKey, awaited: &[Awaited]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, owners| {
            owners.remove(owner);
            !owners.is_empty()
        });
        for what in awaited {
            waiting
                .entry(what.clone())
                .or_default()
                .insert(owner.clone());
        }
    }

    /// The owners that wait for this, which wait no longer.
    pub fn take(&self, what: &Awaited) -> BTreeSet<ObjectKey> {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(what)
            .unwrap_or_default()
    }

    /// The owners that wait for any right, which wait no longer.
    pub fn take_all_rights(&self) -> BTreeSet<ObjectKey> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let rights: Vec<Awaited> = waiting
            .keys()
            .filter(|what| matches!(what, Awaited::Rights(_)))
            .cloned()
            .collect();
        rights
            .iter()
            .filter_map(|what| waiting.remove(what))
            .flatten()
            .collect()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> ObjectKey {
        ObjectKey::new("ns", name)
    }

    #[test]
    fn an_owner_waits_only_for_what_it_said_last() {
        let waiters = Waiters::default();
        waiters.set(
            &owner("a"),
            &[Awaited::Rights("ns".into()), Awaited::Group("g".into())],
        );
        waiters.set(&owner("a"), &[Awaited::Rights("other".into())]);
        assert!(waiters.take(&Awaited::Group("g".into())).is_empty());
        assert!(waiters.take(&Awaited::Rights("ns".into())).is_empty());
        assert_eq!(
            waiters.take(&Awaited::Rights("other".into())),
            BTreeSet::from([owner("a")])
        );
        assert!(waiters.is_empty());
    }

    #[test]
    fn cluster_wide_rights_concern_every_namespace() {
        let waiters = Waiters::default();
        waiters.set(&owner("a"), &[Awaited::Rights("one".into())]);
        waiters.set(&owner("b"), &[Awaited::Rights("two".into())]);
        waiters.set(&owner("c"), &[Awaited::Account(owner("sa"))]);
        assert_eq!(waiters.take_all_rights().len(), 2);
        assert!(!waiters.is_empty());
    }
}
