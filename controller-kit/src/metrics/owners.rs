//! What is counted of owners and their reconciles.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::{ConditionStatus, Reason};
use tokio::time::Instant;

use super::define::metrics;
use super::{Metrics, RECONCILE_SECONDS, count};

/// A chain takes from tens of milliseconds (config only) to an hour (builds and tests).
const READY_SECONDS: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];

metrics! {
    pub(super) struct Owners {
        /// Reconciles by kind and how they ended.
        reconciles: counters("carto_reconcile_total", &["kind", "outcome"]),
        /// Time a reconcile took.
        reconcile_seconds:
            histograms("carto_reconcile_duration_seconds", &["kind"], RECONCILE_SECONDS),
        /// Reconciles that panicked.
        panics: counter("carto_reconcile_panics_total"),
        /// Reconciles by the reason of the Ready condition they ended with.
        reasons: counters("carto_ready_reason_total", &["kind", "reason"]),
        /// Owners by what their condition Ready says; only of the replica that works.
        ready: gauges("carto_owners", &["kind", "ready", "reason"]),
        /// From a new generation of an owner, or from when it left Ready, until it is Ready.
        time_to_ready: histograms("carto_time_to_ready_seconds", &["kind"], READY_SECONDS),
    }
}

impl Metrics {
    /// A reconcile ended; times it.
    pub fn reconciled(&self, kind: &'static str, outcome: &'static str, seconds: f64) {
        let owners = &self.owners;
        owners.reconciles.with_label_values(&[kind, outcome]).inc();
        let taken = owners.reconcile_seconds.with_label_values(&[kind]);
        taken.observe(seconds);
    }

    /// Times and counts a reconcile until the guard is dropped. Unless told otherwise, it was interrupted.
    #[must_use = "it measures until it is dropped"]
    pub(crate) fn reconcile_timer(self: &Arc<Self>, kind: &'static str) -> ReconcileTimer {
        ReconcileTimer {
            metrics: self.clone(),
            kind,
            outcome: "interrupted",
            started: Instant::now(),
        }
    }

    /// A reconcile panicked.
    pub(crate) fn reconcile_panicked(&self) {
        self.owners.panics.inc();
    }

    /// A reconcile ended with this reason on the Ready condition.
    pub fn outcome(&self, kind: &'static str, reason: &str) {
        let reasons = &self.owners.reasons;
        let labels = [kind, Reason::label(reason)];
        reasons.with_label_values(&labels).inc();
    }

    /// How many owners there are, by what their conditions Ready say: status and a reason of which there are not many, such
    /// as [`Reason::label`].
    pub fn owners(
        &self,
        kind: &'static str,
        counted: &BTreeMap<(&'static str, &'static str), usize>,
    ) {
        let gauges = &self.owners.ready;
        gauges.reset();
        if !self.standing().works() {
            return;
        }
        // One of each, so that an alert on failing owners does not begin with nothing.
        for (ready, reason) in [
            (ConditionStatus::True, Reason::Ready),
            (ConditionStatus::False, Reason::Unknown),
            (ConditionStatus::Unknown, Reason::Unknown),
        ] {
            let reason = Reason::label(&reason.as_str());
            gauges.with_label_values(&[kind, ready.as_str(), reason]);
        }
        for ((ready, reason), owners) in counted {
            let gauge = gauges.with_label_values(&[kind, ready, reason]);
            gauge.set(count(*owners));
        }
    }

    /// An owner became Ready this long after its generation appeared, or after it had left Ready.
    pub(crate) fn time_to_ready(&self, kind: &'static str, seconds: f64) {
        let taken = self.owners.time_to_ready.with_label_values(&[kind]);
        taken.observe(seconds);
    }
}

/// Counts a reconcile when dropped.
pub struct ReconcileTimer {
    metrics: Arc<Metrics>,
    kind: &'static str,
    outcome: &'static str,
    started: Instant,
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
