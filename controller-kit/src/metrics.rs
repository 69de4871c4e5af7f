//! What the process counts, for Prometheus.
//!
//! One struct with a method per fact. Labels are finite: kinds, verbs and outcomes are written in the
//! source, reasons are capped. No name of an object and no error text is ever a label
//! (incident: cardinality that grows with the cluster takes the monitoring down with it).

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::{
    Encoder as _, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter,
    IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder,
};
use tokio::time::Instant;

use crate::pulse::Pace;
use crate::scheduler::{Lane, QueueDepth};

/// Reconciles take from under a millisecond (nothing to do) to minutes (a hung server).
const RECONCILE_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
/// A chain takes from tens of milliseconds (config only) to an hour (builds and tests).
const READY_SECONDS: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];
/// Most distinct reasons counted; further ones are counted as `Other`. Reasons are an enum, but those
/// derived from a template's condition type contain a user's text.
const MAX_REASONS: usize = 64;

type Hook = Box<dyn Fn(&Metrics) + Send + Sync>;

/// How an event for `kubectl describe` ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventOutcome {
    /// Sent as a new object.
    Created,
    /// Counted up on an object sent before.
    Counted,
    /// Left out: the queue was full.
    QueueFull,
    /// Left out: its owner sends too many.
    RateLimited,
    /// The API server did not take it.
    Failed,
    /// Left out: the process ended before.
    Shutdown,
}

impl EventOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Counted => "counted",
            Self::QueueFull => "queue_full",
            Self::RateLimited => "rate_limited",
            Self::Failed => "failed",
            Self::Shutdown => "shutdown",
        }
    }
}

/// How a request for a service account's token ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenOutcome {
    /// A token was issued.
    Issued,
    /// Refused or unreachable, and no valid token is left.
    Failed,
    /// Refused or unreachable, and the token in use is still valid.
    KeptOld,
}

impl TokenOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Issued => "issued",
            Self::Failed => "failed",
            Self::KeptOld => "kept_old",
        }
    }
}

/// What the webhook said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WebhookOutcome {
    /// Admitted.
    Allowed,
    /// Denied.
    Denied,
    /// The request was no admission review.
    BadRequest,
}

impl WebhookOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied => "denied",
            Self::BadRequest => "bad_request",
        }
    }
}

