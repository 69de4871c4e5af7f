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
use super::{Cause, Lane, Next, OwnerKey, QueueDepth, SchedulerConfig};

/// Owners that are held back are looked at again after so long, though nothing happens.
const RECONSIDERED: Duration = Duration::from_millis(250);

/// Longer than events are gathered anywhere.
const SOON: Duration = Duration::from_secs(1);

pub(super) struct State {
    config: SchedulerConfig,
    entries: HashMap<OwnerKey, Entry>,
    /// Owners in `Delayed` and `Resting`, by due time and ticket.
    timers: BTreeMap<(Instant, u64), OwnerKey>,
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
        key: OwnerKey,
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

    pub(super) fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    pub(super) fn wake(
        &mut self,
        key: OwnerKey,
        lane: Lane,
        delay: Option<Duration>,
        now: Instant,
    ) {
        let due = delay.map(|delay| now + delay);
        let Some(entry) = self.entries.get_mut(&key) else {
            self.entries.insert(
                key.clone(),
                Entry {
                    phase: Phase::Resting {
                        until: now,
                        ticket: 0,
                    },
                    failures: 0,
                    held_until: None,
                    cause: Cause::WOKEN,
                },
            );
            return self.queue(key, lane, due.unwrap_or(now), now);
        };
        entry.cause.woken = true;
        match &mut entry.phase {
            Phase::Running {
                again, forgotten, ..
            } => {
                *forgotten = false;
                *again = Some(again.map_or(Wake { lane, due }, |before| {
                    merge(before, Wake { lane, due })
                }));
            }
            phase => {
                let phase = *phase;
                self.wake_at_rest(key, phase, lane, due, now);
            }
        }
    }

    fn wake_at_rest(
        &mut self,
        key: OwnerKey,
        phase: Phase,
        lane: Lane,
        due: Option<Instant>,
        now: Instant,
    ) {
        match phase {
            Phase::Delayed {
                lane: before,
                due: due_before,
                ticket,
            } => {
                self.timers.remove(&(due_before, ticket));
                self.queue(
                    key,
                    lane.min(before),
                    due.unwrap_or(now).min(due_before),
                    now,
                );
            }
            Phase::Ready {
                lane: before,
                ticket,
            } => {
                let due = due.unwrap_or(now);
                // Retries may wait for long for a slot (each of theirs may hang): what wakes an owner in a moment, as it
                // gathers events, is sooner.
                let soon = before == Lane::Retry && due <= now + SOON;
                if lane < before && (due <= now || soon) {
                    self.lanes.remove(before, ticket, &key.namespace);
                    self.queue(key, lane, due, now);
                }
            }
            Phase::Resting { until, ticket } => {
                self.timers.remove(&(until, ticket));
                self.resting -= 1;
                // `until` is the end of the run plus the debounce of events.
                let ended = until.checked_sub(self.config.debounce).unwrap_or(now);
                self.queue(
                    key,
                    lane,
                    due.unwrap_or_else(|| ended + self.debounce(lane)),
                    now,
                );
            }
            Phase::Running { .. } => {}
        }
    }

    /// Puts an owner whose former place has been cleared into `Ready` or `Delayed`.
    fn queue(&mut self, key: OwnerKey, lane: Lane, due: Instant, now: Instant) {
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

    pub(super) fn forget(&mut self, key: &OwnerKey) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        match &mut entry.phase {
            Phase::Running {
                again, forgotten, ..
            } => {
                *again = None;
                *forgotten = true;
                entry.failures = 0;
                entry.cause.woken = false;
                return;
            }
            Phase::Delayed { due, ticket, .. } => {
                self.timers.remove(&(*due, *ticket));
            }
            Phase::Resting { until, ticket } => {
                self.timers.remove(&(*until, *ticket));
                self.resting -= 1;
            }
            Phase::Ready { lane, ticket } => self.lanes.remove(*lane, *ticket, &key.namespace),
        }
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
            match self.entries.get(&key).map(|entry| entry.phase) {
                Some(Phase::Delayed { lane, due, .. }) => self.is_due(&key, lane, due, now),
                Some(Phase::Resting { .. }) => {
                    self.resting -= 1;
                    self.entries.remove(&key);
                }
                Some(Phase::Ready { .. } | Phase::Running { .. }) | None => {}
            }
        }
    }

    /// The pause is over; it remains what the run began with.
    fn is_due(&mut self, key: &OwnerKey, lane: Lane, due: Instant, now: Instant) {
        let pause = self.entries.get(key).map(|entry| entry.cause.pause);
        self.queue(key.clone(), lane, due, now);
        if let (Some(entry), Some(pause)) = (self.entries.get_mut(key), pause) {
            entry.cause.pause = pause;
        }
    }

    /// How many slots a namespace of many may hold, and how often they made way.
    pub(super) fn congestion(&self) -> (usize, u64) {
        let congestion = self.lanes.congestion();
        (congestion.window(), congestion.yields())
    }

    pub(super) fn finish(&mut self, key: &OwnerKey, outcome: Next, now: Instant) {
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
        let wake = match (own, again) {
            (Some(own), Some(again)) => Some(merge(
                own,
                Wake {
                    due: Some(again.due.unwrap_or_else(|| now + self.debounce(again.lane))),
                    ..again
                },
            )),
            (own, again) => own.or(again),
        };
        match wake {
            Some(wake) => self.queue(
                key.clone(),
                wake.lane,
                wake.due.unwrap_or_else(|| now + self.debounce(wake.lane)),
                now,
            ),
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

    fn own_wake(&mut self, key: &OwnerKey, outcome: Next, now: Instant) -> Option<Wake> {
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
        let after = |lane, delay| {
            Some(Wake {
                lane,
                due: Some(now + delay),
            })
        };
        match outcome {
            Next::Done => None,
            Next::Backoff => after(Lane::Retry, self.backoff(failures)),
            Next::BackoffWithin(limit) => after(Lane::Retry, self.backoff(failures).min(limit)),
            Next::Slow => after(
                Lane::Retry,
                self.config.slow.mul_f64(1.0 - 0.2 * self.jitter()),
            ),
            Next::After(delay) => after(Lane::Progress, delay),
            Next::Rest { hold, wait } => after(Lane::Retry, wait.max(hold)),
        }
    }

    /// Between half of the doubled wait and all of it.
    fn backoff(&self, failures: u32) -> Duration {
        let doubled = 2_u32
            .checked_pow(failures.saturating_sub(1))
            .and_then(|factor| self.config.backoff_min.checked_mul(factor));
        doubled
            .unwrap_or(self.config.backoff_max)
            .min(self.config.backoff_max)
            .mul_f64(0.5 + 0.5 * self.jitter())
    }

    fn jitter(&self) -> f64 {
        (self.config.jitter)().clamp(0.0, 1.0)
    }

    fn rest(&mut self, key: &OwnerKey, forgotten: bool, now: Instant) {
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
