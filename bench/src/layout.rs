//! Which owners there are, and where they live.

use std::fmt::Display;
use std::num::NonZeroUsize;

use serde::Serialize;

/// Owners that share a namespace and its ServiceAccount.
pub(crate) const OWNERS_PER_ACCOUNT: usize = 10;
/// Namespaces of the owners that the controller serves.
pub(crate) const TEAM: &str = "team";
/// Namespaces of the bare client's owners.
pub(crate) const FLOOR: &str = "floor";
/// Namespaces of the many owners whose neighbours are measured.
pub(crate) const CROWD: &str = "crowd";
/// Namespaces of those neighbours.
pub(crate) const GUEST: &str = "guest";

/// A namespaced name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        let (namespace, name) = (namespace.into(), name.into());
        Self { namespace, name }
    }

    /// Of an owner: the object of one of its steps, which are counted from 1.
    pub(crate) fn step(&self, step: u8) -> Self {
        self.followed_by(step)
    }

    /// Of a Runnable of the bare client: the run of a round.
    pub(crate) fn run(&self, round: usize) -> Self {
        self.followed_by(format_args!("run{round}"))
    }

    fn followed_by(&self, end: impl Display) -> Self {
        Self::new(&*self.namespace, format!("{}-{end}", self.name))
    }

    /// Whether its namespace is one of those of [`TEAM`], [`FLOOR`] or the like.
    pub(crate) fn is_of(&self, prefix: &str) -> bool {
        let rest = self.namespace.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with('-'))
    }
}

/// The number of the step that an object was stamped for, from its name.
pub(crate) fn step_of(name: &str) -> Option<u8> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// The first `count` owners of [`TEAM`] or [`FLOOR`].
pub(crate) fn owners(prefix: &str, count: usize) -> Vec<Key> {
    placed(prefix, count, |index| index / OWNERS_PER_ACCOUNT)
}

/// The first `count` owners of [`CROWD`], spread evenly over so many namespaces.
pub(crate) fn crowd(count: usize, namespaces: NonZeroUsize) -> Vec<Key> {
    placed(CROWD, count, |index| index % namespaces)
}

fn placed(prefix: &str, count: usize, namespace: impl Fn(usize) -> usize) -> Vec<Key> {
    let owner = |index| {
        let namespace = format!("{prefix}-{}", namespace(index));
        Key::new(namespace, format!("app-{index}"))
    };
    (0..count).map(owner).collect()
}

/// How many namespaces the first `count` owners of [`TEAM`] or [`FLOOR`] live in.
pub(crate) fn namespaces_of(count: usize) -> usize {
    count.div_ceil(OWNERS_PER_ACCOUNT)
}

/// The first `count` namespaces.
pub(crate) fn namespaces(prefix: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{prefix}-{index}"))
        .collect()
}

/// So many of the owners, evenly spread, again from the start when there are too few.
pub(crate) fn spread(owners: &[Key], count: usize) -> impl Iterator<Item = &Key> {
    let stride = (owners.len() / count.max(1)).max(1);
    (0..count).filter_map(move |number| owners.get((number * stride) % owners.len().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn ten_owners_share_a_namespace_and_each_has_a_name_of_its_own() {
        let owners = owners(TEAM, 25);
        let used: BTreeSet<_> = owners.iter().map(|owner| owner.namespace.clone()).collect();
        let furnished = namespaces(TEAM, namespaces_of(25));
        assert_eq!(used, furnished.into_iter().collect());
        assert_eq!(used.len(), 3);
        assert_eq!(owners.iter().collect::<BTreeSet<_>>().len(), 25);
    }

    #[test]
    fn a_crowd_is_spread_evenly_over_the_namespaces_made_for_it() {
        let mut by_namespace = BTreeMap::<String, usize>::new();
        for owner in crowd(10, NonZeroUsize::new(4).unwrap()) {
            assert!(owner.is_of(CROWD) && !owner.is_of("crow"));
            *by_namespace.entry(owner.namespace).or_default() += 1;
        }
        assert!(by_namespace.values().eq(&[3, 3, 2, 2]));
        assert!(by_namespace.keys().eq(&namespaces(CROWD, 4)));
    }

    #[test]
    fn the_step_is_read_back_from_the_name_of_its_object() {
        assert_eq!(step_of(&owners(FLOOR, 1)[0].step(4).name), Some(4));
        assert_eq!(step_of("app"), None);
    }

    #[test]
    fn changes_are_spread_over_all_owners() {
        let picked = |owners_there: usize, count: usize| -> Vec<String> {
            let owners = owners(FLOOR, owners_there);
            let spread = spread(&owners, count);
            spread.map(|owner| owner.name.clone()).collect()
        };
        assert_eq!(picked(100, 4), ["app-0", "app-25", "app-50", "app-75"]);
        assert_eq!(picked(2, 3), ["app-0", "app-1", "app-0"]);
        assert_eq!(picked(0, 3), Vec::<String>::new());
    }
}
