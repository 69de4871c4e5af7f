//! The steps of a blueprint, found by their names: a blueprint may have ten thousand.

use std::collections::BTreeMap;

use crate::blueprint::BlueprintResource;

/// The steps of a blueprint.
pub(super) struct Steps<'s> {
    all: &'s [BlueprintResource],
    /// Of several with the same name, the first one.
    by_name: BTreeMap<&'s str, usize>,
}

impl<'s> Steps<'s> {
    pub(super) fn of(all: &'s [BlueprintResource]) -> Self {
        let named = all.iter().enumerate().rev();
        Self {
            all,
            by_name: named
                .map(|(index, resource)| (resource.name.as_str(), index))
                .collect(),
        }
    }

    /// The step with this name.
    pub(super) fn named(&self, name: &str) -> Option<&'s BlueprintResource> {
        self.by_name.get(name).map(|&index| &self.all[index])
    }

    /// For each step those whose outputs it takes, in the order of status entries.
    pub(super) fn providers(&self) -> Vec<Vec<usize>> {
        let providers = |resource: &BlueprintResource| {
            let names = resource.inputs().map(|input| input.resource);
            names
                .filter_map(|name| self.by_name.get(name).copied())
                .collect()
        };
        self.all.iter().map(providers).collect()
    }
}