/// All counters of the process.
pub struct Metrics {
    registry: Registry,
    reconciles: IntCounterVec,
    reconcile_seconds: HistogramVec,
    reconcile_panics: IntCounter,
    reasons: IntCounterVec,
    known_reasons: Mutex<HashSet<String>>,
    queue_depth: IntGaugeVec,
    queue_oldest: GaugeVec,
    queue_delayed: IntGaugeVec,
    queue_running: IntGaugeVec,
    queue_window: IntGaugeVec,
    queue_yields: IntGaugeVec,
    congested: IntGauge,
    status_write_seconds: GaugeVec,
    api_requests: IntCounterVec,
    api_requests_avoided: IntCounter,
    stamped_objects: IntGauge,
    time_to_ready: HistogramVec,
    token_requests: IntCounterVec,
    ytt_runs: IntCounterVec,
    events: IntCounterVec,
    webhook_requests: IntCounterVec,
    webhook_seconds: Histogram,
    certificate_expiry: Gauge,
    leader: IntGauge,
    resident_bytes: IntGauge,
    hooks: Mutex<Vec<Hook>>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All at zero, in a registry of its own.
    pub fn new() -> Self {
        let registry = Registry::new();
        let build = Build {
            registry: &registry,
        };
        Self {
            reconciles: build.counters(
                "carto_reconcile_total",
                "Reconciles by owner kind and outcome.",
                &["kind", "outcome"],
            ),
            reconcile_seconds: build.histograms(
                "carto_reconcile_duration_seconds",
                "Time a reconcile took.",
                &["kind"],
                RECONCILE_SECONDS,
            ),
            reconcile_panics: build
                .counter("carto_reconcile_panics_total", "Reconciles that panicked."),
            reasons: build.counters(
                "carto_ready_reason_total",
                "Reconciles by the reason of the Ready condition they ended with.",
                &["kind", "reason"],
            ),
            known_reasons: Mutex::default(),
            queue_depth: build.gauges(
                "carto_queue_depth",
                "Owners that wait for a free slot.",
                &["queue", "lane"],
            ),
            queue_oldest: build.float_gauges(
                "carto_queue_oldest_seconds",
                "How long the longest-waiting owner has waited for a slot.",
                &["queue", "lane"],
            ),
            queue_delayed: build.gauges(
                "carto_queue_delayed",
                "Owners that wait for a time (debounce, back-off).",
                &["queue"],
            ),
            queue_running: build.gauges(
                "carto_queue_running",
                "Owners being reconciled.",
                &["queue"],
            ),
            queue_window: build.gauges(
                "carto_queue_window",
                "Slots that a namespace of many owners may hold; fewer than all while the API server is congested.",
                &["queue"],
            ),
            queue_yields: build.gauges(
                "carto_queue_yields",
                "How often many owners made way for a namespace that asks for little, since the start.",
                &["queue"],
            ),
            congested: build.gauge(
                "carto_api_congested",
                "1 while requests wait for one another at the API server, judged by how long writes of our status take.",
            ),
            status_write_seconds: build.float_gauges(
                "carto_api_status_write_seconds",
                "How long a write of our status takes: `average` lately, and `best`, which congestion is judged against.",
                &["which"],
            ),
            api_requests: build.counters(
                "carto_api_requests_total",
                "Requests to the API server about stamped objects, kinds and our own status; not watches, events, tokens, leases, schemas and the webhook's certificate.",
                &["verb"],
            ),
            api_requests_avoided: build.counter(
                "carto_api_requests_avoided_total",
                "Writes left out because they would change nothing.",
            ),
            stamped_objects: build
                .gauge("carto_stamped_objects", "Stamped objects held in memory."),
            time_to_ready: build.histograms(
                "carto_time_to_ready_seconds",
                "From a new generation of an owner, or from when it left Ready, until it is Ready.",
                &["kind"],
                READY_SECONDS,
            ),
            token_requests: build.counters(
                "carto_token_requests_total",
                "Requests for service account tokens.",
                &["outcome"],
            ),
            ytt_runs: build.counters("carto_ytt_runs_total", "ytt renderings.", &["outcome"]),
            events: build.counters(
                "carto_events_total",
                "Events for kubectl describe; queue_full, rate_limited and shutdown were left out.",
                &["outcome"],
            ),
            webhook_requests: build.counters(
                "carto_webhook_requests_total",
                "Admission reviews by kind and verdict.",
                &["kind", "outcome"],
            ),
            webhook_seconds: build.histogram(
                "carto_webhook_duration_seconds",
                "Time an admission review took.",
                RECONCILE_SECONDS,
            ),
            certificate_expiry: build.float_gauge(
                "carto_webhook_certificate_expiry_timestamp_seconds",
                "When the serving certificate expires.",
            ),
            leader: build.gauge(
                "carto_leader",
                "1 while this process holds the lease, or needs none.",
            ),
            resident_bytes: build.gauge("process_resident_memory_bytes", "Resident memory."),
            hooks: Mutex::default(),
            registry,
        }
    }

    /// A reconcile ended; times it.
    pub fn reconciled(&self, kind: &'static str, outcome: &'static str, seconds: f64) {
        self.reconciles.with_label_values(&[kind, outcome]).inc();
        self.reconcile_seconds
            .with_label_values(&[kind])
            .observe(seconds);
    }

    /// Times and counts a reconcile until the guard is dropped. Unless told otherwise, it was interrupted.
    #[must_use = "it measures until it is dropped"]
    pub(crate) fn reconcile_timer(self: &Arc<Self>, kind: &'static str) -> ReconcileTimer {
        ReconcileTimer {
            metrics: self.clone(),
            kind,
            outcome: "ended",
            started: Instant::now(),
        }
    }

    /// A reconcile panicked.
    pub(crate) fn reconcile_panicked(&self) {
        self.reconcile_panics.inc();
    }

    /// A reconcile ended with this reason on the Ready condition.
    pub fn outcome(&self, kind: &'static str, reason: &str) {
        let known = {
            let mut known = self
                .known_reasons
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            known.contains(reason) || (known.len() < MAX_REASONS && known.insert(reason.to_owned()))
        };
        self.reasons
            .with_label_values(&[kind, if known { reason } else { "Other" }])
            .inc();
    }

    /// What a queue holds.
    pub fn queue(&self, queue: &'static str, depth: &QueueDepth) {
        for (index, lane) in Lane::ALL.into_iter().enumerate() {
            self.queue_depth
                .with_label_values(&[queue, lane.as_str()])
                .set(count(depth.ready[index]));
            self.queue_oldest
                .with_label_values(&[queue, lane.as_str()])
                .set(depth.oldest[index].as_secs_f64());
        }
        self.queue_delayed
            .with_label_values(&[queue])
            .set(count(depth.delayed));
        self.queue_running
            .with_label_values(&[queue])
            .set(count(depth.running));
    }

