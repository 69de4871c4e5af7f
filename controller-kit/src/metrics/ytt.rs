//! What is counted of ytt.

use prometheus::{Histogram, IntCounterVec, IntGauge};

use super::build::Build;

/// ytt takes some tens of milliseconds to start, and is killed after four seconds.
const YTT_SECONDS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0];

pub(super) struct Ytt {
    pub(super) runs: IntCounterVec,
    pub(super) seconds: Histogram,
    pub(super) queue_seconds: Histogram,
    pub(super) waiting: IntGauge,
}

impl Ytt {
    pub(super) fn new(build: &Build<'_>) -> Self {
        let ytt = Self {
            runs: build.counters("carto_ytt_runs_total", "ytt renderings.", &["outcome"]),
            seconds: build.histogram(
                "carto_ytt_duration_seconds",
                "Time a run of ytt took, its wait for a place aside.",
                YTT_SECONDS,
            ),
            queue_seconds: build.histogram(
                "carto_ytt_queue_seconds",
                "Time a rendering waited for a place.",
                YTT_SECONDS,
            ),
            waiting: build.gauge("carto_ytt_waiting", "Renderings that wait for a place."),
        };
        for outcome in ["cached", "rendered", "failed"] {
            ytt.runs.with_label_values(&[outcome]);
        }
        ytt
    }
}
