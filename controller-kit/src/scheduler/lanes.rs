//! Owners that could run now: three lanes over two pools of slots.

use tokio::time::Instant;

use super::Lane;
use super::congestion::{Congestion, Share};
use super::demand::Demand;
use super::pool::Pool;
use super::turns::Turns;
use crate::object_key::ObjectKey;

/// One Fresh owner is taken after this many of Progress while both wait.
const PROGRESS_BURST: u32 = 4;
/// While many wait, guests go first; one of the others is taken after this many of them.
const GUEST_BURST: u32 = 4;

type Owners = Pool<ObjectKey, 2>;

/// Which of the pools a lane is in, and which lane of that. There is but one of retries.
fn place(lane: Lane) -> (usize, usize) {
    match lane {
        Lane::Progress => (0, 0),
        Lane::Fresh => (0, 1),
        Lane::Retry => (1, 0),
    }
}

pub(super) struct Lanes {
    /// Of events, and of retries.
    pools: [Owners; 2],
    /// Of guests, and of everybody.
    progress_in_a_row: [u32; 2],
    guests_in_a_row: u32,
    demand: Demand,
    congestion: Congestion,
}

impl Lanes {
    pub(super) fn new(event_slots: usize, retry_slots: usize) -> Self {
        Self {
            pools: [event_slots, retry_slots].map(|slots| Pool::new(slots, true)),
            progress_in_a_row: [0; 2],
            guests_in_a_row: 0,
            demand: Demand::default(),
            congestion: Congestion::new(event_slots, event_slots.saturating_add(retry_slots)),
        }
    }

    /// As many slots for events as this from now on; 0 counts as 1.
    pub(super) fn resize(&mut self, event_slots: usize) {
        let [events, retries] = &mut self.pools;
        events.resize(event_slots);
        let all = event_slots.max(1).saturating_add(retries.slots());
        self.congestion.resize(event_slots, all);
    }

    pub(super) fn push(&mut self, lane: Lane, ticket: u64, key: ObjectKey, now: Instant) {
        let namespace = key.namespace.clone();
        self.demand.at(now);
        if self.demand.enters(&namespace) {
            for pool in &mut self.pools {
                pool.no_guest(&namespace);
            }
        }
        let from = (&namespace, self.demand.is_guest(&namespace));
        let (pool, lane) = place(lane);
        self.pools[pool].push(lane, ticket, from, key, now);
    }

    /// Takes an owner out of the middle.
    pub(super) fn remove(&mut self, lane: Lane, ticket: u64, namespace: &str) {
        self.demand.leaves(namespace);
        let (pool, lane) = place(lane);
        self.pools[pool].remove(lane, ticket, namespace);
    }

    /// The next owner that a slot is free for; it holds the slot until [`Self::give_back`].
    pub(super) fn take(
        &mut self,
        now: Instant,
        congested: impl FnOnce() -> bool,
    ) -> Option<(ObjectKey, Lane)> {
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

    fn take_fairly(&mut self, share: Share) -> Option<(ObjectKey, Lane)> {
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
        let by_others = self.pools.iter().map(|pool| pool.taken_by(is_other));
        let by_others: usize = by_others.sum();
        self.take_any(by_others >= share.all_others(), share)
    }

    fn take_any(&mut self, guests_only: bool, share: Share) -> Option<(ObjectKey, Lane)> {
        let Self {
            pools: [events, retries],
            demand,
            progress_in_a_row,
            ..
        } = self;
        let of = |name: &str| share.of(demand.is_guest(name), demand.backlog(name));
        let in_a_row = &mut progress_in_a_row[usize::from(!guests_only)];
        take_event(events, in_a_row, guests_only, of)
            .or_else(|| take(retries, Lane::Retry, guests_only, of))
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
        let (pool, _) = place(lane);
        self.pools[pool].give_back(namespace);
    }

    pub(super) fn len(&self, lane: Lane) -> usize {
        self.lane(lane).len()
    }

    /// When the longest-waiting owner of a lane became ready.
    pub(super) fn oldest(&self, lane: Lane) -> Option<Instant> {
        self.lane(lane).oldest()
    }

    /// Owners that may be under way at once, retries aside.
    pub(super) fn event_slots(&self) -> usize {
        let [events, _] = &self.pools;
        events.slots()
    }

    /// Owners under way.
    pub(super) fn running(&self) -> usize {
        self.pools.iter().map(Pool::taken).sum()
    }

    fn lane(&self, lane: Lane) -> &Turns<ObjectKey> {
        let (pool, lane) = place(lane);
        self.pools[pool].lane(lane)
    }
}

fn take_event(
    events: &mut Owners,
    progress_in_a_row: &mut u32,
    guests_only: bool,
    share: impl Fn(&str) -> usize,
) -> Option<(ObjectKey, Lane)> {
    let (_, fresh) = place(Lane::Fresh);
    if events.lane(fresh).len() == 0 {
        *progress_in_a_row = 0;
    }
    if *progress_in_a_row < PROGRESS_BURST
        && let Some(taken) = take(events, Lane::Progress, guests_only, &share)
    {
        *progress_in_a_row += 1;
        return Some(taken);
    }
    if let Some(taken) = take(events, Lane::Fresh, guests_only, &share) {
        *progress_in_a_row = 0;
        return Some(taken);
    }
    // Fresh owners may wait whose namespaces must wait for another slot; it remains their turn.
    take(events, Lane::Progress, guests_only, &share)
}

fn take(
    pool: &mut Owners,
    lane: Lane,
    guests_only: bool,
    share: impl Fn(&str) -> usize,
) -> Option<(ObjectKey, Lane)> {
    let (_, index) = place(lane);
    let (_, key) = pool.take(index, guests_only, share)?;
    Some((key, lane))
}