    /// How many make way for few.
    pub(crate) fn courtesy(&self, queue: &'static str, window: usize, yields: u64) {
        let queue = [queue];
        self.queue_window
            .with_label_values(&queue)
            .set(count(window));
        let yields = i64::try_from(yields).unwrap_or(i64::MAX);
        self.queue_yields.with_label_values(&queue).set(yields);
    }

    /// How long the API server takes.
    pub(crate) fn pace(&self, pace: Pace) {
        self.congested.set(i64::from(pace.is_congested));
        for (which, seconds) in [("average", pace.average), ("best", pace.best)] {
            self.status_write_seconds
                .with_label_values(&[which])
                .set(seconds);
        }
    }

    /// A request is sent.
    pub(crate) fn api_request(&self, verb: &str) {
        let verb = match verb {
            "GET" => "GET",
            "POST" => "POST",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "DELETE" => "DELETE",
            _ => "OTHER",
        };
        self.api_requests.with_label_values(&[verb]).inc();
    }

    /// A write was not sent because nothing would change.
    pub(crate) fn request_avoided(&self) {
        self.api_requests_avoided.inc();
    }

    /// So many stamped objects are held.
    pub(crate) fn stamped_objects(&self, objects: usize) {
        self.stamped_objects.set(count(objects));
    }

    /// An owner became Ready this long after its generation appeared, or after it had left Ready.
    pub(crate) fn time_to_ready(&self, kind: &'static str, seconds: f64) {
        self.time_to_ready
            .with_label_values(&[kind])
            .observe(seconds);
    }

    /// A token was requested.
    pub(crate) fn token_request(&self, outcome: TokenOutcome) {
        self.token_requests
            .with_label_values(&[outcome.as_str()])
            .inc();
    }

    /// A ytt template was rendered, or taken from the cache.
    pub(crate) fn ytt_run(&self, outcome: &'static str) {
        self.ytt_runs.with_label_values(&[outcome]).inc();
    }

    /// An event was sent or left out.
    pub fn event(&self, outcome: EventOutcome) {
        self.events.with_label_values(&[outcome.as_str()]).inc();
    }

    /// The webhook answered.
    pub fn webhook(&self, kind: &'static str, outcome: WebhookOutcome, seconds: f64) {
        self.webhook_requests
            .with_label_values(&[kind, outcome.as_str()])
            .inc();
        self.webhook_seconds.observe(seconds);
    }

    /// The serving certificate was loaded and expires at this time (seconds since 1970).
    pub(crate) fn certificate_expiry(&self, seconds: i64) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds since 1970 fit the 52 bits of a float for a long time"
        )]
        self.certificate_expiry.set(seconds as f64);
    }

    /// This process leads, or does not.
    pub fn leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Runs `hook` before each look at the metrics, to set gauges.
    pub(crate) fn before_gather(&self, hook: impl Fn(&Self) + Send + Sync + 'static) {
        self.hooks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(hook));
    }

    /// Everything in the Prometheus text format.
    pub fn render(&self) -> Vec<u8> {
        for hook in self
            .hooks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            hook(self);
        }
        if let Some(bytes) = resident_bytes() {
            self.resident_bytes.set(bytes);
        }
        let mut text = Vec::new();
        // Writing to memory cannot fail; a family that cannot be encoded leaves the others out, not the process.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        text
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

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The second number of /proc/self/statm, in pages of 4 KiB (the page size of every platform we ship for).
fn resident_bytes() -> Option<i64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: i64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// Builds and registers. Names and labels are literals in this file, so none of it can fail at run time;
/// the first test proves it for all of them.
struct Build<'a> {
    registry: &'a Registry,
}

macro_rules! register {
    ($self:ident, $metric:expr) => {{
        let metric = $metric.expect(
            "the name, help and labels are literals in this file, checked by its first test",
        );
        $self
            .registry
            .register(Box::new(metric.clone()))
            .expect("names in this file differ, checked by its first test");
        metric
    }};
}

