//! What the process counts, for Prometheus.
//!
//! One struct with a method per fact that every controller has, a file per subject; a controller adds its own by
//! [`Metrics::build`]. `docs/metrics.md` lists them all. Labels are finite: kinds, verbs, outcomes and
//! reasons are written in the source, resources are capped. No name of an object and no error text is ever a label
//! (incident: cardinality that grows with the cluster takes the monitoring down with it).
//!
//! Of several replicas one works. The others say nothing that could be taken for work: see [`Metrics::leader`].

mod asked;
mod bounded;
mod build;
mod define;
mod events;
mod leadership;
mod owners;
mod queues;
mod requests;
mod stamped;
mod tokens;
mod watches;
mod webhook;
mod ytt;

use std::fmt;

use parking_lot::Mutex;
use prometheus::{Encoder as _, Registry, TextEncoder};

pub(crate) use asked::Asked;
pub use bounded::Bounded;
pub use build::Build;
pub use events::EventOutcome;
use events::Events;
use leadership::{LeadershipState, Replica};
use owners::Owners;
pub use owners::ReconcileTimer;
use queues::Queues;
use requests::Requests;
pub(crate) use requests::{CountRequests, Sender};
use stamped::StampedKinds;
pub(crate) use tokens::TokenLookup;
pub use tokens::TokenOutcome;
use tokens::Tokens;
use webhook::Webhook;
pub use webhook::WebhookOutcome;
use ytt::Ytt;

/// Reconciles take from under a millisecond (nothing to do) to minutes (a hung server).
const RECONCILE_SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

type Hook = Box<dyn Fn(&Metrics) + Send + Sync>;

/// All counters of the process.
pub struct Metrics {
    registry: Registry,
    owners: Owners,
    queues: Queues,
    requests: Requests,
    stamped: StampedKinds,
    tokens: Tokens,
    ytt: Ytt,
    events: Events,
    webhook: Webhook,
    replica: Replica,
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
        Self {
            owners: Owners::new(&build),
            queues: Queues::new(&build),
            requests: Requests::new(&build),
            stamped: StampedKinds::new(&build),
            tokens: Tokens::new(&build),
            ytt: Ytt::new(&build),
            events: Events::new(&build),
            webhook: Webhook::new(&build),
            replica: Replica::new(&build),
            standing: Mutex::default(),
            hooks: Mutex::default(),
            registry,
        }
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

fn count(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
