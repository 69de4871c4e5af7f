//! What the process counts, for Prometheus.
//!
//! One struct with a method per fact that every controller has; a controller adds its own by [`Metrics::build`].
//! `docs/metrics.md` lists them all. Labels are finite: kinds, verbs, outcomes and
//! reasons are written in the source, resources are capped. No name of an object and no error text is ever a label
//! (incident: cardinality that grows with the cluster takes the monitoring down with it).
//!
//! Of several replicas one works. The others say nothing that could be taken for work: see [`Metrics::leader`].

mod asked;
mod bounded;
mod build;
mod leadership;
mod queues;
mod requests;
mod timers;
mod watches;
mod words;
mod ytt;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use api_types::{ConditionStatus, Reason};
use parking_lot::Mutex;
use prometheus::{
    Encoder as _, Gauge, GaugeVec, Histogram, HistogramVec, IntCounter, IntCounterVec, IntGauge,
    IntGaugeVec, Registry, TextEncoder,
};
use tokio::time::Instant;

use crate::api_latency::Latency;
use crate::scheduler::QueueDepth;
pub(crate) use asked::Asked;
pub use build::Build;
use leadership::LeadershipState;
use queues::Queues;
use requests::Requests;
pub(crate) use requests::{CountRequests, Sender};
pub use timers::ReconcileTimer;
use timers::YttWait;
pub(crate) use words::TokenLookup;
pub use words::{EventOutcome, TokenOutcome, WebhookOutcome};
use ytt::Ytt;

/// Reconciles take from under a millisecond (nothing to do) to minutes (a hung server).
const RECONCILE_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];
/// A chain takes from tens of milliseconds (config only) to an hour (builds and tests).
const READY_SECONDS: &[f64] = &[
    0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];

type Hook = Box<dyn Fn(&Metrics) + Send + Sync>;

