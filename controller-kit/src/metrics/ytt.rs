//! What is counted of ytt.

use tokio::time::Instant;

use super::Metrics;
use super::define::metrics;

/// ytt takes some tens of milliseconds to start, and is killed after four seconds.
const YTT_SECONDS: &[f64] = &[0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 30.0];

metrics! {
    pub(super) struct Ytt {
        /// ytt renderings.
        runs: counters_from_zero("carto_ytt_runs_total", "outcome", ["cached", "rendered", "failed"]),
        /// Time a run of ytt took, its wait for a place aside.
        seconds: histogram("carto_ytt_duration_seconds", YTT_SECONDS),
        /// Time a rendering waited for a place.
        queue_seconds: histogram("carto_ytt_queue_seconds", YTT_SECONDS),
        /// Renderings that wait for a place.
        waiting: gauge("carto_ytt_waiting"),
    }
}

impl Metrics {
    /// A rendering waits for a place until the guard is dropped.
    #[must_use = "it measures until it is dropped"]
    pub(crate) fn ytt_waits(&self) -> YttWait<'_> {
        self.ytt.waiting.inc();
        YttWait {
            ytt: &self.ytt,
            since: Instant::now(),
        }
    }

    /// ytt ran.
    pub(crate) fn ytt_ran(&self, seconds: f64) {
        self.ytt.seconds.observe(seconds);
    }

    /// A ytt template was rendered, or taken from the cache.
    pub(crate) fn ytt_run(&self, outcome: &'static str) {
        self.ytt.runs.with_label_values(&[outcome]).inc();
    }
}

/// A rendering that waits for a place.
pub(crate) struct YttWait<'m> {
    ytt: &'m Ytt,
    since: Instant,
}

impl Drop for YttWait<'_> {
    fn drop(&mut self) {
        self.ytt.waiting.dec();
        let waited = self.since.elapsed().as_secs_f64();
        self.ytt.queue_seconds.observe(waited);
    }
}
