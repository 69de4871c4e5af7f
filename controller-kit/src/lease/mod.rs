//! Leader election by Lease: of several replicas one works, the others wait.
//!
//! Written here and not taken from a crate, for three properties we test: a leader that cannot reach the
//! API server steps down by itself before others may take over; time is measured by the local clock
//! only, so that clocks which differ between nodes do no harm; and a handed-over Lease is taken by the
//! next replica within one retry, not after the full duration.
//!
//! ```text
//!             holder silent for `duration`, or handed over
//!   waiting ────────────────────────────────────────────────▶ leading ── hand_over() ─▶ (released)
//!      ▲                                                          │
//!      └───────────── not renewed for `renew_deadline` ◀──────────┘
//! ```

mod elector;
mod record;
#[cfg(test)]
pub(crate) mod scripted;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use thiserror::Error;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use crate::cluster::chain;
use crate::metrics::Metrics;
use crate::shutdown::Tasks;
use elector::Elector;
pub(crate) use record::{Decision, Observed, first, held, released};

/// Which Lease, who we are, and how patient.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseSettings {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Its name: one per controller.
    pub name: String,
    /// Unique identity of this replica.
    pub identity: String,
    /// How long others wait for a leader that is silent. Whole seconds.
    pub duration: Duration,
    /// How long a leader goes on without a renewal.
    pub renew_deadline: Duration,
    /// Time between renewals, and between looks.
    pub retry: Duration,
    /// How long giving it back may take when the process ends.
    pub release: Duration,
}

/// Settings that would let two replicas lead at once, or none.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LeaseSettingsError {
    /// Others would take over while the leader still works.
    #[error("the lease's renew deadline must be shorter than its duration")]
    DeadlineTooLong,
    /// One lost request would end the leadership.
    #[error("the lease must be retried at least twice within its renew deadline")]
    RetryTooLong,
    /// The API server takes whole seconds, at least one.
    #[error("the lease's duration must be between 1 second and a day")]
    Duration,
    /// Two replicas could not be told apart.
    #[error("the lease needs a name, a namespace and an identity")]
    Unnamed,
}

impl LeaseSettings {
    /// Waits until the Lease is given back at the end, no longer than `release`, and logs what came of it.
    pub(crate) async fn released_by(&self, giving_back: impl Future<Output = kube::Result<()>>) {
        match tokio::time::timeout(self.release, giving_back).await {
            Ok(Ok(())) => info!(lease = %self.name, "lease released"),
            Ok(Err(error)) => {
                warn!(lease = %self.name, error = %chain(&error), "lease not released");
            }
            Err(_) => warn!(lease = %self.name, "lease not released: no answer"),
        }
    }

    /// The usual patience: 15 s, 10 s, 2 s; and 5 s at the end.
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
            release: Duration::from_secs(5),
        }
    }

    /// Checks that no two replicas with these settings can lead at once.
    ///
    /// # Errors
    /// They could; the operator must choose other times.
    pub fn check(&self) -> Result<(), LeaseSettingsError> {
        if self.namespace.is_empty() || self.name.is_empty() || self.identity.is_empty() {
            return Err(LeaseSettingsError::Unnamed);
        }
        if self.duration < Duration::from_secs(1) || self.duration > Duration::from_hours(24) {
            return Err(LeaseSettingsError::Duration);
        }
        if self.renew_deadline >= self.duration {
            return Err(LeaseSettingsError::DeadlineTooLong);
        }
        if self.retry.is_zero() || self.retry * 2 > self.renew_deadline {
            return Err(LeaseSettingsError::RetryTooLong);
        }
        Ok(())
    }
}

/// Whether this replica works. Clones share it.
#[derive(Clone)]
pub struct Leadership {
    state: watch::Receiver<bool>,
    release: Arc<Release>,
}

/// When the last clone is dropped, the Lease is released.
struct Release(CancellationToken);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Leadership {
    /// Without election: always the leader.
    pub fn always(metrics: &Metrics) -> Self {
        metrics.leader(true);
        let (_, state) = watch::channel(true);
        Self {
            state,
            release: Arc::new(Release(CancellationToken::new())),
        }
    }

    /// Takes part in the election.
    ///
    /// The Lease is renewed until [`Self::hand_over`], also while the process is stopping: work under way
    /// must have ended before another replica begins.
    ///
    /// # Errors
    /// [`LeaseSettings::check`].
    pub fn elect(
        client: &kube::Client,
        settings: LeaseSettings,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
        metrics: Arc<Metrics>,
        tasks: &Tasks,
    ) -> Result<Self, LeaseSettingsError> {
        settings.check()?;
        let (publish, state) = watch::channel(false);
        let done = CancellationToken::new();
        let elector = Elector::new(client, settings, clock, metrics, publish);
        tasks.spawn("leader-election", elector.run(done.clone()));
        Ok(Self {
            state,
            release: Arc::new(Release(done)),
        })
    }

    /// As somebody else says; told when work has ended.
    pub(crate) fn told_by(state: watch::Receiver<bool>, ended: CancellationToken) -> Self {
        Self {
            state,
            release: Arc::new(Release(ended)),
        }
    }

    /// Whether this replica leads now.
    pub fn is_leader(&self) -> bool {
        *self.state.borrow()
    }

    /// Tells each change; the first value counts as seen.
    pub fn changes(&self) -> watch::Receiver<bool> {
        self.state.clone()
    }

    /// Waits until this replica leads, or `shutdown`. Returns whether it leads.
    pub(crate) async fn acquired(&self, shutdown: &CancellationToken) -> bool {
        let mut state = self.state.clone();
        tokio::select! {
            biased;
            () = shutdown.cancelled() => false,
            leads = state.wait_for(|leads| *leads) => leads.is_ok(),
        }
    }

    /// Releases the Lease so that another replica can go on at once. Call it when all work has ended.
    pub fn hand_over(&self) {
        self.release.0.cancel();
    }
}
