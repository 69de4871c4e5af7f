//! Events for `kubectl describe`: best effort, bounded, never in the way.
//!
//! ```text
//! record() ─▶ bounded lane ─▶ series (count up, rate limit; pure) ─▶ pace ─▶ POST or PATCH, one at a time for a namespace
//!   never waits, drops when full; namespaces take turns; what would wait for long joins what is like it
//! ```
//!
//! When the process ends, what waits leaves at once: nothing else is asked of the API server then, and nobody else will tell it.
//!
//! Events must not cost the owners anything: they have a lane of their own with little concurrency, and
//! what does not fit is dropped and counted. Nor must a crowd of owners cost those of other namespaces
//! their events, or make us forget which of them were sent. Owners are spread over the writers by uid, so that the order within an owner stays.

mod lane;
mod memory;
mod pace;
mod series;
#[cfg(test)]
mod tests;
mod writer;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::reflect::Watched;
use crate::shutdown::Tasks;
use lane::{Alike, Lane, Turns};
use writer::Writer;

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct InvolvedObject {
    /// apiVersion.
    pub api_version: String,
    /// Kind; also the event's `source.component`, unless somebody else is named.
    pub kind: String,
    /// Namespace; empty for cluster-scoped objects, whose events are in `default`.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// uid.
    pub uid: String,
}

impl InvolvedObject {
    /// An object of this kind; `namespace` is empty for a cluster-scoped one.
    pub fn of(kind: Watched, namespace: &str, name: &str, uid: &str) -> Self {
        Self {
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
        }
    }

