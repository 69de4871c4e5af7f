//! Owners that could run now: three lanes over two pools of slots.

use tokio::time::Instant;

use super::congestion::{Congestion, Share};
use super::demand::Demand;
use super::pool::Pool;
use super::turns::Turns;
use super::{Lane, OwnerKey};

/// One Fresh owner is taken after this many of Progress while both wait.
const PROGRESS_BURST: u32 = 4;
/// While many wait, guests go first; one of the others is taken after this many of them.
const GUEST_BURST: u32 = 4;

/// Lanes of the pool of events; the pool of retries has one.
const PROGRESS: usize = 0;
const FRESH: usize = 1;
const RETRY: usize = 0;

pub(super) struct Lanes {
    events: Pool<OwnerKey, 2>,
    retries: Pool<OwnerKey, 1>,
    /// Of guests, and of everybody.
    progress_in_a_row: [u32; 2],
    guests_in_a_row: u32,
    demand: Demand,
    congestion: Congestion,
}

impl Lanes {
    pub(super) fn new(event_slots: usize, retry_slots: usize) -> Self {
        Self {
            events: Pool::new(event_slots, true),
            retries: Pool::new(retry_slots, true),
            progress_in_a_row: [0; 2],
            guests_in_a_row: 0,
            demand: Demand::default(),
            congestion: Congestion::new(event_slots, event_slots.saturating_add(retry_slots)),
        }
    }

    pub(super) fn push(&mut self, lane: Lane, ticket: u64, key: OwnerKey, now: Instant) {
        let namespace = key.namespace.clone();
        self.demand.at(now);
        if self.demand.enters(&namespace) {
            self.events.no_guest(&namespace);
            self.retries.no_guest(&namespace);
        }
        let from = (&namespace, self.demand.is_guest(&namespace));
        match lane {
            Lane::Progress => self.events.push(PROGRESS, ticket, from, key, now),
            Lane::Fresh => self.events.push(FRESH, ticket, from, key, now),
            Lane::Retry => self.retries.push(RETRY, ticket, from, key, now),
        }
    }

    /// Takes an owner out of the middle.
    pub(super) fn remove(&mut self, lane: Lane, ticket: u64, namespace: &str) {
        self.demand.leaves(namespace);
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
        self.demand.at(now);
        let waiting = self.waiting();
        let share = self.congestion.share(waiting, now, congested);
        let (key, lane) = self.take_fairly(share)?;
        let is_guest = self.demand.is_guest(&key.namespace);
        let backlog = self.demand.backlog(&key.namespace);
        self.congestion
            .taken(&key.namespace, is_guest, backlog, waiting, now);
        Some((key, lane))
    }

    fn take_fairly(&mut self, share: Share) -> Option<(OwnerKey, Lane)> {
        if share.is_all() {
            return self.take_any(false, share);
        }
        if self.guests_in_a_row < GUEST_BURST
            && let Some(guest) = self.take_any(true, share)
        {
            self.guests_in_a_row += 1;
            return Some(guest);
        }
        self.guests_in_a_row = 0;
        let is_other = |name: &str| !self.demand.is_guest(name);
        let by_others = self.events.taken_by(is_other) + self.retries.taken_by(is_other);
        self.take_any(by_others >= share.all_others(), share)
    }

    fn take_any(&mut self, guests_only: bool, share: Share) -> Option<(OwnerKey, Lane)> {
        let Self {
            events,
            retries,
            demand,
            progress_in_a_row,
            ..
        } = self;
        let of = |name: &str| share.of(demand.is_guest(name), demand.backlog(name));
        let in_a_row = &mut progress_in_a_row[usize::from(!guests_only)];
        take_event(events, in_a_row, guests_only, of)
            .or_else(|| take(retries, RETRY, Lane::Retry, guests_only, of))
    }

    /// Whether owners wait who may be held back for the sake of others: the server may be fast again, or the others gone, with
    /// no owner that comes or ends to tell of it.
    pub(super) fn holds_back(&self) -> bool {
        self.congestion.is_crowded(self.waiting())
    }

    /// Until when a crowd yields to a guest, if it does.
    pub(super) fn yields_until(&self, now: Instant) -> Option<Instant> {
        self.congestion.yields_until(now)
    }

    /// What people may want to know of it.
    pub(super) fn congestion(&self) -> &Congestion {
        &self.congestion
    }

    fn waiting(&self) -> usize {
        Lane::ALL.into_iter().map(|lane| self.len(lane)).sum()
    }

    /// An owner taken from this lane has ended its run.
    pub(super) fn give_back(&mut self, lane: Lane, namespace: &str) {
        self.demand.leaves(namespace);
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
    guests_only: bool,
    share: impl Fn(&str) -> usize,
) -> Option<(OwnerKey, Lane)> {
    if events.lane(FRESH).len() == 0 {
        *progress_in_a_row = 0;
    }
    if *progress_in_a_row < PROGRESS_BURST
        && let Some(taken) = take(events, PROGRESS, Lane::Progress, guests_only, &share)
    {
        *progress_in_a_row += 1;
        return Some(taken);
    }
    if let Some(taken) = take(events, FRESH, Lane::Fresh, guests_only, &share) {
        *progress_in_a_row = 0;
        return Some(taken);
    }
    // Fresh owners may wait whose namespaces must wait for another slot; it remains their turn.
    take(events, PROGRESS, Lane::Progress, guests_only, &share)
}

fn take<const LANES: usize>(
    pool: &mut Pool<OwnerKey, LANES>,
    index: usize,
    lane: Lane,
    guests_only: bool,
    share: impl Fn(&str) -> usize,
) -> Option<(OwnerKey, Lane)> {
    pool.take(index, guests_only, share)
        .map(|(_, key)| (key, lane))
}
