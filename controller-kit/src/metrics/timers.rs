//! What measures until it is dropped.

use std::sync::Arc;

use tokio::time::Instant;

use super::Metrics;

/// A rendering that waits for a place.
pub(crate) struct YttWait<'m> {
    pub(super) metrics: &'m Metrics,
    pub(super) since: Instant,
}

impl Drop for YttWait<'_> {
    fn drop(&mut self) {
        self.metrics.ytt.waiting.dec();
        let waited = self.since.elapsed().as_secs_f64();
        self.metrics.ytt.queue_seconds.observe(waited);
    }
}

/// Counts a reconcile when dropped.
pub struct ReconcileTimer {
    pub(super) metrics: Arc<Metrics>,
    pub(super) kind: &'static str,
    pub(super) outcome: &'static str,
    pub(super) started: Instant,
}

impl ReconcileTimer {
    /// How the reconcile ended.
    pub fn outcome(&mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for ReconcileTimer {
    fn drop(&mut self) {
        let outcome = if std::thread::panicking() {
            "panicked"
        } else {
            self.outcome
        };
        self.metrics
            .reconciled(self.kind, outcome, self.started.elapsed().as_secs_f64());
    }
}
