//! Slots, and what waits for them in one or several lanes: no namespace takes them all.

use std::sync::Arc;

use tokio::time::Instant;

use super::slots::{Admits, Slots};
use super::turns::{Rank, Turns};

/// The last quarter of the slots goes only to namespaces that hold none of them. Without this, one
/// namespace whose work hangs (a webhook that does not answer, a template that loops) holds all slots, and
/// being next in turn helps nobody.
pub(super) struct Pool<T, const LANES: usize> {
    slots: Slots,
    lanes: [Turns<T>; LANES],
}

impl<T, const LANES: usize> Pool<T, LANES> {
    /// With so many slots; 0 counts as 1. `tells_guests`: whether namespaces that ask for little are told apart.
    pub(super) fn new(slots: usize, tells_guests: bool) -> Self {
        Self {
            slots: Slots::new(slots, tells_guests),
            lanes: std::array::from_fn(|_| Turns::default()),
        }
    }

    /// As many slots as this from now on; 0 counts as 1.
    pub(super) fn resize(&mut self, slots: usize) {
        self.slots.resize(slots);
    }

    /// `is_guest`: whether its namespace asks for little.
    pub(super) fn push(
        &mut self,
        lane: usize,
        ticket: u64,
        (namespace, is_guest): (&Arc<str>, bool),
        item: T,
        now: Instant,
    ) {
        let standing = Rank {
            holds: self.slots.holds(namespace),
            is_guest,
        };
        self.lanes[lane].push(ticket, namespace, standing, item, now);
    }

    /// Takes one out of the middle.
    pub(super) fn remove(&mut self, lane: usize, ticket: u64, namespace: &str) {
        self.lanes[lane].remove(ticket, namespace);
    }

    /// The next one of a lane that may run now: of a namespace that holds less than its share of slots and, where
    /// `guests_only`, asks for little. It holds a slot from now on, until [`Self::give_back`].
    pub(super) fn take(
        &mut self,
        lane: usize,
        guests_only: bool,
        share: impl Fn(&str) -> usize,
    ) -> Option<(Arc<str>, T)> {
        let admits = self.slots.admits();
        let most = match admits {
            Admits::Nobody => return None,
            Admits::Newcomers | Admits::Guests => 1,
            Admits::Everyone => usize::MAX,
        };
        let guests_only = guests_only || admits == Admits::Guests;
        let slots = &self.slots;
        let may = |name: &str| slots.held(name) < share(name).min(most);
        let (namespace, item) = self.lanes[lane].pop(guests_only, may)?;
        self.slots.take(&namespace);
        self.tell(&namespace);
        Some((namespace, item))
    }

    pub(super) fn give_back(&mut self, namespace: &str) {
        self.slots.give_back(namespace);
        self.tell(namespace);
    }

    /// The namespace asks for much from now on.
    pub(super) fn no_guest(&mut self, namespace: &str) {
        for lane in &mut self.lanes {
            lane.no_guest(namespace);
        }
    }

    /// How many slots these namespaces hold.
    pub(super) fn taken_by(&self, which: impl Fn(&str) -> bool) -> usize {
        self.slots.taken_by(which)
    }

    fn tell(&mut self, namespace: &str) {
        let holds = self.slots.holds(namespace);
        for lane in &mut self.lanes {
            lane.set_holds(namespace, holds);
        }
    }

    pub(super) fn lane(&self, lane: usize) -> &Turns<T> {
        &self.lanes[lane]
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> usize {
        self.slots.limit()
    }

    /// Slots that are taken.
    pub(super) fn taken(&self) -> usize {
        self.slots.taken()
    }
}
