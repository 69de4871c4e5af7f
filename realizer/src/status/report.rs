//! What every report has in common: the conditions beside `Ready`, deletions, and the outcome itself.

use std::collections::BTreeSet;

use api_types::event::EventReason;
use api_types::{Condition, ConditionStatus, ConditionType, Reason};

use crate::owner::owner_status::OwnerStatus;
use crate::status::conditions::{self, Conditions};
use crate::status::events;
use crate::values::redaction::Taint;
use crate::{
    Ended, FailedRemoval, ObjectRef, Outcome, Owner, OwnerEvent, Removal, Retry, SubmitFailure,
    SubmitFailureKind,
};

/// An object that is no longer wanted and is not deleted yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) removal: Removal,
    pub(crate) why: String,
}

/// What is wrong beside the conditions that feed `Ready`; each is a condition only while it is so.
pub(crate) struct Extras<'e> {
    /// Deletions that failed, and why.
    pub(crate) failed: &'e [FailedRemoval],
    /// Deletions that have to wait.
    pub(crate) kept: &'e [Kept],
    /// Objects that belong to somebody else.
    pub(crate) contested: Vec<String>,
    /// What is missing to watch some kinds.
    pub(crate) unwatched: &'e BTreeSet<String>,
}

impl Extras<'_> {
    /// Adds the conditions, which come after `Ready`.
    pub(crate) fn add(&self, conditions: &mut Conditions<'_>) {
        let mut add = |type_, reason: &Reason, message: String| {
            conditions.add(type_, ConditionStatus::True, reason, message);
        };
        if !self.failed.is_empty() || !self.kept.is_empty() {
            let message = deletion_message(self.failed, self.kept);
            add(
                ConditionType::DeletionPending,
                &Reason::DeletionPending,
                message,
            );
        }
        if !self.contested.is_empty() {
            let message = self.contested.join("; ");
            add(
                ConditionType::ObjectContested,
                &Reason::ObjectContested,
                message,
            );
        }
        if !self.unwatched.is_empty() {
            let texts: Vec<&str> = self.unwatched.iter().map(String::as_str).collect();
            let message = texts.join("; ");
            add(
                ConditionType::WatchForbidden,
                &Reason::WatchForbidden,
                message,
            );
        }
    }
}

/// Told when it is new, not with each of the slow reads.
pub(crate) fn unwatched_event(
    previous: &[Condition],
    conditions: &[Condition],
) -> Option<OwnerEvent> {
    let message = |conditions| {
        conditions::of_type(conditions, ConditionType::WatchForbidden)
            .map(|condition: &Condition| condition.message.clone())
    };
    let now = message(conditions)?;
    (message(previous).as_ref() != Some(&now))
        .then(|| events::of_status(EventReason::WatchForbidden, now))
}

/// Status and reason of `Ready`, for the outcome.
pub(crate) fn ready(conditions: &[Condition]) -> (ConditionStatus, String) {
    match conditions::of_type(conditions, ConditionType::Ready) {
        Some(ready) => (ready.status, ready.reason.clone()),
        None => (ConditionStatus::Unknown, String::new()),
    }
}

fn deletion_message(failed: &[FailedRemoval], kept: &[Kept]) -> String {
    let shown = |object: &ObjectRef| {
        events::shown(object).unwrap_or_else(|| format!("{}/{}", object.kind, object.name))
    };
    let failed: Vec<String> = failed
        .iter()
        .map(|(removal, why)| format!("[{}]: {}", shown(&removal.object), why.message))
        .collect();
    let failed = (!failed.is_empty()).then(|| {
        format!(
            "unable to delete objects that are no longer wanted: {}",
            failed.join("; ")
        )
    });
    // All are kept for the same reason.
    let waiting = kept.first().map(|first| {
        let objects: Vec<String> = kept
            .iter()
            .map(|kept| format!("[{}]", shown(&kept.removal.object)))
            .collect();
        format!(
            "objects that are no longer wanted are not deleted yet: {}: {}",
            objects.join(", "),
            first.why
        )
    });
    let parts: Vec<String> = failed.into_iter().chain(waiting).collect();
    parts.join("; ")
}

/// Why deletions failed, without what came from Secrets.
pub(crate) fn scrubbed(failed: &[FailedRemoval], taint: &Taint) -> Vec<FailedRemoval> {
    let scrubbed = |(removal, failure): &FailedRemoval| {
        let message = taint.scrub(failure.message.as_str());
        let kind = failure.kind;
        (removal.clone(), SubmitFailure { kind, message })
    };
    failed.iter().map(scrubbed).collect()
}

/// What was deleted; and what could not be, unless that was told before for this reason, or passes by itself: what waited for
/// another reason, as while the API server was asked too much, has warned nobody. Of what was `absent` already, or going,
/// nothing.
pub(crate) fn removal_events(
    removals: &[Removal],
    failed: &[FailedRemoval],
    absent: &[Removal],
    was_told: &dyn Fn(&ObjectRef, &str) -> bool,
) -> Vec<OwnerEvent> {
    let mut events = Vec::new();
    for removal in removals.iter().filter(|removal| !absent.contains(removal)) {
        let Some(shown) = events::shown(&removal.object) else {
            continue;
        };
        match failed
            .iter()
            .find(|(failed, _)| failed.object.is_same(&removal.object))
        {
            None => events.push(events::removed(format!("Deleted object [{shown}]"))),
            Some((_, why)) => {
                let passes = why.kind == SubmitFailureKind::Unavailable;
                if !passes && !was_told(&removal.object, &why.message) {
                    let message = format!("Could not delete object [{shown}]: {}", why.message);
                    events.push(events::of_status(EventReason::DeletionFailed, message));
                }
            }
        }
    }
    events
}

/// Compares the new status with the present one and puts everything together.
pub(crate) fn outcome(
    owner: &Owner,
    status: &OwnerStatus,
    events: Vec<OwnerEvent>,
    removals: Vec<Removal>,
    retry: Retry,
) -> Outcome {
    let (ready, reason) = ready(&status.conditions);
    Outcome {
        changed: *status != owner.status,
        ready,
        reason,
        status: status.write(owner.family),
        events,
        removals,
        retry,
        again: None,
        write_now: false,
        unless_changed: None,
        obsolete_artifacts: Vec::new(),
        tells_all: false,
        end: Ended::of([], ready),
    }
}
