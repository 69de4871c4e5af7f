//! What every report has in common: the conditions beside `Ready`, deletions, and the outcome itself.

use std::collections::BTreeSet;

use api_types::event::EventReason;
use api_types::{Condition, ConditionStatus, ConditionType, Reason};

use crate::conditions::{self, Conditions};
use crate::orphans::is_same;
use crate::{ObjectRef, OwnerEvent, Removal, events};

/// What is wrong beside the conditions that feed `Ready`; each is a condition only while it is so.
pub(crate) struct Extras<'e> {
    /// Deletions that failed, and why.
    pub(crate) failed: &'e [(Removal, String)],
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
        if !self.failed.is_empty() {
            let message = deletion_message(self.failed);
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

fn deletion_message(failed: &[(Removal, String)]) -> String {
    let objects: Vec<String> = failed
        .iter()
        .map(|(removal, cause)| {
            let object = events::shown(&removal.object)
                .unwrap_or_else(|| format!("{}/{}", removal.object.kind, removal.object.name));
            format!("[{object}]: {cause}")
        })
        .collect();
    format!(
        "unable to delete objects that are no longer wanted: {}",
        objects.join("; ")
    )
}

/// What was deleted; and what could not be, unless it was told before.
pub(crate) fn removal_events(
    removals: &[Removal],
    failed: &[(Removal, String)],
    was_told: &dyn Fn(&ObjectRef) -> bool,
) -> Vec<OwnerEvent> {
    let mut told = Vec::new();
    for removal in removals {
        let Some(shown) = events::shown(&removal.object) else {
            continue;
        };
        match failed
            .iter()
            .find(|(failed, _)| is_same(&failed.object, &removal.object))
        {
            None => told.push(events::removed(format!("Deleted object [{shown}]"))),
            Some((_, cause)) => {
                if !was_told(&removal.object) {
                    let message = format!("Could not delete object [{shown}]: {cause}");
                    told.push(events::of_status(EventReason::DeletionFailed, message));
                }
            }
        }
    }
    told
}
