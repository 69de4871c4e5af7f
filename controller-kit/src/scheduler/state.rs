//! The queue as a state machine: no clock, no task, no lock. Each owner is in one phase:
//!
//! ```text
//! (absent) ─wake─▶ Delayed ─due─▶ Ready ─pick─▶ Running ─finish─▶ Delayed │ Resting ─debounce─▶ (absent)
//! ```
//!
//! An owner has an entry only while something is queued or running for it, or for the debounce after a
//! run: memory is bounded by the owners that exist, and is near zero at rest.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use super::lanes::Lanes;
use super::{Cause, Lane, Next, QueueDepth, SchedulerConfig};
use crate::jitter::doubled;
use crate::object_key::ObjectKey;

/// Owners that are held back are looked at again after so long, though nothing happens.
const RECONSIDERED: Duration = Duration::from_millis(250);

/// Longer than events are gathered anywhere.
const SOON: Duration = Duration::from_secs(1);

pub(super) struct State {
    config: SchedulerConfig,
    entries: HashMap<ObjectKey, Entry>,
    /// Owners in `Delayed` and `Resting`, by due time and ticket.
    timers: BTreeMap<(Instant, u64), ObjectKey>,
    lanes: Lanes,
    resting: usize,
    next_ticket: u64,
    paused: bool,
}

struct Entry {
    phase: Phase,
    failures: u32,
    /// Nothing runs for it before, whoever wakes it.
    held_until: Option<Instant>,
    /// What begins its next run.
    cause: Cause,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Delayed {
        lane: Lane,
        due: Instant,
        ticket: u64,
    },
    Ready {
        lane: Lane,
        ticket: u64,
    },
    Running {
        lane: Lane,
        again: Option<Wake>,
        forgotten: bool,
    },
    Resting {
        until: Instant,
        ticket: u64,
    },
}

#[derive(Debug, Clone, Copy)]
struct Wake {
    lane: Lane,
    /// `None`: as soon as the debounce allows.
    due: Option<Instant>,
}

/// What a caller of `next` is to do.
#[derive(Debug)]
pub(super) enum Pick {
    Run {
        key: ObjectKey,
        lane: Lane,
        failures: u32,
        cause: Cause,
    },
    /// Until something changes, or at the latest this time.
    Wait(Option<Instant>),
}

impl State {
    pub(super) fn new(config: SchedulerConfig) -> Self {
        Self {
            lanes: Lanes::new(config.concurrency, config.retry_concurrency),
            config,
            entries: HashMap::new(),
            timers: BTreeMap::new(),
            resting: 0,
            next_ticket: 0,
            paused: false,
        }
    }

    /// The owners under way are those of so many queues together; 0 counts as 1.
    pub(super) fn share_among(&mut self, queues: usize) {
        let slots = self.config.concurrency.div_ceil(queues.max(1));
        self.lanes.resize(slots);
    }

    pub(super) fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    pub(super) fn wake(
        &mut self,
        key: ObjectKey,
        lane: Lane,
        delay: Option<Duration>,
        now: Instant,
    ) {
        let due = delay.map(|delay| now + delay);
        let Some(entry) = self.entries.get_mut(&key) else {
            let phase = Phase::Resting {
                until: now,
                ticket: 0,
            };
            let entry = Entry {
                phase,
                failures: 0,
                held_until: None,
                cause: Cause::WOKEN,
            };
            self.entries.insert(key.clone(), entry);
            return self.queue(key, lane, due.unwrap_or(now), now);
        };
        entry.cause.woken = true;
        if let Phase::Running {
            again, forgotten, ..
        } = &mut entry.phase
        {
            let wake = Wake { lane, due };
            *again = Some(again.map_or(wake, |before| merge(before, wake)));
            *forgotten = false;
            return;
        }
        let phase = entry.phase;
        if let Some((lane, due)) = self.sooner(phase, lane, due, now) {
            self.clear(&key, phase);
            self.queue(key, lane, due, now);
        }
    }

