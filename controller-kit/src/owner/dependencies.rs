//! Owners that wait for something outside: a service account, a right, a kind, a template.
//!
//! Only speeds things up. After a restart every owner is reconciled anyway, and a missing right is
//! retried slowly, so nothing here is needed for correctness. An account and a template are awaited while they are there,
//! too: they may go, or change.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::mapper::Kind;
use crate::stamped::ObjectKey;
use crate::waiting::Waiting;

/// Rights take a moment to reach the authorizer's cache after the event.
pub(super) const RIGHTS_SETTLE: Duration = Duration::from_millis(200);
/// On a busy API server, or another one than the event came from, more than a moment, but hardly this long.
const RIGHTS_LATE: Duration = Duration::from_secs(10);

/// What an owner waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Dependency {
    /// A service account: that it comes, goes or is replaced.
    Account(ObjectKey),
    /// A right of accounts in this namespace.
    Rights(Arc<str>),
    /// A kind of this API group.
    Group(Box<str>),
    /// An object of somebody else: that it goes, changes hands, or is given up.
    Object(Kind, ObjectKey),
    /// The template that the owner names itself: that it comes, changes or goes.
    Template(Box<str>),
    /// The labels of this namespace: that they change.
    Namespace(Arc<str>),
}

/// Who waits for what.
#[derive(Debug, Default)]
pub struct DependencyIndex {
    dependent: Mutex<Dependent>,
}

#[derive(Debug, Default)]
struct Dependent {
    waiting: Waiting<Dependency>,
    /// Changes of rights so far, whoever waited for them.
    rights_changes: u64,
    /// When rights changed that these owners waited for; those of late.
    woken: HashMap<ObjectKey, Instant>,
}

impl Dependent {
    /// Rights changed that these owners waited for.
    fn rights_woke(&mut self, owners: &BTreeSet<ObjectKey>) {
        self.rights_changes += 1;
        let now = Instant::now();
        self.woken
            .retain(|_, at| now.duration_since(*at) < RIGHTS_LATE);
        let woken = owners.iter().map(|owner| (owner.clone(), now));
        self.woken.extend(woken);
    }
}

impl DependencyIndex {
    /// Replaces what an owner waits for.
    pub fn set(&self, owner: &ObjectKey, awaited: &[Dependency]) {
        self.dependent.lock().waiting.set(owner, awaited);
    }

    /// One more thing an owner waits for, besides what it said last.
    pub fn add(&self, owner: &ObjectKey, what: Dependency) {
        self.dependent.lock().waiting.add(owner, what);
    }

    /// The owners that wait for this, which wait no longer.
    pub fn take(&self, what: &Dependency) -> BTreeSet<ObjectKey> {
        let mut dependent = self.dependent.lock();
        let owners = dependent.waiting.take(what);
        if matches!(what, Dependency::Rights(_)) {
            dependent.rights_woke(&owners);
        }
        owners
    }

    /// Whether an owner waits for this object.
    pub(crate) fn awaits(&self, kind: &Kind, key: &ObjectKey) -> bool {
        let what = Dependency::Object(kind.clone(), key.clone());
        self.dependent.lock().waiting.is_awaited(&what)
    }

    /// When to try again what is still forbidden to an owner that a change of rights has woken: the change may not have
    /// reached the authorizer yet. Three times for each change, ever later; after that it did not help.
    pub fn rights_may_be_late(&self, owner: &ObjectKey) -> Option<Duration> {
        let since = self.dependent.lock().woken.get(owner)?.elapsed();
        (since < RIGHTS_LATE).then(|| (since * 3).max(RIGHTS_SETTLE))
    }

    /// How often rights have changed. An owner that was refused before a change and says after it that it waits has
    /// missed it; by this number it knows.
    pub fn rights_changes(&self) -> u64 {
        self.dependent.lock().rights_changes
    }

    /// The owners that wait for any right, which wait no longer.
    pub(crate) fn take_all_rights(&self) -> BTreeSet<ObjectKey> {
        let owners = self.take_all(|what| matches!(what, Dependency::Rights(_)));
        self.dependent.lock().rights_woke(&owners);
        owners
    }

    /// The owners that wait for any kind, which wait no longer.
    pub(crate) fn take_all_groups(&self) -> BTreeSet<ObjectKey> {
        self.take_all(|what| matches!(what, Dependency::Group(_)))
    }

