//! A fair work queue for owners.
//!
//! Wakes come in from watches, reconciles go out one per slot:
//!
//! ```text
//! wake(key, lane) ─▶ delayed (debounce, back-off) ─▶ ready: Progress │ Fresh │ Retry ─▶ next() ─▶ Work
//!        ▲                                           per namespace, in turn                        │
//!        └──────────────────────────── outcome, or a wake while it ran ◀───────────────────────────┘
//! ```
//!
//! - **Progress** before **Fresh**: an owner under way goes on before a new one starts, so that chains
//!   finish early. Fresh gets at least every fifth slot, so that nothing starves.
//! - **Retry** has slots of its own: a thousand failing owners never delay a healthy one
//!   (incident: fluxcd/flux2#5601).
//! - Namespaces take turns inside a lane: one tenant with 10,000 owners delays another tenant's single
//!   owner by one slot (incident: #929).
//! - The last quarter of the slots goes only to namespaces that hold none: a tenant whose reconciles hang
//!   (a webhook that does not answer) keeps nobody else out. Half of them go only to namespaces that ask for little.
//! - While many owners wait, namespaces that ask for little (`demand`) go before the others: a crowd made of hundreds of small
//!   namespaces would otherwise have hundreds of turns.
//! - Where the API server is congested, a slot is not enough: what the many have under way is cut
//!   down, and stops while one of the few goes on (`congestion`).
//! - An owner never runs twice at once; what wakes it meanwhile runs it again after.
//!
//! Nothing here is needed for correctness: after a restart every owner is woken once by the first list.

mod config;
mod congestion;
mod demand;
mod gate;
mod lanes;
mod pool;
mod run;
mod slots;
mod state;
#[cfg(test)]
mod tests;
mod turns;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use config::SchedulerConfig;
pub(crate) use gate::Gate;
pub(crate) use run::panic_text;
pub use run::{Terms, run};

use crate::metrics::Metrics;
use crate::object_key::ObjectKey;
use state::{Pick, State};

/// Why an owner is woken, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Something it made has changed: it is under way.
    Progress,
    /// The owner, or what it is made from, has changed.
    Fresh,
    /// It failed before.
    Retry,
}

impl Lane {
    /// All lanes, best first.
    pub const ALL: [Self; 3] = [Self::Progress, Self::Fresh, Self::Retry];

    /// The label in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::Fresh => "fresh",
            Self::Retry => "retry",
        }
    }
}

/// What began a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cause {
    /// Whether something woke the owner; else only the run before asked for this one.
    pub woken: bool,
    /// How long it had to wait before, because that is how it is meant: what gathers events, a back-off, a slow retry. That no
    /// slot was free is not in it, so it says the same on any machine.
    pub pause: Duration,
}

impl Cause {
    /// Woken, and begun at once.
    const WOKEN: Self = Self {
        woken: true,
        pause: Duration::ZERO,
    };
}

/// When an owner is to be looked at again, unless something wakes it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Not before it is woken.
    Done,
    /// After a time that doubles with each failure in a row.
    Backoff,
    /// The same, but no later than this: something else is due then.
    BackoffWithin(Duration),
    /// After [`SchedulerConfig::slow`]: somebody must fix something that we may not see change.
    Slow,
    /// After this time.
    After(Duration),
    /// The API server asked to be left alone: after `wait`, unless something wakes the owner before; but whatever wakes it,
    /// not before `hold` is over.
    Rest {
        /// How long nothing is asked.
        hold: Duration,
        /// When to try again; never less than `hold`.
        wait: Duration,
    },
}

/// What the queue holds at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueDepth {
    /// Owners that could run now, by lane in the order of [`Lane::ALL`].
    pub ready: [usize; 3],
    /// How long the longest-waiting of them has waited, by lane.
    pub oldest: [Duration; 3],
    /// Owners that wait for a time.
    pub delayed: usize,
    /// Owners under way.
    pub running: usize,
    /// Owners that may be under way at once, retries aside.
    pub slots: usize,
}

