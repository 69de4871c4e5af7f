//! What is counted of events for `kubectl describe`.

use super::Metrics;
use super::define::{labels, metrics};

labels! {
    /// How an event for `kubectl describe` ended.
    pub enum EventOutcome {
        /// Sent as a new object.
        Created = "created",
        /// Counted up on an object sent before.
        Counted = "counted",
        /// Told in another one of its owner, while many wait.
        Joined = "joined",
        /// Left out: the queue was full.
        QueueFull = "queue_full",
        /// Left out: its owner sends too many.
        RateLimited = "rate_limited",
        /// The API server did not take it.
        Failed = "failed",
        /// Left out: the process ended before.
        Shutdown = "shutdown",
    }
}

metrics! {
    pub(super) struct Events {
        /// Events for kubectl describe; queue_full, rate_limited and shutdown were left out.
        total: counters_from_zero("carto_events_total", "outcome", EventOutcome::words()),
    }
}

impl Metrics {
    /// An event was sent or left out.
    pub fn event(&self, outcome: EventOutcome) {
        let total = &self.events.total;
        total.with_label_values(&[outcome.as_str()]).inc();
    }
}
