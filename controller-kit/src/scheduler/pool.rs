//! Slots, and what waits for them in one or several lanes: no namespace takes them all.

use std::sync::Arc;

use tokio::time::Instant;

use super::slots::{Admits, Slots};
use super::turns::Turns;

/// The last quarter of the slots goes only to namespaces that hold none of them. Without this, one
/// namespace whose work hangs (a webhook that does not answer, a template that loops) holds all slots, and
/// being next in turn helps nobody.
pub(super) struct Pool<T, const LANES: usize> {
    slots: Slots,
    lanes: [Turns<T>; LANES],
}

impl<T, const LANES: usize> Pool<T, LANES> {
    /// With so many slots; 0 counts as 1.
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots: Slots::new(slots),
            lanes: std::array::from_fn(|_| Turns::default()),
        }
    }

    pub(super) fn push(
        &mut self,
        lane: usize,
        ticket: u64,
        namespace: &Arc<str>,
        item: T,
        now: Instant,
    ) {
        let holds = self.slots.holds(namespace);
        self.lanes[lane].push(ticket, namespace, holds, item, now);
    }

    /// Takes one out of the middle.
    pub(super) fn remove(&mut self, lane: usize, ticket: u64, namespace: &str) {
        self.lanes[lane].remove(ticket, namespace);
    }

    /// The next one of a lane that may run now: of a namespace that holds less than its share of slots. It
    /// holds a slot from now on, until [`Self::give_back`].
    pub(super) fn take(
        &mut self,
        lane: usize,
        share: impl Fn(&str) -> usize,
    ) -> Option<(Arc<str>, T)> {
        let most = match self.slots.admits() {
            Admits::Nobody => return None,
            Admits::Newcomers => 1,
            Admits::Everyone => usize::MAX,
        };
        let slots = &self.slots;
        let may = |name: &str| slots.held(name) < share(name).min(most);
        let (namespace, item) = self.lanes[lane].pop(may)?;
        self.slots.take(&namespace);
        self.tell(&namespace);
        Some((namespace, item))
    }

    pub(super) fn give_back(&mut self, namespace: &str) {
        self.slots.give_back(namespace);
        self.tell(namespace);
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

    /// Slots that are taken.
    pub(super) fn taken(&self) -> usize {
        self.slots.taken()
    }
}