    /// What an owner at rest is queued for when it is woken; nothing where it runs as soon as it is.
    fn sooner(
        &self,
        phase: Phase,
        lane: Lane,
        due: Option<Instant>,
        now: Instant,
    ) -> Option<(Lane, Instant)> {
        match phase {
            Phase::Delayed {
                lane: before,
                due: due_before,
                ..
            } => Some((lane.min(before), due.unwrap_or(now).min(due_before))),
            Phase::Ready { lane: before, .. } => {
                let due = due.unwrap_or(now);
                // Retries may wait for long for a slot (each of theirs may hang): what wakes an owner in a moment, as it
                // gathers events, is sooner.
                let is_soon = before == Lane::Retry && due <= now + SOON;
                (lane < before && (due <= now || is_soon)).then_some((lane, due))
            }
            Phase::Resting { until, .. } => {
                // `until` is the end of the run plus the debounce of events.
                let ended = until.checked_sub(self.config.debounce).unwrap_or(now);
                Some((lane, due.unwrap_or_else(|| ended + self.debounce(lane))))
            }
            Phase::Running { .. } => None,
        }
    }

    /// Takes an owner out of its place, unless it runs.
    fn clear(&mut self, key: &ObjectKey, phase: Phase) {
        match phase {
            Phase::Delayed { due, ticket, .. } => {
                self.timers.remove(&(due, ticket));
            }
            Phase::Resting { until, ticket } => {
                self.timers.remove(&(until, ticket));
                self.resting -= 1;
            }
            Phase::Ready { lane, ticket } => self.lanes.remove(lane, ticket, &key.namespace),
            Phase::Running { .. } => {}
        }
    }

