//! What a Lease says, and what is to be done about it. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;
use tokio::time::Instant;

use super::LeaseSettings;

/// The Lease as last seen, and since when it has not changed (by our own clock: the times written in it
/// come from other machines).
pub(crate) struct Observed {
    pub(crate) lease: Lease,
    since: Instant,
}

#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum Decision {
    /// It is ours: renew it.
    Renew,
    /// It is free: take it.
    Acquire,
    /// Somebody else holds it.
    Wait,
}

impl Observed {
    /// Remembers what was read. The clock starts anew only if the holder has done something.
    pub(crate) fn update(previous: Option<Self>, lease: Lease, now: Instant) -> Self {
        let since = match previous {
            Some(previous) if previous.lease.spec == lease.spec => previous.since,
            _ => now,
        };
        Self { lease, since }
    }

    pub(crate) fn decide(&self, settings: &LeaseSettings, now: Instant) -> Decision {
        let holder = self
            .lease
            .spec
            .as_ref()
            .and_then(|spec| spec.holder_identity.as_deref())
            .unwrap_or_default();
        if holder == settings.identity {
            Decision::Renew
        } else if holder.is_empty()
            || now.saturating_duration_since(self.since) >= self.patience(settings)
        {
            Decision::Acquire
        } else {
            Decision::Wait
        }
    }

    /// What the holder promised counts, if it is longer than what we are told: it may run with other settings.
    fn patience(&self, settings: &LeaseSettings) -> Duration {
        let promised = self
            .lease
            .spec
            .as_ref()
            .and_then(|spec| spec.lease_duration_seconds)
            .unwrap_or(0);
        Duration::from_secs(u64::try_from(promised).unwrap_or(0)).max(settings.duration)
    }
}

/// A Lease that does not exist yet, held by us.
pub(crate) fn first(settings: &LeaseSettings, now: Timestamp) -> Lease {
    let metadata = ObjectMeta {
        name: Some(settings.name.clone()),
        namespace: Some(settings.namespace.clone()),
        ..ObjectMeta::default()
    };
    held(
        &Lease {
            metadata,
            ..Lease::default()
        },
        settings,
        now,
    )
}

/// The Lease, held by us. Everything that is not ours stays, resourceVersion included: if anybody was
/// faster, the API server refuses.
pub(crate) fn held(lease: &Lease, settings: &LeaseSettings, now: Timestamp) -> Lease {
    let before = lease.spec.clone().unwrap_or_default();
    let ours = before.holder_identity.as_ref() == Some(&settings.identity);
    let transitions = before.lease_transitions.unwrap_or(0);
    let spec = LeaseSpec {
        holder_identity: Some(settings.identity.clone()),
        lease_duration_seconds: Some(
            i32::try_from(settings.duration.as_secs()).unwrap_or(i32::MAX),
        ),
        renew_time: Some(MicroTime(now)),
        acquire_time: if ours {
            before.acquire_time.clone()
        } else {
            Some(MicroTime(now))
        },
        lease_transitions: Some(if ours || before.holder_identity.is_none() {
            transitions
        } else {
            transitions.saturating_add(1)
        }),
        ..before
    };
    Lease {
        metadata: lease.metadata.clone(),
        spec: Some(spec),
    }
}

/// The Lease, held by nobody.
pub(crate) fn released(lease: &Lease, now: Timestamp) -> Lease {
    let before = lease.spec.clone().unwrap_or_default();
    let spec = LeaseSpec {
        holder_identity: Some(String::new()),
        // Whoever looks without knowing that an empty holder means free waits this long.
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(now)),
        ..before
    };
    Lease {
        metadata: lease.metadata.clone(),
        spec: Some(spec),
    }
}