    /// The owners that wait for the labels of any namespace, which wait no longer.
    pub(super) fn take_all_namespaces(&self) -> BTreeSet<ObjectKey> {
        self.take_all(|what| matches!(what, Dependency::Namespace(_)))
    }

    fn take_all(&self, concerns: impl Fn(&Dependency) -> bool) -> BTreeSet<ObjectKey> {
        let waiting = &mut self.dependent.lock().waiting;
        let concerned = waiting.all().filter(|what| concerns(what));
        let concerned: Vec<Dependency> = concerned.cloned().collect();
        concerned
            .iter()
            .flat_map(|what| waiting.take(what))
            .collect()
    }

    /// Whether nobody waits.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.dependent.lock().waiting.is_empty()
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
        let dependencies = DependencyIndex::default();
        dependencies.set(
            &owner("a"),
            &[
                Dependency::Rights("ns".into()),
                Dependency::Group("g".into()),
            ],
        );
        dependencies.set(&owner("a"), &[Dependency::Rights("other".into())]);
        assert!(dependencies.take(&Dependency::Group("g".into())).is_empty());
        assert!(
            dependencies
                .take(&Dependency::Rights("ns".into()))
                .is_empty()
        );
        assert_eq!(
            dependencies.take(&Dependency::Rights("other".into())),
            BTreeSet::from([owner("a")])
        );
        assert!(dependencies.is_empty());
    }

    #[test]
    fn an_owner_may_wait_for_one_thing_more() {
        let dependencies = DependencyIndex::default();
        let account = || Dependency::Account(owner("sa"));
        dependencies.set(&owner("a"), &[Dependency::Rights("ns".into())]);
        dependencies.add(&owner("a"), account());
        dependencies.add(&owner("a"), account());
        assert_eq!(dependencies.take(&account()), BTreeSet::from([owner("a")]));
        assert!(dependencies.take(&account()).is_empty());
        dependencies.add(&owner("a"), account());
        dependencies.set(&owner("a"), &[]);
        assert!(dependencies.is_empty());
    }

    #[test]
    fn a_change_of_rights_is_noticed_by_who_did_not_wait_yet() {
        let dependencies = DependencyIndex::default();
        let before = dependencies.rights_changes();
        assert!(
            dependencies
                .take(&Dependency::Account(owner("sa")))
                .is_empty()
        );
        assert_eq!(dependencies.rights_changes(), before);
        assert!(
            dependencies
                .take(&Dependency::Rights("ns".into()))
                .is_empty()
        );
        assert!(dependencies.take_all_rights().is_empty());
        assert_eq!(dependencies.rights_changes(), before + 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_still_forbidden_after_a_change_of_rights_is_tried_again_three_times() {
        let dependencies = DependencyIndex::default();
        let (woken, other) = (owner("a"), owner("b"));
        let rights = [Dependency::Rights("ns".into())];
        for everywhere in [false, true] {
            dependencies.set(&woken, &rights);
            assert_eq!(dependencies.rights_may_be_late(&woken), None);
            if everywhere {
                dependencies.take_all_rights();
            } else {
                dependencies.take(&rights[0]);
            }
            dependencies.set(&other, &rights);
            assert_eq!(dependencies.rights_may_be_late(&other), None);
            let mut waits = vec![RIGHTS_SETTLE];
            tokio::time::advance(RIGHTS_SETTLE).await;
            while let Some(wait) = dependencies.rights_may_be_late(&woken) {
                waits.push(wait);
                tokio::time::advance(wait).await;
            }
            assert_eq!(waits, [200, 600, 2400, 9600].map(Duration::from_millis));
            dependencies.set(&other, &[]);
        }
    }

    #[test]
    fn cluster_wide_rights_concern_every_namespace() {
        let dependencies = DependencyIndex::default();
        dependencies.set(&owner("a"), &[Dependency::Rights("one".into())]);
        dependencies.set(&owner("b"), &[Dependency::Rights("two".into())]);
        dependencies.set(&owner("c"), &[Dependency::Account(owner("sa"))]);
        assert_eq!(dependencies.take_all_rights().len(), 2);
        assert!(!dependencies.is_empty());
        dependencies.set(&owner("c"), &[Dependency::Group("g".into())]);
        assert_eq!(dependencies.take_all_groups(), BTreeSet::from([owner("c")]));
        assert!(dependencies.is_empty());
    }
}
