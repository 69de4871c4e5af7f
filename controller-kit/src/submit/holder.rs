//! Whose an object is that stands where a step wants its own.
//!
//! An apply is forced, and brings an owner reference by which the garbage collector deletes the object with the owner. So
//! what somebody else made is written only if somebody who may decide that says so: on the object, or in the template.

use api_types::{LabelValue, labels};
use realizer::Submission;
use submission::address;

use super::Applicant;
use crate::stamped::{ControllerRef, Stamped};

/// Whether an object may be written.
pub(super) enum Holder {
    /// It was made for this owner.
    Ours,
    /// Somebody else made it, and it may be taken over.
    Adoptable,
    /// It is not written; the text says to whom it belongs, and what to do.
    Contested(String),
}

/// Judges an object that is there.
pub(super) fn holder(applicant: &Applicant<'_>, submission: &Submission, held: &Stamped) -> Holder {
    let is_owners = held.belongs_to(applicant.kind, &applicant.key(), applicant.uid);
    match &held.controller {
        Some(controller) if is_owners || *controller.uid == *applicant.uid => {
            of_the_owner(applicant, submission, held)
        }
        Some(controller) if !is_stale(applicant, held) => {
            Holder::Contested(belongs_to_another(submission, controller))
        }
        Some(_) | None => without_owner(applicant, submission, held),
    }
}

/// The text for an object that another owner or controller holds.
pub(super) fn belongs_to_another(submission: &Submission, controller: &ControllerRef) -> String {
    format!(
        "object [{}] belongs to {} [{}]; rename it in the template or remove the other owner",
        address(submission),
        controller.kind,
        controller.name
    )
}

/// Whether the object refers to an owner of our kind that is no more: it was restored from a backup, or its owner was
/// deleted and made anew.
pub(super) fn is_stale(applicant: &Applicant<'_>, held: &Stamped) -> bool {
    held.controller.as_ref().is_some_and(|controller| {
        controller.is_ours(applicant.kind)
            && !(applicant.is_live_owner)(&held.owner_namespace, &controller.name, &controller.uid)
    })
}

/// Two steps may want one object.
fn of_the_owner(applicant: &Applicant<'_>, submission: &Submission, held: &Stamped) -> Holder {
    let step = held
        .labels()
        .remove(labels::RESOURCE_NAME)
        .unwrap_or_default();
    let is_anothers = !step.is_empty()
        && submission.resource != *step
        && (applicant.wanted_by_step)(&step, &submission.object);
    if is_anothers {
        return Holder::Contested(format!(
            "object [{}] belongs to resource [{step}] of the same {}; give the two templates different names",
            address(submission),
            applicant.kind.to_lowercase()
        ));
    }
    Holder::Ours
}

fn without_owner(applicant: &Applicant<'_>, submission: &Submission, held: &Stamped) -> Holder {
    let applied = submission.recorded.applied.as_ref();
    let was_applied = applied.is_some_and(|applied| *applied.uid == *held.uid);
    if was_applied || is_labelled(submission, held) {
        return Holder::Ours;
    }
    if submission.adopt || held.annotations.adopt {
        return Holder::Adoptable;
    }
    Holder::Contested(format!(
        "object [{}] is there and was not made for this {}, so it is left alone; to take it over, annotate it with \
         {}: \"true\" or set spec.adopt in the template to true; otherwise rename it in the template",
        address(submission),
        applicant.kind.to_lowercase(),
        labels::ADOPT,
    ))
}

/// Whether the labels say that the object was made for this owner, by whatever step of it.
fn is_labelled(submission: &Submission, held: &Stamped) -> bool {
    const OF_OWNER: [&str; 4] = [
        labels::WORKLOAD_NAME,
        labels::WORKLOAD_NAMESPACE,
        labels::DELIVERABLE_NAME,
        labels::DELIVERABLE_NAMESPACE,
    ];
    let held = held.labels();
    let wanted = |key: &str| submission.family.get(key).map(LabelValue::as_str);
    let has_step = held
        .get(labels::RESOURCE_NAME)
        .is_some_and(|step| !step.is_empty());
    has_step
        && OF_OWNER
            .iter()
            .filter_map(|key| Some((key, wanted(key)?)))
            .all(|(key, wanted)| held.get(*key).is_some_and(|held| held == wanted))
}