/// The work queue.
pub struct Scheduler {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
    metrics: OnceLock<Arc<Metrics>>,
}

impl Scheduler {
    /// An empty queue.
    pub fn new(config: SchedulerConfig) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::new(config)),
                changed: Notify::new(),
                metrics: OnceLock::new(),
            }),
        }
    }

    /// From now on `metrics` shows what this queue holds under the label `queue`, and counts panics.
    pub fn observe(&self, metrics: &Arc<Metrics>, queue: &'static str) {
        if self.shared.metrics.set(metrics.clone()).is_err() {
            return;
        }
        let observed = Arc::downgrade(&self.shared);
        metrics.before_gather(move |metrics| {
            if let Some(shared) = observed.upgrade() {
                let (depth, (window, yields)) = {
                    let state = shared.state.lock();
                    (state.depth(Instant::now()), state.congestion())
                };
                metrics.queue(queue, &depth);
                metrics.congestion(queue, window, yields);
            }
        });
    }

    /// Queues an owner: after `delay`, or with `None` as soon as the debounce allows. Several wakes are
    /// one run: the earliest time and the best lane win.
    pub fn wake(&self, key: ObjectKey, lane: Lane, delay: Option<Duration>) {
        self.shared
            .state
            .lock()
            .wake(key, lane, delay, Instant::now());
        self.shared.changed.notify_waiters();
    }

    /// So many replicas, this one included, have a queue like this and ask one API server: together they have no more under
    /// way, but for retries, than one alone would. More only waits there, each turn of a chain for longer.
    pub fn share_among(&self, replicas: usize) {
        self.shared.state.lock().share_among(replicas);
        self.shared.changed.notify_waiters();
    }

    /// The owner is gone: drops what is queued for it and its failures.
    pub fn forget(&self, key: &ObjectKey) {
        self.shared.state.lock().forget(key);
    }

    /// Hands out nothing until `resume`; wakes are kept.
    pub fn pause(&self) {
        self.shared.state.lock().set_paused(true);
    }

    /// Ends [`Self::pause`].
    pub(crate) fn resume(&self) {
        self.shared.state.lock().set_paused(false);
        self.shared.changed.notify_waiters();
    }

    /// What is queued now.
    #[cfg(test)]
    pub(crate) fn depth(&self) -> QueueDepth {
        self.shared.state.lock().depth(Instant::now())
    }

    /// Waits for an owner to reconcile and a free slot. Cancel-safe: nothing is taken from the queue
    /// before it is returned.
    pub async fn next(&self) -> Work {
        loop {
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            // Before looking, so that a wake between looking and waiting is not missed.
            changed.as_mut().enable();
            let pick = self.shared.state.lock().pick(Instant::now());
            match pick {
                Pick::Run {
                    key,
                    lane,
                    failures,
                    cause,
                } => {
                    return Work {
                        key,
                        lane,
                        failures,
                        cause,
                        outcome: Next::Backoff,
                        shared: self.shared.clone(),
                    };
                }
                Pick::Wait(None) => changed.await,
                Pick::Wait(Some(due)) => {
                    let _ = tokio::time::timeout_at(due, changed).await;
                }
            }
        }
    }
}

/// One owner, taken from the queue. Dropping it gives the slot back; an outcome that was never told
/// (a panic, a cancelled task) counts as a failure.
#[must_use = "dropping it counts as a failed run"]
pub struct Work {
    key: ObjectKey,
    lane: Lane,
    failures: u32,
    cause: Cause,
    outcome: Next,
    shared: Arc<Shared>,
}

impl Work {
    /// The owner.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// The lane it was taken from.
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// Runs in a row that ended with [`Next::Backoff`] before this one.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// What began the run.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// Ends the run.
    pub fn finish(mut self, outcome: Next) {
        self.outcome = outcome;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.finish(&self.key, self.outcome, Instant::now());
        drop(state);
        self.shared.changed.notify_waiters();
    }
}
