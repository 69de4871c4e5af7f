//! How a reconcile ended.

use std::time::Duration;

use tracing::debug;

use crate::scheduler::Next;

/// How long the event of a change that the API server knows of may take to arrive.
const EVENT_PATIENCE: Duration = Duration::from_secs(1);

/// How a reconcile ended: when to look again, and the word for it in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Reconciled {
    /// When to look again.
    pub next: Next,
    /// The label `outcome`; one of a few words in the source.
    pub(crate) outcome: &'static str,
}

impl Reconciled {
    /// In this word: one of a few that are written in the source.
    pub fn new(next: Next, outcome: &'static str) -> Self {
        Self { next, outcome }
    }

    /// The word for how it ended.
    pub fn outcome(self) -> &'static str {
        self.outcome
    }

    /// The owner is gone, on its way out, or cannot be read.
    pub fn gone(next: Next) -> Self {
        Self::new(next, "gone")
    }

    /// The owner has been changed and this process has not seen that yet: nothing is said of the older one.
    pub fn behind() -> Self {
        debug!("the owner has a newer generation than this process has seen; waiting for it");
        Self::new(Next::After(EVENT_PATIENCE), "behind")
    }
}