    /// Puts an owner whose former place has been cleared into `Ready` or `Delayed`.
    fn queue(&mut self, key: ObjectKey, lane: Lane, due: Instant, now: Instant) {
        let ticket = self.ticket();
        let held_until = self.entries.get(&key).and_then(|entry| entry.held_until);
        let due = held_until.map_or(due, |held| held.max(due));
        let phase = if due <= now {
            Phase::Ready { lane, ticket }
        } else {
            Phase::Delayed { lane, due, ticket }
        };
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        entry.phase = phase;
        entry.cause.pause = due.saturating_duration_since(now);
        if due <= now {
            self.lanes.push(lane, ticket, key, now);
        } else {
            self.timers.insert((due, ticket), key);
        }
    }

    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    pub(super) fn forget(&mut self, key: &ObjectKey) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if let Phase::Running {
            again, forgotten, ..
        } = &mut entry.phase
        {
            *again = None;
            *forgotten = true;
            entry.failures = 0;
            entry.cause.woken = false;
            return;
        }
        let phase = entry.phase;
        self.clear(key, phase);
        self.entries.remove(key);
    }

    pub(super) fn pick(&mut self, now: Instant) -> Pick {
        self.expire(now);
        let due = self.timers.first_key_value().map(|((due, _), _)| *due);
        if self.paused {
            // Timers go on, or a long pause would leave all of them to the moment it ends.
            return Pick::Wait(due);
        }
        let Some((key, lane)) = self.lanes.take(now, &*self.config.congested) else {
            let yields = self.lanes.yields_until(now);
            let held_back = self.lanes.holds_back().then(|| now + RECONSIDERED);
            return Pick::Wait(due.into_iter().chain(yields).chain(held_back).min());
        };
        let Some(entry) = self.entries.get_mut(&key) else {
            self.lanes.give_back(lane, &key.namespace);
            return Pick::Wait(due);
        };
        entry.phase = Phase::Running {
            lane,
            again: None,
            forgotten: false,
        };
        let failures = entry.failures;
        let cause = std::mem::take(&mut entry.cause);
        Pick::Run {
            key,
            lane,
            failures,
            cause,
        }
    }

    /// Moves what is due out of the timers.
    fn expire(&mut self, now: Instant) {
        while let Some(first) = self.timers.first_entry() {
            if first.key().0 > now {
                return;
            }
            let key = first.remove();
            let ticket = self.ticket();
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            match entry.phase {
                // The pause is over; it remains what the run began with.
                Phase::Delayed { lane, .. } => {
                    entry.phase = Phase::Ready { lane, ticket };
                    self.lanes.push(lane, ticket, key, now);
                }
                Phase::Resting { .. } => {
                    self.resting -= 1;
                    self.entries.remove(&key);
                }
                Phase::Ready { .. } | Phase::Running { .. } => {}
            }
        }
    }

    /// How many slots a namespace of many may hold, and how often they made way.
    pub(super) fn congestion(&self) -> (usize, u64) {
        let congestion = self.lanes.congestion();
        (congestion.window(), congestion.yields())
    }

    pub(super) fn finish(&mut self, key: &ObjectKey, outcome: Next, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        let Phase::Running {
            lane,
            again,
            forgotten,
        } = entry.phase
        else {
            return;
        };
        self.lanes.give_back(lane, &key.namespace);
        let own = if forgotten {
            None
        } else {
            self.own_wake(key, outcome, now)
        };
        // What arrived while it ran is not delayed by the outcome, only by the debounce.
        let again = again.map(|Wake { lane, due }| {
            let due = due.unwrap_or_else(|| now + self.debounce(lane));
            (lane, due)
        });
        let wakes = own.into_iter().chain(again);
        match wakes.reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))) {
            Some((lane, due)) => self.queue(key.clone(), lane, due, now),
            None => self.rest(key, forgotten, now),
        }
    }

    /// A chain goes on with every event of its objects, so only owners' own events are gathered for long.
    fn debounce(&self, lane: Lane) -> Duration {
        match lane {
            Lane::Progress => self.config.progress_debounce.min(self.config.debounce),
            Lane::Fresh | Lane::Retry => self.config.debounce,
        }
    }

    /// The lane and the time of the run that the outcome asks for.
    fn own_wake(
        &mut self,
        key: &ObjectKey,
        outcome: Next,
        now: Instant,
    ) -> Option<(Lane, Instant)> {
        let entry = self.entries.get_mut(key)?;
        entry.failures = match outcome {
            Next::Backoff | Next::BackoffWithin(_) => entry.failures.saturating_add(1),
            // Who asks for it counts the tries.
            Next::Rest { .. } => entry.failures,
            Next::Done | Next::Slow | Next::After(_) => 0,
        };
        entry.held_until = match outcome {
            Next::Rest { hold, .. } => Some(now + hold),
            _ => None,
        };
        let failures = entry.failures;
        let (lane, wait) = match outcome {
            Next::Done => return None,
            Next::Backoff => (Lane::Retry, self.backoff(failures)),
            Next::BackoffWithin(limit) => (Lane::Retry, self.backoff(failures).min(limit)),
            Next::Slow => {
                let spread = 1.0 - 0.2 * self.jitter();
                (Lane::Retry, self.config.slow.mul_f64(spread))
            }
            Next::After(wait) => (Lane::Progress, wait),
            Next::Rest { hold, wait } => (Lane::Retry, wait.max(hold)),
        };
        Some((lane, now + wait))
    }

    /// Between half of the doubled wait and all of it.
    fn backoff(&self, failures: u32) -> Duration {
        let config = &self.config;
        doubled(
            config.backoff_min,
            failures.saturating_sub(1),
            config.backoff_max,
        )
        .mul_f64(0.5 + 0.5 * self.jitter())
    }

    fn jitter(&self) -> f64 {
        (self.config.jitter)().clamp(0.0, 1.0)
    }

    fn rest(&mut self, key: &ObjectKey, forgotten: bool, now: Instant) {
        if forgotten || self.config.debounce.is_zero() {
            self.entries.remove(key);
            return;
        }
        let ticket = self.ticket();
        let until = now + self.config.debounce;
        if let Some(entry) = self.entries.get_mut(key) {
            entry.phase = Phase::Resting { until, ticket };
            self.timers.insert((until, ticket), key.clone());
            self.resting += 1;
        }
    }

    pub(super) fn depth(&self, now: Instant) -> QueueDepth {
        QueueDepth {
            ready: Lane::ALL.map(|lane| self.lanes.len(lane)),
            oldest: Lane::ALL.map(|lane| {
                self.lanes
                    .oldest(lane)
                    .map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
            }),
            delayed: self.timers.len() - self.resting,
            running: self.lanes.running(),
            slots: self.lanes.event_slots(),
        }
    }

    #[cfg(test)]
    pub(super) fn entries(&self) -> usize {
        self.entries.len()
    }
}

/// The earliest time and the best lane win; "as soon as allowed" is the earliest.
fn merge(a: Wake, b: Wake) -> Wake {
    let due = match (a.due, b.due) {
        (Some(a), Some(b)) => Some(a.min(b)),
        _ => None,
    };
    Wake {
        lane: a.lane.min(b.lane),
        due,
    }
}
