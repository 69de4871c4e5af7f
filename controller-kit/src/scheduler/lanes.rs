//! Owners that could run now: three lanes over two pools of slots.

use std::time::Duration;

use tokio::time::Instant;

use super::pool::Pool;
use super::turns::Turns;
use super::{Lane, OwnerKey};

/// One Fresh owner is taken after this many of Progress while both wait.
const PROGRESS_BURST: u32 = 4;

/// A namespace with no more owners than this in the queue is a guest,
const GUEST: usize = 4;
/// and where more owners wait than so many times the slots, they yield to it:
const CROWD: usize = 4;
/// for so long after each run of a guest, each namespace gets one slot. A chain goes on within this time.
const YIELD: Duration = Duration::from_millis(500);
/// After that they keep three quarters of the slots free for so long, so that the next guest does not wait for what they have
/// under way.
const WARY: Duration = Duration::from_secs(10);
/// They have so much time to give away, which comes back at half the speed of time: a guest that never rests, by mistake or
/// on purpose, takes no more than half of the time from them in the end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Lanes of the pool of events; the pool of retries has one.
const PROGRESS: usize = 0;
const FRESH: usize = 1;
const RETRY: usize = 0;

pub(super) struct Lanes {
    events: Pool<OwnerKey, 2>,
    retries: Pool<OwnerKey, 1>,
    progress_in_a_row: u32,
    crowd: usize,
    patience: Patience,
    yields_until: Option<Instant>,
    wary_until: Option<Instant>,
}

/// How much time the many can still give away.
#[derive(Default)]
struct Patience {
    /// What was given and has not come back.
    spent: Duration,
    at: Option<Instant>,
}

impl Patience {
    /// Gives this much, if it is there.
    fn give(&mut self, time: Duration, now: Instant) -> bool {
        let rested = self
            .at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now);
        self.spent = self.spent.saturating_sub(rested / 2);
        let spent = self.spent + time;
        let enough = spent <= PATIENCE;
        if enough {
            self.spent = spent;
        }
        enough
    }
}

impl Lanes {
    pub(super) fn new(event_slots: usize, retry_slots: usize) -> Self {
        Self {
            events: Pool::new(event_slots),
            retries: Pool::new(retry_slots),
            progress_in_a_row: 0,
            crowd: event_slots
                .saturating_add(retry_slots)
                .saturating_mul(CROWD),
            patience: Patience::default(),
            yields_until: None,
            wary_until: None,
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
    pub(super) fn take(
        &mut self,
        now: Instant,
        congested: impl FnOnce() -> bool,
    ) -> Option<(OwnerKey, Lane)> {
        let wary = self.wary_until(now).is_some();
        let yields = self.yields_until(now).is_some() || (wary && self.events.is_quarter_taken());
        let taken = self
            .take_event(yields)
            .or_else(|| take(&mut self.retries, RETRY, Lane::Retry, yields));
        if let Some((key, _)) = &taken
            && self.is_crowded()
            && self.is_guest(&key.namespace)
        {
            // What they give makes the server fast again, which is no reason to stop.
            if wary || congested() {
                self.wary_until = Some(now + WARY);
                self.give_way(now);
            }
        }
        taken
    }

    fn give_way(&mut self, now: Instant) {
        let until = now + YIELD;
        let given = self.yields_until.map_or(now, |until| until.max(now));
        if self
            .patience
            .give(until.saturating_duration_since(given), now)
        {
            self.yields_until = Some(until);
        }
    }

    fn take_event(&mut self, yields: bool) -> Option<(OwnerKey, Lane)> {
        if self.events.lane(FRESH).len() == 0 {
            self.progress_in_a_row = 0;
        }
        if self.progress_in_a_row < PROGRESS_BURST
            && let Some(taken) = take(&mut self.events, PROGRESS, Lane::Progress, yields)
        {
            self.progress_in_a_row += 1;
            return Some(taken);
        }
        if let Some(taken) = take(&mut self.events, FRESH, Lane::Fresh, yields) {
            self.progress_in_a_row = 0;
            return Some(taken);
        }
        // Fresh owners may wait whose namespaces must wait for another slot; it remains their turn.
        take(&mut self.events, PROGRESS, Lane::Progress, yields)
    }

    /// Until when the many yield to a guest, if they do. A slot at once is not enough: what all the others
    /// send makes each of the guest's requests slow where the API server is the bottleneck.
    pub(super) fn yields_until(&self, now: Instant) -> Option<Instant> {
        self.yields_until
            .filter(|until| *until > now && self.is_crowded())
    }

    /// Until when they are wary of the next guest.
    pub(super) fn wary_until(&self, now: Instant) -> Option<Instant> {
        self.wary_until
            .filter(|until| *until > now && self.is_crowded())
    }

    fn is_crowded(&self) -> bool {
        let waiting: usize = Lane::ALL.into_iter().map(|lane| self.len(lane)).sum();
        waiting > self.crowd
    }

    fn is_guest(&self, namespace: &str) -> bool {
        let backlog = self.events.backlog(namespace) + self.retries.backlog(namespace);
        !namespace.is_empty() && backlog <= GUEST
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
    newcomers_only: bool,
) -> Option<(OwnerKey, Lane)> {
    pool.take(index, newcomers_only).map(|(_, key)| (key, lane))
}
