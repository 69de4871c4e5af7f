//! What this controller counts beside what all do (docs/metrics.md).

use std::time::Duration;

use controller_kit::metrics::{Bounded, Build};
use image_registry::{CacheKind, Observe, Outcome};
use prometheus::{HistogramVec, IntCounterVec};

/// The most conventions, and the most registries, that are told apart.
const MOST: usize = 100;

/// From a cached answer to the longest call.
const CALL_SECONDS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Calls of webhooks, and what is asked of registries.
pub(crate) struct ConventionMetrics {
    calls: IntCounterVec,
    call_seconds: HistogramVec,
    conventions: Bounded,
    registry_requests: IntCounterVec,
    registries: Bounded,
    lookups: IntCounterVec,
}

impl ConventionMetrics {
    pub(crate) fn new(build: &Build<'_>) -> Self {
        Self {
            calls: build.counters(
                "carto_convention_calls_total",
                "Calls of webhooks by convention and how they ended.",
                &["convention", "outcome"],
            ),
            call_seconds: build.histograms(
                "carto_convention_call_duration_seconds",
                "Time a call of a webhook took.",
                &["convention"],
                CALL_SECONDS,
            ),
            conventions: Bounded::new(MOST),
            registry_requests: build.counters(
                "carto_registry_requests_total",
                "Requests to registries by host and how they ended.",
                &["registry", "outcome"],
            ),
            registries: Bounded::new(MOST),
            lookups: build.counters(
                "carto_image_cache_lookups_total",
                "Looks into the caches of what is known about images.",
                &["cache", "outcome"],
            ),
        }
    }

    /// A webhook was called, and it took this long.
    pub(crate) fn called(&self, convention: &str, took: Duration, is_good: bool) {
        let convention = self.conventions.label(convention);
        let outcome = if is_good { "answered" } else { "failed" };
        self.calls.with_label_values(&[convention, outcome]).inc();
        let seconds = self.call_seconds.with_label_values(&[convention]);
        seconds.observe(took.as_secs_f64());
    }
}

impl Observe for ConventionMetrics {
    fn request(&self, host: &str, outcome: Outcome) {
        let registry = self.registries.label(host);
        let requests = &self.registry_requests;
        requests
            .with_label_values(&[registry, outcome.label()])
            .inc();
    }

    fn looked_up(&self, cache: CacheKind, found: bool) {
        let outcome = if found { "hit" } else { "miss" };
        let lookups = &self.lookups;
        lookups.with_label_values(&[cache.label(), outcome]).inc();
    }
}