impl Build<'_> {
    fn counter(&self, name: &str, help: &str) -> IntCounter {
        register!(self, IntCounter::new(name, help))
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> IntCounterVec {
        register!(self, IntCounterVec::new(Opts::new(name, help), labels))
    }

    fn gauge(&self, name: &str, help: &str) -> IntGauge {
        register!(self, IntGauge::new(name, help))
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> IntGaugeVec {
        register!(self, IntGaugeVec::new(Opts::new(name, help), labels))
    }

    fn float_gauge(&self, name: &str, help: &str) -> Gauge {
        register!(self, Gauge::new(name, help))
    }

    fn float_gauges(&self, name: &str, help: &str, labels: &[&str]) -> GaugeVec {
        register!(self, GaugeVec::new(Opts::new(name, help), labels))
    }

    fn histogram(&self, name: &str, help: &str, buckets: &[f64]) -> Histogram {
        register!(
            self,
            Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))
        )
    }

    fn histograms(&self, name: &str, help: &str, labels: &[&str], buckets: &[f64]) -> HistogramVec {
        register!(
            self,
            HistogramVec::new(
                HistogramOpts::new(name, help).buckets(buckets.to_vec()),
                labels
            )
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn text(metrics: &Metrics) -> String {
        String::from_utf8(metrics.render()).unwrap()
    }

    #[test]
    fn every_fact_shows_under_its_name() {
        let metrics = Arc::new(Metrics::new());
        metrics.reconciled("Workload", "ready", 0.002);
        metrics.reconcile_panicked();
        metrics.api_request("PATCH");
        metrics.request_avoided();
        metrics.stamped_objects(5);
        metrics.time_to_ready("Workload", 1.5);
        metrics.token_request(TokenOutcome::Issued);
        metrics.ytt_run("cached");
        metrics.event(EventOutcome::QueueFull);
        metrics.webhook("ClusterSupplyChain", WebhookOutcome::Denied, 0.001);
        metrics.certificate_expiry(1_800_000_000);
        metrics.leader(true);
        let text = text(&metrics);
        for line in [
            "carto_reconcile_total{kind=\"Workload\",outcome=\"ready\"} 1",
            "carto_reconcile_duration_seconds_count{kind=\"Workload\"} 1",
            "carto_reconcile_panics_total 1",
            "carto_api_requests_total{verb=\"PATCH\"} 1",
            "carto_api_requests_avoided_total 1",
            "carto_stamped_objects 5",
            "carto_time_to_ready_seconds_bucket{kind=\"Workload\",le=\"2.5\"} 1",
            "carto_token_requests_total{outcome=\"issued\"} 1",
            "carto_ytt_runs_total{outcome=\"cached\"} 1",
            "carto_events_total{outcome=\"queue_full\"} 1",
            "carto_webhook_requests_total{kind=\"ClusterSupplyChain\",outcome=\"denied\"} 1",
            "carto_webhook_certificate_expiry_timestamp_seconds 1800000000",
            "carto_leader 1",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "missing {line} in\n{text}"
            );
        }
    }

    #[test]
    fn gauges_are_set_when_somebody_looks() {
        let metrics = Metrics::new();
        metrics.before_gather(|metrics| {
            let oldest = [Duration::from_secs(2), Duration::ZERO, Duration::ZERO];
            metrics.queue(
                "owners",
                &QueueDepth {
                    ready: [3, 1, 0],
                    oldest,
                    delayed: 4,
                    running: 2,
                },
            );
        });
        let text = text(&metrics);
        assert!(text.contains("carto_queue_depth{lane=\"progress\",queue=\"owners\"} 3"));
        assert!(text.contains("carto_queue_oldest_seconds{lane=\"progress\",queue=\"owners\"} 2"));
        assert!(text.contains("carto_queue_delayed{queue=\"owners\"} 4"));
        assert!(text.contains("process_resident_memory_bytes"));
    }

    #[test]
    fn users_cannot_make_labels_without_bound() {
        let metrics = Metrics::new();
        for index in 0..1000 {
            metrics.outcome("Workload", &format!("Reason{index}"));
            metrics.api_request(&format!("VERB{index}"));
        }
        let text = text(&metrics);
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with("carto_ready_reason_total{"))
                .count(),
            MAX_REASONS + 1
        );
        assert!(text.contains("carto_ready_reason_total{kind=\"Workload\",reason=\"Other\"} 936"));
        assert!(text.contains("carto_api_requests_total{verb=\"OTHER\"} 1000"));
    }

    #[test]
    fn a_timer_counts_even_when_the_reconcile_panics() {
        let metrics = Arc::new(Metrics::new());
        let counted = metrics.clone();
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            let _timer = counted.reconcile_timer("Workload");
            panic!("poisoned");
        }));
        metrics.reconcile_timer("Workload").outcome("ready");
        let text = text(&metrics);
        assert!(text.contains("carto_reconcile_total{kind=\"Workload\",outcome=\"panicked\"} 1"));
        assert!(text.contains("carto_reconcile_total{kind=\"Workload\",outcome=\"ready\"} 1"));
    }
}
