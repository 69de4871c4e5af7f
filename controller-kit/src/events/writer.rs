//! Sends events, one request at a time.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::Happening;
use super::lane::Lane;
use super::pace::Pace;
use super::series::{Counted, Created, Request, Series};
use crate::metrics::{EventOutcome, Metrics};

/// Waits before each further try, when the API server is unreachable or overloaded.
const RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct Writer {
    client: kube::Client,
    series: Series,
    pace: Pace,
    metrics: Arc<Metrics>,
    flush: Duration,
}

impl Writer {
    pub(super) fn new(
        client: kube::Client,
        series: Series,
        pace: Pace,
        metrics: Arc<Metrics>,
        flush: Duration,
    ) -> Self {
        Self {
            client,
            series,
            pace,
            metrics,
            flush,
        }
    }

    /// Sends until `shutdown`; then what already waits, for a short time.
    pub(super) async fn run(mut self, lane: Arc<Lane>, shutdown: CancellationToken) {
        let flush = self.flush;
        let deadline = async {
            shutdown.cancelled().await;
            tokio::time::sleep(flush).await;
        };
        tokio::select! {
            biased;
            () = self.drain(&lane, &shutdown) => {}
            () = deadline => {}
        }
        for _ in 0..lane.close() {
            self.metrics.event(EventOutcome::Failed);
        }
    }

    /// Ends when the lane is empty after shutdown.
    async fn drain(&mut self, lane: &Lane, shutdown: &CancellationToken) {
        loop {
            let happening = tokio::select! {
                biased;
                happening = lane.next() => happening,
                () = shutdown.cancelled() => return,
            };
            let outcome = self.send(&happening).await;
            self.metrics.event(outcome);
        }
    }

    async fn send(&mut self, happening: &Happening) -> EventOutcome {
        let outcome = match self.series.admit(happening) {
            Request::RateLimited => return EventOutcome::RateLimited,
            Request::Create(created) => {
                self.turn().await;
                self.create(created).await
            }
            Request::Count(counted) => {
                self.turn().await;
                self.count(happening, counted).await
            }
        };
        outcome.unwrap_or_else(|error| {
            debug!(reason = happening.reason, error = %error, "event not sent");
            EventOutcome::Failed
        })
    }

    /// Only what is sent takes from the pace.
    async fn turn(&mut self) {
        tokio::time::sleep(self.pace.take(Instant::now())).await;
    }

    async fn create(&mut self, created: Created) -> Result<EventOutcome, kube::Error> {
        let sent = self.try_create(&created).await;
        if sent.is_err() {
            self.series.forget(&created.key);
        }
        sent.map(|()| EventOutcome::Created)
    }

    async fn count(
        &mut self,
        happening: &Happening,
        counted: Counted,
    ) -> Result<EventOutcome, kube::Error> {
        match self.try_count(&counted).await {
            Ok(()) => Ok(EventOutcome::Counted),
            // Events live for an hour.
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                self.series.forget(&counted.key);
                match self.series.admit(happening) {
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
