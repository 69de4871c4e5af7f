//! Sends events: one request at a time for each namespace while the process works, several at once when it ends.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::future::join_all;
use futures::stream::FuturesUnordered;
use futures::{FutureExt as _, StreamExt as _};
use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use super::lane::Lane;
use super::pace::Pace;
use super::series::{Counted, Created, Request, Series};
use super::{EventSettings, PendingEvent};
use crate::metrics::{EventOutcome, Metrics};

/// Waits before each further try, when the API server is unreachable or overloaded.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Writer {
    client: kube::Client,
    series: Mutex<Series>,
    pace: Mutex<Pace>,
    metrics: Arc<Metrics>,
    flush: Duration,
    flush_at_once: usize,
    namespaces_at_once: usize,
}

/// An event that is being sent, and whose it is. At its end it says of which namespace.
struct UnderWay<'w> {
    owner: String,
    namespace: String,
    sending: Pin<Box<dyn Future<Output = ()> + Send + 'w>>,
}

impl Future for UnderWay<'_> {
    type Output = String;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<String> {
        ready!(self.sending.as_mut().poll(context));
        Poll::Ready(std::mem::take(&mut self.namespace))
    }
}

impl Writer {
    pub(super) fn new(
        client: kube::Client,
        settings: &EventSettings,
        metrics: Arc<Metrics>,
        now: Instant,
    ) -> Self {
        let pace = Pace::new(settings.per_second, settings.head_start, now);
        Self {
            client,
            series: Mutex::new(Series::new(settings)),
            pace: Mutex::new(pace),
            metrics,
            flush: settings.flush,
            flush_at_once: settings.flush_at_once.max(1),
            namespaces_at_once: settings.namespaces_at_once.max(1),
        }
    }

    /// Sends until `ending`; then what waits, without pacing and several at once, for a short time.
    pub(super) async fn run(self, lane: Arc<Lane>, ending: CancellationToken) {
        let under_way = self.work(&lane, &ending).await;
        let waiting = lane.close();
        let unsent = AtomicUsize::new(waiting.len() + under_way.len());
        let all = join_all(self.couriers(waiting, under_way, &unsent));
        if tokio::time::timeout(self.flush, all).await.is_ok() {
            return;
        }
        let unsent = unsent.into_inner();
        for _ in 0..unsent {
            self.metrics.event(EventOutcome::Shutdown);
        }
        warn!(
            events = unsent,
            "the process ends before these events are sent"
        );
    }

