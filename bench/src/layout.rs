//! Which owners there are, and where they live.

use std::num::NonZeroUsize;

/// Owners that share a namespace and its ServiceAccount.
pub(crate) const OWNERS_PER_ACCOUNT: usize = 10;
/// Namespaces of the owners that the controller serves.
pub(crate) const TEAM: &str = "team";
/// Namespaces of the bare client's owners.
pub(crate) const FLOOR: &str = "floor";

/// Namespaces of the many owners whose neighbours are measured.
pub(crate) const CROWD: &str = "crowd";
/// Namespace of those neighbours.
pub(crate) const GUEST: &str = "guest";

/// A namespaced name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The namespace.
    pub(crate) namespace: String,
    /// The name.
    pub(crate) name: String,
}

/// An owner to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Where it lives and what it is called.
    pub(crate) key: Key,
}

impl Owner {
    /// The object of one of its steps, which are counted from 1.
    pub(crate) fn step(&self, step: u8) -> Key {
        Key {
            namespace: self.key.namespace.clone(),
            name: format!("{}-{step}", self.key.name),
        }
    }
}

/// The number of the step that an object was stamped for, from its name.
pub(crate) fn step_of(name: &str) -> Option<u8> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// The first `count` owners of [`TEAM`] or [`FLOOR`].
pub(crate) fn owners(prefix: &str, count: usize) -> Vec<Owner> {
    let owner = |index: usize| Owner {
        key: Key {
            namespace: format!("{prefix}-{}", index / OWNERS_PER_ACCOUNT),
            name: format!("app-{index}"),
        },
    };
    (0..count).map(owner).collect()
}

/// The first `count` owners of [`CROWD`], spread evenly over so many namespaces.
pub(crate) fn crowd(count: usize, namespaces: NonZeroUsize) -> Vec<Owner> {
    let owner = |index: usize| Owner {
        key: Key {
            namespace: format!("{CROWD}-{}", index % namespaces),
            name: format!("app-{index}"),
        },
    };
    (0..count).map(owner).collect()
}

impl Key {
    /// Whether its namespace is one of those of [`TEAM`], [`FLOOR`] or the like.
    pub(crate) fn is_of(&self, prefix: &str) -> bool {
        let rest = self.namespace.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with('-'))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn ten_owners_share_a_namespace_and_each_has_a_name_of_its_own() {
        let owners = owners(TEAM, 25);
        let used: BTreeSet<_> = owners
            .iter()
            .map(|owner| owner.key.namespace.clone())
            .collect();
        let furnished = namespaces(TEAM, namespaces_of(25));
        assert_eq!(used, furnished.into_iter().collect());
        assert_eq!(used.len(), 3);
        assert_eq!(
            owners
                .iter()
                .map(|owner| &owner.key)
                .collect::<BTreeSet<_>>()
                .len(),
            25
        );
    }

    #[test]
    fn a_crowd_is_spread_evenly_over_the_namespaces_made_for_it() {
        let spread = NonZeroUsize::new(4).unwrap();
        let mut by_namespace = BTreeMap::<String, usize>::new();
        for owner in crowd(10, spread) {
            *by_namespace.entry(owner.key.namespace).or_default() += 1;
        }
        assert_eq!(
            by_namespace.values().copied().collect::<Vec<_>>(),
            [3, 3, 2, 2]
        );
        let furnished = namespaces(CROWD, spread.get());
        assert!(by_namespace.keys().eq(&furnished));
    }

    #[test]
    fn the_step_is_read_back_from_the_name_of_its_object() {
        assert_eq!(step_of(&owners(FLOOR, 1)[0].step(4).name), Some(4));
        assert_eq!(step_of("app"), None);
    }
}
