//! Renews, takes and releases the Lease.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::PostParams;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::LeaseSettings;
use super::record::{Decision, Observed, first, held, released};
use crate::cluster::chain;
use crate::metrics::Metrics;

/// How often one attempt looks again after a conflict.
const ATTEMPTS: u32 = 3;

pub(super) struct Elector {
    leases: Api<Lease>,
    settings: LeaseSettings,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    metrics: Arc<Metrics>,
    publish: watch::Sender<bool>,
    observed: Option<Observed>,
    /// When the last successful renewal was sent. `None`: not leading.
    renewed: Option<Instant>,
}

impl Elector {
    pub(super) fn new(
        client: &kube::Client,
        settings: LeaseSettings,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        metrics: Arc<Metrics>,
        publish: watch::Sender<bool>,
    ) -> Self {
        metrics.leader(false);
        let leases = Api::namespaced(client.clone(), &settings.namespace);
        Self {
            leases,
            settings,
            clock,
            metrics,
            publish,
            observed: None,
            renewed: None,
        }
    }

    pub(super) async fn run(mut self, done: CancellationToken) {
        loop {
            let next = Instant::now() + self.settings.retry;
            tokio::select! {
                biased;
                () = done.cancelled() => break,
                () = self.attempt() => {}
            }
            // Not a moment longer than the deadline, however far away the next attempt is.
            let wake = self.deadline().map_or(next, |deadline| next.min(deadline));
            tokio::select! {
                biased;
                () = done.cancelled() => break,
                () = tokio::time::sleep_until(wake) => {}
            }
        }
        self.release().await;
    }

    /// One look, and one write if it is due. A request may not outlive the leadership.
    async fn attempt(&mut self) {
        let started = Instant::now();
        let limit = self
            .deadline()
            .map_or(self.settings.renew_deadline, |deadline| {
                deadline.saturating_duration_since(started)
            });
        let leads = match tokio::time::timeout(limit, self.step()).await {
            Ok(Ok(leads)) => Some(leads),
            Ok(Err(error)) => {
                warn!(lease = %self.settings.name, error = %chain(&error), "lease not renewed");
                None
            }
            Err(_) => None,
        };
        match leads {
            Some(true) => self.renewed = Some(started),
            Some(false) => self.renewed = None,
            None => self.step_down_when_late(),
        }
        self.notify();
    }

    /// When the leadership ends unless it is renewed.
    fn deadline(&self) -> Option<Instant> {
        self.renewed
            .map(|renewed| renewed + self.settings.renew_deadline)
    }

    fn step_down_when_late(&mut self) {
        if self
            .deadline()
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.renewed = None;
        }
    }

    /// Whether the Lease is ours now.
    async fn step(&mut self) -> Result<bool, kube::Error> {
        let mut conflict = None;
        for _ in 0..ATTEMPTS {
            match self.look_and_write().await {
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    conflict = Some(kube::Error::Api(status));
                }
                outcome => return outcome,
            }
        }
        conflict.map_or(Ok(false), Err)
    }

    /// A conflict means that somebody was faster, or has touched something else in it: look again.
    async fn look_and_write(&mut self) -> Result<bool, kube::Error> {
        // A leader knows its own Lease: renewing is one request. After anything unexpected it looks.
        let known = if self.renewed.is_some() {
            self.observed.take()
        } else {
            None
        };
        let observed = match known {
            Some(observed) => observed,
            None => match self.look().await? {
                Some(observed) => observed,
                None => return self.create().await,
            },
        };
        let now = Instant::now();
        match observed.decide(&self.settings, now) {
            Decision::Wait => {
                self.observed = Some(observed);
                Ok(false)
            }
            Decision::Renew | Decision::Acquire => self.write(observed).await,
        }
    }

    async fn look(&mut self) -> Result<Option<Observed>, kube::Error> {
        let lease = self.leases.get_opt(&self.settings.name).await?;
        let previous = self.observed.take();
        Ok(lease.map(|lease| Observed::update(previous, lease, Instant::now())))
    }

    async fn create(&mut self) -> Result<bool, kube::Error> {
        let lease = first(&self.settings, (self.clock)());
        let created = self.leases.create(&PostParams::default(), &lease).await?;
        self.observed = Some(Observed::update(None, created, Instant::now()));
        Ok(true)
    }

    async fn write(&mut self, observed: Observed) -> Result<bool, kube::Error> {
        let lease = held(&observed.lease, &self.settings, (self.clock)());
        if self.renewed.is_none() {
            // If the write fails, the holder's silence goes on being measured.
            self.observed = Some(observed);
        }
        let written = self
            .leases
            .replace(&self.settings.name, &PostParams::default(), &lease)
            .await?;
        self.observed = Some(Observed::update(None, written, Instant::now()));
        Ok(true)
    }

    fn notify(&self) {
        let leads = self.renewed.is_some();
        let changed = self
            .publish
            .send_if_modified(|state| std::mem::replace(state, leads) != leads);
        if changed {
            self.metrics.leader(leads);
            self.metrics.lease_transition(leads);
            if leads {
                info!(lease = %self.settings.name, identity = %self.settings.identity, "leading");
            } else {
                warn!(lease = %self.settings.name, identity = %self.settings.identity, "not leading any more");
            }
        }
    }

    /// Gives the Lease back, if it is ours. If that fails, the others wait for its duration.
    async fn release(&mut self) {
        if self.renewed.take().is_none() {
            return;
        }
        self.notify();
        self.settings.released_by(self.give_back()).await;
    }

    async fn give_back(&self) -> Result<(), kube::Error> {
        // An attempt may have been cut short, so what we know may be old.
        while let Some(lease) = self.leases.get_opt(&self.settings.name).await? {
            let holder = lease
                .spec
                .as_ref()
                .and_then(|spec| spec.holder_identity.as_deref());
            if holder != Some(&*self.settings.identity) {
                break;
            }
            let lease = released(&lease, (self.clock)());
            let written = self
                .leases
                .replace(&self.settings.name, &PostParams::default(), &lease)
                .await;
            match written {
                // It may even be carried out only now.
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                written => return written.map(drop),
            }
        }
        Ok(())
    }
}