    /// Sends the events of each namespace one after the other, and those of several at once: one whose events fail, or hang,
    /// keeps no other one waiting. Returns those that are not sent yet when `ending` comes.
    async fn work<'w>(&'w self, lane: &Lane, ending: &CancellationToken) -> Vec<UnderWay<'w>> {
        let mut under_way: FuturesUnordered<UnderWay<'w>> = FuturesUnordered::new();
        let mut busy = BTreeSet::new();
        loop {
            tokio::select! {
                biased;
                () = ending.cancelled() => return under_way.into_iter().collect(),
                Some(namespace) = under_way.next() => {
                    busy.remove(&namespace);
                }
                happening = lane.next(&busy), if busy.len() < self.namespaces_at_once => {
                    busy.insert(happening.involved.namespace.clone());
                    under_way.push(self.send_off(happening));
                }
            }
        }
    }

    fn send_off(&self, happening: PendingEvent) -> UnderWay<'_> {
        UnderWay {
            owner: happening.involved.identity(),
            namespace: happening.involved.namespace.clone(),
            sending: async move { self.deliver(&happening, true).await }.boxed(),
        }
    }

    /// Each sends the events of its owners in their order; whoever is slow holds up only these.
    fn couriers<'w>(
        &'w self,
        waiting: Vec<PendingEvent>,
        under_way: Vec<UnderWay<'w>>,
        unsent: &'w AtomicUsize,
    ) -> impl Iterator<Item = impl Future<Output = ()> + Send + 'w> + 'w {
        let mut couriers: Vec<(Vec<UnderWay<'w>>, Vec<PendingEvent>)> = Vec::new();
        couriers.resize_with(self.flush_at_once, Default::default);
        let mut of_owner: HashMap<String, usize> = HashMap::new();
        for sending in under_way {
            let next = of_owner.len() % couriers.len();
            of_owner.insert(sending.owner.clone(), next);
            couriers[next].0.push(sending);
        }
        for happening in waiting {
            let next = of_owner.len() % couriers.len();
            let index = *of_owner
                .entry(happening.involved.identity())
                .or_insert(next);
            couriers[index].1.push(happening);
        }
        couriers.into_iter().map(move |(first, rest)| async move {
            for sending in first {
                sending.await;
                unsent.fetch_sub(1, Ordering::Relaxed);
            }
            for happening in rest {
                self.deliver(&happening, false).await;
                unsent.fetch_sub(1, Ordering::Relaxed);
            }
        })
    }

    async fn deliver(&self, happening: &PendingEvent, paced: bool) {
        let outcome = self.send(happening, paced).await;
        self.metrics.event(outcome);
    }

    async fn send(&self, happening: &PendingEvent, paced: bool) -> EventOutcome {
        let request = self.series.lock().admit(happening);
        if paced && request != Request::RateLimited {
            // Only what is sent takes from the pace.
            let wait = self.pace.lock().take(Instant::now());
            tokio::time::sleep(wait).await;
        }
        let begun = Instant::now();
        let outcome = match request {
            Request::RateLimited => Ok(EventOutcome::RateLimited),
            Request::Create(created) => self.create(created).await,
            Request::Count(counted) => self.count(happening, counted).await,
        };
        self.pace.lock().took(begun.elapsed());
        outcome.unwrap_or_else(|error| {
            debug!(reason = happening.reason, error = %error, "event not sent");
            EventOutcome::Failed
        })
    }

    async fn create(&self, created: Created) -> Result<EventOutcome, kube::Error> {
        let sent = self.try_create(&created).await;
        if sent.is_err() {
            self.series.lock().forget(&created.key);
        }
        sent.map(|()| EventOutcome::Created)
    }

    async fn count(
        &self,
        happening: &PendingEvent,
        counted: Counted,
    ) -> Result<EventOutcome, kube::Error> {
        match self.try_count(&counted).await {
            Ok(()) => Ok(EventOutcome::Counted),
            // Events live for an hour.
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.series.lock().forget(&counted.key);
                let again = self.series.lock().admit(happening);
                match again {
                    Request::Create(created) => self.create(created).await,
                    Request::Count(_) | Request::RateLimited => Ok(EventOutcome::RateLimited),
                }
            }
            Err(error) => Err(error),
        }
    }

    async fn try_create(&self, created: &Created) -> Result<(), kube::Error> {
        let event: Event =
            serde_json::from_value(created.event.clone()).map_err(kube::Error::SerdeError)?;
        let api = self.api(&created.namespace);
        let parameters = PostParams::default();
        with_retries(|| api.create(&parameters, &event)).await
    }

    async fn try_count(&self, counted: &Counted) -> Result<(), kube::Error> {
        let api = self.api(&counted.namespace);
        let (parameters, patch): (_, Patch<&Value>) =
            (PatchParams::default(), Patch::Merge(&counted.patch));
        with_retries(|| api.patch(&counted.name, &parameters, &patch)).await
    }

    fn api(&self, namespace: &str) -> Api<Event> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

async fn with_retries<C>(call: impl Fn() -> C) -> Result<(), kube::Error>
where
    C: Future<Output = Result<Event, kube::Error>>,
{
    for wait in RETRIES {
        match attempt(call()).await {
            Err(error) if passes_by_itself(&error) => tokio::time::sleep(wait).await,
            outcome => return outcome,
        }
    }
    attempt(call()).await
}

async fn attempt(
    call: impl Future<Output = Result<Event, kube::Error>>,
) -> Result<(), kube::Error> {
    match tokio::time::timeout(TIMEOUT, call).await {
        Ok(outcome) => outcome.map(|_| ()),
        Err(_) => Err(kube::Error::Service("no answer".into())),
    }
}

/// Unreachable or overloaded. Everything else (a namespace that is going away, no right) is final.
fn passes_by_itself(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 429 || status.code >= 500,
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}
