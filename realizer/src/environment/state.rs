//! What a walk learns about environments, step by step.
//!
//! [`EnvironmentState`] is one environment as the walk found it. [`Arrivals`] go along the steps behind it: which revision
//! a deployment or a validation is about is known before its output is. The two differ where an update waits: what comes
//! in is not what is deployed, and validations go on with the latter.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use crate::Template;
use crate::environment::{Incoming, Record};
use crate::template::time_limit;

/// The arrivals that a deployment or validation step is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals {
    /// The arrivals that are validated, by index of the environment's step: those reached through no other environment.
    pub(crate) nearest: BTreeMap<usize, Record>,
    /// All arrivals whose revision this is, by index of the environment's step.
    pub(crate) lineage: BTreeMap<usize, Record>,
}

/// What a walk found in an environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct EnvironmentState {
    /// What is in it; none when that cannot be said.
    pub(crate) record: Option<Record>,
    /// What comes next, to be announced: at once if it is not kept, otherwise once it is free.
    pub(crate) next: Option<Record>,
    /// What waits for it.
    pub(crate) waiting: Option<Incoming>,
    /// Whether it is kept, as opposed to: the write did not take place for another reason.
    pub(crate) held: bool,
    /// Whether status calls it free of what is in it.
    pub(crate) is_free: bool,
    /// Whether the deployment failed.
    pub(crate) failed: bool,
    /// Digest of what its object says of itself, if somebody else wrote that.
    pub(crate) disregarded: Option<String>,
}

impl EnvironmentState {
    /// It is kept as it is. What comes in waits, and `next` is to be announced.
    pub(crate) fn holding(waiting: Incoming, next: Record, is_free: bool) -> Self {
        Self {
            next: Some(next),
            waiting: Some(waiting),
            held: true,
            is_free,
            ..Self::default()
        }
    }

    /// Nothing in it has to be kept, and `next` is to be announced.
    pub(crate) fn announcing(next: Record, disregarded: Option<String>) -> Self {
        Self {
            next: Some(next),
            disregarded,
            ..Self::default()
        }
    }

    /// Nothing but that somebody else wrote what its object says of itself.
    pub(crate) fn disregarding(digest: String) -> Self {
        Self {
            disregarded: Some(digest),
            ..Self::default()
        }
    }
}

/// How much longer the environment is kept for a validation; `None` for ever.
pub(crate) fn time_left(template: &Template, record: &Record, now: &Timestamp) -> Option<Duration> {
    let limit = template.judgement()?.limit?;
    Some(time_limit::left(limit, &record.since, *now))
}
