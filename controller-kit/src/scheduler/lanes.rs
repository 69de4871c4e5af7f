//! Owners that could run now: three lanes over two pools of slots.

use tokio::time::Instant;

use super::pool::Pool;
use super::turns::Turns;
use super::{Lane, OwnerKey};

/// One Fresh owner is taken after this many of Progress while both wait.
const PROGRESS_BURST: u32 = 4;

/// Lanes of the pool of events; the pool of retries has one.
const PROGRESS: usize = 0;
const FRESH: usize = 1;
const RETRY: usize = 0;

pub(super) struct Lanes {
    events: Pool<OwnerKey, 2>,
    retries: Pool<OwnerKey, 1>,
    progress_in_a_row: u32,
}

impl Lanes {
    pub(super) fn new(event_slots: usize, retry_slots: usize) -> Self {
        Self {
            events: Pool::new(event_slots),
            retries: Pool::new(retry_slots),
            progress_in_a_row: 0,
        }
    }

    pub(super) fn push(&mut self, lane: Lane, ticket: u64, key: OwnerKey, now: Instant) {
        let namespace = key.namespace.clone();
        match lane {
            Lane::Progress => self.events.push(PROGRESS, ticket, &namespace, key, now),
            Lane::Fresh => self.events.push(FRESH, ticket, &namespace, key, now),
            Lane::Retry => self.retries.push(RETRY, ticket, &namespace, key, now),
        }
    }

    /// Takes an owner out of the middle.
    pub(super) fn remove(&mut self, lane: Lane, ticket: u64, namespace: &str) {
        match lane {
            Lane::Progress => self.events.remove(PROGRESS, ticket, namespace),
            Lane::Fresh => self.events.remove(FRESH, ticket, namespace),
            Lane::Retry => self.retries.remove(RETRY, ticket, namespace),
        }
    }

    /// The next owner that a slot is free for; it holds the slot until [`Self::give_back`].
    pub(super) fn take(&mut self) -> Option<(OwnerKey, Lane)> {
        self.take_event()
            .or_else(|| take(&mut self.retries, RETRY, Lane::Retry))
    }

    fn take_event(&mut self) -> Option<(OwnerKey, Lane)> {
        if self.events.lane(FRESH).len() == 0 {
            self.progress_in_a_row = 0;
        }
        if self.progress_in_a_row < PROGRESS_BURST
            && let Some(taken) = take(&mut self.events, PROGRESS, Lane::Progress)
        {
            self.progress_in_a_row += 1;
            return Some(taken);
        }
        if let Some(taken) = take(&mut self.events, FRESH, Lane::Fresh) {
            self.progress_in_a_row = 0;
            return Some(taken);
        }
        // Fresh owners may wait whose namespaces must wait for another slot; it remains their turn.
        take(&mut self.events, PROGRESS, Lane::Progress)
    }

    /// An owner taken from this lane has ended its run.
    pub(super) fn give_back(&mut self, lane: Lane, namespace: &str) {
        match lane {
            Lane::Progress | Lane::Fresh => self.events.give_back(namespace),
            Lane::Retry => self.retries.give_back(namespace),
        }
    }

    pub(super) fn len(&self, lane: Lane) -> usize {
        self.lane(lane).len()
    }

    /// When the longest-waiting owner of a lane became ready.
    pub(super) fn oldest(&self, lane: Lane) -> Option<Instant> {
        self.lane(lane).oldest()
    }

    /// Owners under way.
    pub(super) fn running(&self) -> usize {
        self.events.taken() + self.retries.taken()
    }

    fn lane(&self, lane: Lane) -> &Turns<OwnerKey> {
        match lane {
            Lane::Progress => self.events.lane(PROGRESS),
            Lane::Fresh => self.events.lane(FRESH),
            Lane::Retry => self.retries.lane(RETRY),
        }
    }
}

fn take<const LANES: usize>(
    pool: &mut Pool<OwnerKey, LANES>,
    index: usize,
    lane: Lane,
) -> Option<(OwnerKey, Lane)> {
    pool.take(index).map(|(_, key)| (key, lane))
}
