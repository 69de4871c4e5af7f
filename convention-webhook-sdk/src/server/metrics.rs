//! Metrics.

use std::time::Duration;

use prometheus::{
    Encoder as _, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, Opts, Registry,
    TextEncoder,
};

/// Seconds of an answer; the controller waits 30.
const SECONDS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 30.0];

/// What is counted. The labels are paths of conventions and words of this crate, so they are few.
pub(super) struct Metrics {
    registry: Registry,
    requests: IntCounterVec,
    seconds: HistogramVec,
    connections: IntGauge,
    bodies: IntGauge,
    key_pairs: IntCounterVec,
    not_recorded: IntCounter,
}

macro_rules! registered {
    ($registry:ident, $metric:expr) => {{
        let metric = $metric.expect("name, help and labels are literals, checked by a test");
        $registry
            .register(Box::new(metric.clone()))
            .expect("names of metrics differ, checked by a test");
        metric
    }};
}

impl Metrics {
    pub(super) fn new() -> Self {
        let registry = Registry::new();
        let requests = Opts::new(
            "carto_convention_requests_total",
            "Requests by path of the convention and outcome.",
        );
        let seconds = HistogramOpts::new(
            "carto_convention_request_seconds",
            "Seconds from the head of a request to its answer.",
        );
        let key_pairs = Opts::new(
            "carto_convention_key_pairs_total",
            "Changed key pairs, by whether they could be loaded.",
        );
        Self {
            requests: registered!(registry, IntCounterVec::new(requests, &["path", "outcome"])),
            seconds: registered!(
                registry,
                HistogramVec::new(seconds.buckets(SECONDS.to_vec()), &["path"])
            ),
            connections: registered!(
                registry,
                IntGauge::new("carto_convention_connections", "Open connections.")
            ),
            bodies: registered!(
                registry,
                IntGauge::new(
                    "carto_convention_body_bytes",
                    "Room that bodies of over 64 KiB, or with thousands of values, take until they are answered."
                )
            ),
            key_pairs: registered!(registry, IntCounterVec::new(key_pairs, &["outcome"])),
            not_recorded: registered!(
                registry,
                IntCounter::new(
                    "carto_convention_not_recorded_total",
                    "Exchanges that were to be recorded and could not be."
                )
            ),
            registry,
        }
    }

    /// A request at a path was answered.
    pub(super) fn answered(&self, path: &str, outcome: &str, took: Duration) {
        self.requests.with_label_values(&[path, outcome]).inc();
        let seconds = self.seconds.with_label_values(&[path]);
        seconds.observe(took.as_secs_f64());
    }

    /// Room that bodies take.
    pub(super) fn bodies(&self) -> IntGauge {
        self.bodies.clone()
    }

    /// Counts a connection until the guard is dropped.
    pub(super) fn connection(&self) -> impl Drop + use<> {
        struct Open(IntGauge);
        impl Drop for Open {
            fn drop(&mut self) {
                self.0.dec();
            }
        }
        self.connections.inc();
        Open(self.connections.clone())
    }

    pub(super) fn key_pair(&self, is_loaded: bool) {
        let outcome = if is_loaded { "loaded" } else { "refused" };
        self.key_pairs.with_label_values(&[outcome]).inc();
    }

    pub(super) fn not_recorded(&self) {
        self.not_recorded.inc();
    }

    /// As Prometheus reads it.
    pub(super) fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // Into memory; an error would be one of the names, which a test makes.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_can_be_made_and_is_told() {
        let metrics = Metrics::new();
        metrics.answered("/", "applied", Duration::from_millis(3));
        metrics.key_pair(true);
        metrics.not_recorded();
        let open = metrics.connection();
        let text = || String::from_utf8(metrics.text()).unwrap();
        for line in [
            "carto_convention_requests_total{outcome=\"applied\",path=\"/\"} 1",
            "carto_convention_request_seconds_count{path=\"/\"} 1",
            "carto_convention_connections 1",
            "carto_convention_key_pairs_total{outcome=\"loaded\"} 1",
            "carto_convention_not_recorded_total 1",
        ] {
            assert!(text().contains(line), "{line} is not in {}", text());
        }
        drop(open);
        assert!(text().contains("carto_convention_connections 0"));
    }
}
