//! Owners that could run now: three lanes over two pools of slots.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use super::courtesy::{Courtesy, Share};
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
    /// How many of each namespace wait or run.
    backlog: HashMap<Arc<str>, usize>,
    courtesy: Courtesy,
}

impl Lanes {
    pub(super) fn new(event_slots: usize, retry_slots: usize) -> Self {
        Self {
            events: Pool::new(event_slots),
            retries: Pool::new(retry_slots),
            progress_in_a_row: 0,
            backlog: HashMap::new(),
            courtesy: Courtesy::new(event_slots, event_slots.saturating_add(retry_slots)),
        }
    }

    pub(super) fn push(&mut self, lane: Lane, ticket: u64, key: OwnerKey, now: Instant) {
        let namespace = key.namespace.clone();
        *self.backlog.entry(namespace.clone()).or_default() += 1;
        match lane {
            Lane::Progress => self.events.push(PROGRESS, ticket, &namespace, key, now),
            Lane::Fresh => self.events.push(FRESH, ticket, &namespace, key, now),
            Lane::Retry => self.retries.push(RETRY, ticket, &namespace, key, now),
        }
    }

    /// Takes an owner out of the middle.
    pub(super) fn remove(&mut self, lane: Lane, ticket: u64, namespace: &str) {
        self.leaves(namespace);
        match lane {
            Lane::Progress => self.events.remove(PROGRESS, ticket, namespace),
            Lane::Fresh => self.events.remove(FRESH, ticket, namespace),
            Lane::Retry => self.retries.remove(RETRY, ticket, namespace),
        }
    }

    /// The next owner that a slot is free for; it holds the slot until [`Self::give_back`].
    pub(super) fn take(
        &mut self,
        now: Instant,
        congested: impl FnOnce() -> bool,
    ) -> Option<(OwnerKey, Lane)> {
        let waiting = self.waiting();
        let share = self.courtesy.share(waiting, now, congested);
        let (key, lane) = self.take_fairly(share)?;
        let backlog = self.backlog(&key.namespace);
        self.courtesy.taken(backlog, waiting, now);
        Some((key, lane))
    }

    fn take_fairly(&mut self, share: Share) -> Option<(OwnerKey, Lane)> {
        let Self {
            events,
            retries,
            backlog,
            progress_in_a_row,
            ..
        } = self;
        let of = |namespace: &str| share.of(backlog.get(namespace).copied().unwrap_or(0));
        take_event(events, progress_in_a_row, of).or_else(|| take(retries, RETRY, Lane::Retry, of))
    }

    /// Until when a crowd yields to a guest, if it does.
    pub(super) fn yields_until(&self, now: Instant) -> Option<Instant> {
        self.courtesy.yields_until(now)
    }

    fn backlog(&self, namespace: &str) -> usize {
        self.backlog.get(namespace).copied().unwrap_or(0)
    }

    /// One of a namespace waits no more, or has ended.
    fn leaves(&mut self, namespace: &str) {
        if let Some(backlog) = self.backlog.get_mut(namespace) {
            *backlog -= 1;
            if *backlog == 0 {
                self.backlog.remove(namespace);
            }
        }
    }

    fn waiting(&self) -> usize {
        Lane::ALL.into_iter().map(|lane| self.len(lane)).sum()
    }

    /// An owner taken from this lane has ended its run.
    pub(super) fn give_back(&mut self, lane: Lane, namespace: &str) {
        self.leaves(namespace);
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

fn take_event(
    events: &mut Pool<OwnerKey, 2>,
    progress_in_a_row: &mut u32,
    share: impl Fn(&str) -> usize,
) -> Option<(OwnerKey, Lane)> {
    if events.lane(FRESH).len() == 0 {
        *progress_in_a_row = 0;
    }
    if *progress_in_a_row < PROGRESS_BURST
        && let Some(taken) = take(events, PROGRESS, Lane::Progress, &share)
    {
        *progress_in_a_row += 1;
        return Some(taken);
    }
    if let Some(taken) = take(events, FRESH, Lane::Fresh, &share) {
        *progress_in_a_row = 0;
        return Some(taken);
    }
    // Fresh owners may wait whose namespaces must wait for another slot; it remains their turn.
    take(events, PROGRESS, Lane::Progress, &share)
}

fn take<const LANES: usize>(
    pool: &mut Pool<OwnerKey, LANES>,
    index: usize,
    lane: Lane,
    share: impl Fn(&str) -> usize,
) -> Option<(OwnerKey, Lane)> {
    pool.take(index, share).map(|(_, key)| (key, lane))
}