/// All counters of the process.
pub struct Metrics {
    registry: Registry,
    reconciles: IntCounterVec,
    reconcile_seconds: HistogramVec,
    reconcile_panics: IntCounter,
    reasons: IntCounterVec,
    owners: IntGaugeVec,
    queues: Queues,
    congested: IntGauge,
    status_write_seconds: GaugeVec,
    requests: Requests,
    refused: IntGaugeVec,
    stale: IntGaugeVec,
    api_requests_avoided: IntCounter,
    stamped_objects: IntGauge,
    time_to_ready: HistogramVec,
    token_requests: IntCounterVec,
    token_lookups: IntCounterVec,
    tokens: IntGauge,
    ytt: Ytt,
    events: IntCounterVec,
    webhook_requests: IntCounterVec,
    webhook_seconds: Histogram,
    certificate_expiry: Gauge,
    leader: IntGauge,
    lease_transitions: IntCounterVec,
    build_info: IntGaugeVec,
    standing: Mutex<LeadershipState>,
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
        of_the_process(&registry);
        let build = Build::new(&registry);
        let metrics = Self {
            reconciles: build.counters(
                "carto_reconcile_total",
                "Reconciles by kind and how they ended.",
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
            owners: build.gauges(
                "carto_owners",
                "Owners by what their condition Ready says; only of the replica that works.",
                &["kind", "ready", "reason"],
            ),
            queues: Queues::new(&build),
            congested: build.gauge(
                "carto_api_congested",
                "1 while requests wait for one another at the API server, judged by how long writes of our status take.",
            ),
            status_write_seconds: build.float_gauges(
                "carto_api_status_write_seconds",
                "How long a write of our status takes: `average` lately, and `best`, which congestion is judged against.",
                &["which"],
            ),
            requests: Requests::new(&build),
            refused: build.gauges(
                "carto_watch_refused",
                "1 for a stamped kind that may not be watched and is read slowly instead.",
                &["resource"],
            ),
            stale: build.gauges(
                "carto_watch_stale",
                "1 for a stamped kind that is answered with errors for so long that what was known is not believed.",
                &["resource"],
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
            token_lookups: build.counters(
                "carto_token_lookups_total",
                "Looks for a token in the cache: hit, refresh (there, and due to be replaced), miss.",
                &["outcome"],
            ),
            tokens: build.gauge("carto_tokens", "Service accounts whose tokens are held."),
            ytt: Ytt::new(&build),
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
            lease_transitions: build.counters(
                "carto_lease_transitions_total",
                "How often this process began or ceased to lead by the lease.",
                &["to"],
            ),
            build_info: build.gauges(
                "carto_build_info",
                "1; which program this is.",
                &["program", "version"],
            ),
            standing: Mutex::default(),
            hooks: Mutex::default(),
            registry,
        };
        metrics.begin_at_zero();
        metrics
    }

    /// An alert on an increase misses the first one where there was nothing before it.
    fn begin_at_zero(&self) {
        for outcome in TokenOutcome::ALL {
            self.token_requests.with_label_values(&[outcome.as_str()]);
        }
        for outcome in TokenLookup::ALL {
            self.token_lookups.with_label_values(&[outcome.as_str()]);
        }
        for outcome in EventOutcome::ALL {
            self.events.with_label_values(&[outcome.as_str()]);
        }
        for leads in [true, false] {
            self.lease_transitions.with_label_values(&[role(leads)]);
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
            outcome: "interrupted",
            started: Instant::now(),
        }
    }

    /// A reconcile panicked.
    pub(crate) fn reconcile_panicked(&self) {
        self.reconcile_panics.inc();
    }

    /// A reconcile ended with this reason on the Ready condition.
    pub fn outcome(&self, kind: &'static str, reason: &str) {
        self.reasons
            .with_label_values(&[kind, Reason::label(reason)])
            .inc();
    }

    /// How many owners there are, by what their conditions Ready say: status and [`Reason::label`].
    pub(crate) fn owners(
        &self,
        kind: &'static str,
        counted: &BTreeMap<(&'static str, &'static str), usize>,
    ) {
        self.owners.reset();
        if !self.standing().works() {
            return;
        }
        // One of each, so that an alert on failing owners does not begin with nothing.
        for ready in [
            ConditionStatus::True,
            ConditionStatus::False,
            ConditionStatus::Unknown,
        ] {
            let reason = match ready {
                ConditionStatus::True => Reason::Ready,
                ConditionStatus::False | ConditionStatus::Unknown => Reason::Unknown,
            };
            let reason = Reason::label(&reason.as_str());
            self.owners
                .with_label_values(&[kind, ready.as_str(), reason]);
        }
        for ((ready, reason), owners) in counted {
            self.owners
                .with_label_values(&[kind, ready, reason])
                .set(count(*owners));
        }
    }

    /// What a queue holds.
    pub fn queue(&self, queue: &'static str, depth: &QueueDepth) {
        self.queues.set(queue, &self.standing().seen(depth));
    }

    /// How many make way for few.
    pub(crate) fn congestion(&self, queue: &'static str, window: usize, yields: u64) {
        self.queues.congestion(queue, window, yields);
    }

    /// How long the API server takes.
    pub(crate) fn latency(&self, latency: Latency) {
        self.congested.set(i64::from(latency.is_congested));
        for (which, seconds) in [("average", latency.average), ("best", latency.best)] {
            self.status_write_seconds
                .with_label_values(&[which])
                .set(seconds);
        }
    }

    /// Whether the watch over each stamped kind is refused.
    pub(crate) fn refused(&self, kinds: &[(String, bool)]) {
        self.show(&self.refused, kinds);
    }

    /// Whether what is held of each stamped kind is not believed any more.
    pub(crate) fn stale(&self, kinds: &[(String, bool)]) {
        self.show(&self.stale, kinds);
    }

    fn show(&self, gauges: &IntGaugeVec, kinds: &[(String, bool)]) {
        gauges.reset();
        for (resource, is_so) in kinds {
            let label = self.requests.resource(resource);
            let gauge = gauges.with_label_values(&[label]);
            // Several may have one label.
            gauge.set(gauge.get().max(i64::from(*is_so)));
        }
    }

    /// Whether anything has arrived of late on an open watch of another resource than this one.
    pub fn hears_others(&self, resource: &str) -> bool {
        let requests = &self.requests;
        requests.watches.hears_others(requests.resource(resource))
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

    /// A token was looked for.
    pub(crate) fn token_lookup(&self, outcome: TokenLookup) {
        self.token_lookups
            .with_label_values(&[outcome.as_str()])
            .inc();
    }

    /// So many accounts have a token here.
    pub(crate) fn tokens(&self, accounts: usize) {
        self.tokens.set(count(accounts));
    }

    /// A rendering waits for a place until the guard is dropped.
    #[must_use = "it measures until it is dropped"]
    pub(crate) fn ytt_waits(&self) -> YttWait<'_> {
        self.ytt.waiting.inc();
        YttWait {
            metrics: self,
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

    /// Reviews of these kinds are served.
    pub(crate) fn webhook_serves(&self, kinds: impl IntoIterator<Item = &'static str>) {
        for kind in kinds {
            for outcome in WebhookOutcome::ALL {
                self.webhook_requests
                    .with_label_values(&[kind, outcome.as_str()]);
            }
        }
    }

    /// This process leads, or does not. One that stands by has owners in its store and in its queue, as it follows all
    /// watches, but none of them waits for it: it shows no owners and empty queues. What it measures of owners on their
    /// way begins with its term.
    pub fn leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
        let mut standing = self.standing.lock();
        standing.told(leads, Instant::now());
    }

    /// The lease was taken, or lost.
    pub(crate) fn lease_transition(&self, leads: bool) {
        self.lease_transitions
            .with_label_values(&[role(leads)])
            .inc();
    }

    /// Which of the times this is that this process works; none while it stands by.
    pub(crate) fn term(&self) -> Option<u64> {
        self.standing().term()
    }

    fn standing(&self) -> LeadershipState {
        *self.standing.lock()
    }

    /// Which program this is.
    pub(crate) fn program(&self, name: &str, version: &str) {
        self.build_info.with_label_values(&[name, version]).set(1);
    }

    /// Makes metrics of a controller's own, once, when it starts. Their labels are as finite as all others.
    pub fn build(&self) -> Build<'_> {
        Build::new(&self.registry)
    }

    /// Runs `hook` before each look at the metrics, to set gauges.
    pub fn before_gather(&self, hook: impl Fn(&Self) + Send + Sync + 'static) {
        self.hooks.lock().push(Box::new(hook));
    }

    /// Everything in the Prometheus text format.
    pub fn render(&self) -> Vec<u8> {
        // Held to the end: another look at the same time would find gauges that are about to be set.
        let hooks = self.hooks.lock();
        for hook in hooks.iter() {
            hook(self);
        }
        self.requests.watches.gather();
        let mut text = Vec::new();
        // Writing to memory cannot fail; a family that cannot be encoded leaves the others out, not the process.
        let _ = TextEncoder::new().encode(&self.registry.gather(), &mut text);
        drop(hooks);
        text
    }
}

/// The word for what a replica does.
fn role(leads: bool) -> &'static str {
    if leads { "leading" } else { "waiting" }
}

/// Memory, processor time, files and age, under the names that all programs use. Read from /proc when somebody looks.
#[cfg(target_os = "linux")]
fn of_the_process(registry: &Registry) {
    let process = prometheus::process_collector::ProcessCollector::for_self();
    registry
        .register(Box::new(process))
        .expect("it is the first one in its registry");
}

#[cfg(not(target_os = "linux"))]
fn of_the_process(_: &Registry) {}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