    /// By what it is told from all others. A uid is not enough: a pod has none while it is admitted,
    /// and whoever writes an owner reference may write the uid of an object of another namespace.
    pub(crate) fn identity(&self) -> String {
        let Self {
            api_version: _,
            kind,
            namespace,
            name,
            uid,
        } = self;
        format!("{uid} {kind} {namespace}/{name}")
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PendingEvent {
    pub(crate) involved: InvolvedObject,
    /// Who tells of it, if that is not the kind that it is about.
    pub(crate) component: Option<String>,
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// When it happened first.
    pub(crate) since: Timestamp,
    /// And last.
    pub(crate) at: Timestamp,
    /// How often one sentence of the message happened, at the most.
    pub(crate) count: i32,
}

/// Between the sentences of those that are told in one event.
const BETWEEN: &str = "; ";
/// The longest message that sentences are joined in; what is longer is told by itself. As long as the notes of
/// `events.k8s.io/v1` may be.
const JOINED_BYTES: usize = 1024;

/// Good news of an owner are told together by their reason. A Warning stands for itself: somebody looks for its text.
impl Alike for PendingEvent {
    fn likeness(&self) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        (self.involved.identity(), &self.reason).hash(&mut hasher);
        (!self.warning).then(|| hasher.finish())
    }

    fn take_in(&mut self, later: Self) -> Result<(), Self> {
        let is_alike = (&self.involved, &self.component) == (&later.involved, &later.component)
            && (self.warning, &self.reason) == (later.warning, &later.reason);
        let is_said = self
            .message
            .split(BETWEEN)
            .any(|said| said == later.message);
        let bytes = self.message.len() + BETWEEN.len() + later.message.len();
        if self.warning || !is_alike || (!is_said && bytes > JOINED_BYTES) {
            return Err(later);
        }
        if is_said {
            self.count = self.count.saturating_add(later.count);
        } else {
            self.message.push_str(BETWEEN);
            self.message.push_str(&later.message);
        }
        self.at = self.at.max(later.at);
        Ok(())
    }
}

/// How much is sent.
#[derive(Debug, Clone)]
pub struct EventSettings {
    /// Those that send; each has a queue of its own.
    pub writers: usize,
    /// Requests of a writer under way at once, each for another namespace.
    pub namespaces_at_once: usize,
    /// Events waiting per writer; further ones are dropped, or take the place of one of a namespace that has more.
    pub queue: usize,
    /// Events of one namespace waiting per writer; further ones are dropped.
    pub queue_per_namespace: usize,
    /// Where more events than this go before one that is no Warning, it is told together with one of its owner and reason that
    /// waits already.
    pub join_beyond: usize,
    /// The same event within this time is counted up instead of sent anew.
    pub window: Duration,
    /// Events of each type, Normal and Warning, that an owner may send at once.
    pub burst: u32,
    /// Time in which an owner gains one more.
    pub refill: Duration,
    /// Requests per second and writer once `head_start` is used up.
    pub per_second: u32,
    /// Requests that a writer may send at once after a rest.
    pub head_start: u32,
    /// When nothing is under way any more at shutdown, how long what waits is still sent.
    pub flush: Duration,
    /// Requests of a writer under way at once then.
    pub flush_at_once: usize,
}

impl Default for EventSettings {
    fn default() -> Self {
        Self {
            writers: 1,
            namespaces_at_once: 4,
            queue: 8192,
            queue_per_namespace: 4096,
            // A second at the pace below: what leaves sooner is told as it is.
            join_beyond: 50,
            window: Duration::from_mins(10),
            burst: 25,
            refill: Duration::from_mins(5),
            per_second: 50,
            head_start: 100,
            // A full queue leaves in this time where a request takes 9 ms; the process leaves more.
            flush: Duration::from_secs(5),
            flush_at_once: 16,
        }
    }
}

/// Takes events. Clones share the lanes.
#[derive(Clone)]
pub struct EventRecorder {
    lanes: Arc<[Arc<Lane>]>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    metrics: Arc<Metrics>,
}

impl EventRecorder {
    /// Starts the writers; they send with `client`'s identity until the tasks are joined: what is under way when a signal
    /// comes ends first, and its events are those of objects that nobody creates again.
    pub fn start(
        client: &kube::Client,
        settings: &EventSettings,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        metrics: Arc<Metrics>,
        tasks: &Tasks,
    ) -> Self {
        let lanes = (0..settings.writers.max(1)).map(|_| {
            let turns = Turns::new(settings.queue, settings.queue_per_namespace);
            let lane = Arc::new(Lane::new(turns, settings.join_beyond));
            let writer = Writer::new(client.clone(), settings, metrics.clone(), Instant::now());
            tasks.spawn("events", writer.run(lane.clone(), tasks.ending().clone()));
            lane
        });
        Self {
            lanes: lanes.collect(),
            clock,
            metrics,
        }
    }

    /// Takes note of an event and returns at once. `warning` makes its type `Warning`, else it is `Normal`.
    pub fn record(&self, involved: InvolvedObject, warning: bool, reason: &str, message: &str) {
        self.take(involved, None, warning, reason, message);
    }

    /// A Warning that this component tells, as people see it behind `From`.
    pub fn record_warning_of(
        &self,
        component: &str,
        involved: InvolvedObject,
        reason: &str,
        message: &str,
    ) {
        let component = Some(component.to_owned());
        self.take(involved, component, true, reason, message);
    }

    fn take(
        &self,
        involved: InvolvedObject,
        component: Option<String>,
        warning: bool,
        reason: &str,
        message: &str,
    ) {
        let at = (self.clock)();
        let happening = PendingEvent {
            component,
            warning,
            reason: reason.to_owned(),
            message: message.to_owned(),
            since: at,
            at,
            count: 1,
            involved,
        };
        if let Some(why) = self.lane_of(&happening.involved).push(happening) {
            self.metrics.event(why);
        }
    }

    fn lane_of(&self, involved: &InvolvedObject) -> &Lane {
        let mut hasher = DefaultHasher::new();
        involved.identity().hash(&mut hasher);
        let writers = u64::try_from(self.lanes.len()).unwrap_or(1).max(1);
        let index = usize::try_from(hasher.finish() % writers).unwrap_or(0);
        &self.lanes[index]
    }
}
