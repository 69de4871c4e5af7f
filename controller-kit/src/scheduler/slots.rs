//! How many may run at once, and for whom the last of these slots are kept.

use std::collections::HashMap;
use std::sync::Arc;

/// One in so many slots is kept for newcomers.
const KEPT: usize = 4;
/// One in so many of these is kept for guests, where there are any.
const FOR_GUESTS: usize = 2;

/// Slots and who holds them.
pub(super) struct Slots {
    limit: usize,
    tells_guests: bool,
    taken: usize,
    held: HashMap<Arc<str>, usize>,
}

/// Who may take the next slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admits {
    /// Every namespace.
    Everyone,
    /// Namespaces that hold no slot.
    Newcomers,
    /// Those of them that ask for little.
    Guests,
    /// No slot is free.
    Nobody,
}

impl Slots {
    /// So many free slots; 0 counts as 1. The last ones are for guests where namespaces are told apart by that.
    pub(super) fn new(limit: usize, tells_guests: bool) -> Self {
        Self {
            limit: limit.max(1),
            tells_guests,
            taken: 0,
            held: HashMap::new(),
        }
    }

    /// As many slots as this from now on; 0 counts as 1. Whoever holds one keeps it.
    pub(super) fn resize(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// Of the last ones, for namespaces that ask for little.
    fn for_guests(&self) -> usize {
        if self.tells_guests {
            kept(self.limit) / FOR_GUESTS
        } else {
            0
        }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    pub(super) fn admits(&self) -> Admits {
        if self.taken >= self.limit {
            Admits::Nobody
        } else if self.taken >= self.limit - self.for_guests() {
            Admits::Guests
        } else if self.taken >= self.limit - kept(self.limit) {
            Admits::Newcomers
        } else {
            Admits::Everyone
        }
    }

    pub(super) fn holds(&self, namespace: &str) -> bool {
        self.held(namespace) > 0
    }

    /// How many slots a namespace holds.
    pub(super) fn held(&self, namespace: &str) -> usize {
        self.held.get(namespace).copied().unwrap_or(0)
    }

    /// How many slots these namespaces hold.
    pub(super) fn taken_by(&self, which: impl Fn(&str) -> bool) -> usize {
        let held = self.held.iter().filter(|(name, _)| which(name));
        held.map(|(_, count)| count).sum()
    }

    /// Takes a slot. What is in no namespace is nobody's tenant and stays a newcomer.
    pub(super) fn take(&mut self, namespace: &Arc<str>) {
        self.taken += 1;
        if !namespace.is_empty() {
            *self.held.entry(namespace.clone()).or_default() += 1;
        }
    }

    /// Gives a slot back.
    pub(super) fn give_back(&mut self, namespace: &str) {
        self.taken -= 1;
        if let Some(count) = self.held.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.held.remove(namespace);
            }
        }
    }
}

/// A single slot goes to everybody in turn: there is nothing to keep.
fn kept(limit: usize) -> usize {
    if limit < 2 { 0 } else { (limit / KEPT).max(1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_slots_is_kept_and_at_least_one_of_several() {
        let kept_of = [1, 2, 3, 4, 7, 8, 16].map(kept);
        assert_eq!(kept_of, [0, 1, 1, 1, 1, 2, 4]);
    }

    #[test]
    fn the_last_slots_are_for_newcomers_only() {
        let mut slots = Slots::new(4, true);
        let mut admitted = Vec::new();
        for _ in 0..4 {
            admitted.push(slots.admits());
            slots.take(&"a".into());
        }
        admitted.push(slots.admits());
        let (everyone, newcomers) = (Admits::Everyone, Admits::Newcomers);
        assert_eq!(
            admitted,
            [everyone, everyone, everyone, newcomers, Admits::Nobody]
        );
    }

    #[test]
    fn the_very_last_ones_of_many_are_for_guests() {
        let admitted = |tells_guests| {
            let mut slots = Slots::new(16, tells_guests);
            for _ in 0..13 {
                slots.take(&"a".into());
            }
            let mut admitted = Vec::new();
            for _ in 13..17 {
                admitted.push(slots.admits());
                slots.take(&"a".into());
            }
            admitted
        };
        let (newcomers, guests, nobody) = (Admits::Newcomers, Admits::Guests, Admits::Nobody);
        assert_eq!(admitted(true), [newcomers, guests, guests, nobody]);
        assert_eq!(admitted(false), [newcomers, newcomers, newcomers, nobody]);
    }

    #[test]
    fn whoever_holds_a_slot_keeps_it_when_there_are_fewer() {
        let mut slots = Slots::new(16, true);
        for _ in 0..8 {
            slots.take(&"a".into());
        }
        slots.resize(4);
        assert_eq!(slots.admits(), Admits::Nobody);
        for _ in 0..5 {
            slots.give_back("a");
        }
        assert_eq!((slots.held("a"), slots.admits()), (3, Admits::Newcomers));
        slots.resize(16);
        assert_eq!(slots.admits(), Admits::Everyone);
    }

    #[test]
    fn a_namespace_is_a_newcomer_again_when_its_last_slot_is_back() {
        let mut slots = Slots::new(4, true);
        slots.take(&"a".into());
        slots.take(&"a".into());
        slots.give_back("a");
        assert!(slots.holds("a"));
        slots.give_back("a");
        assert!(!slots.holds("a"));
        assert!(slots.held.is_empty());
    }
}
