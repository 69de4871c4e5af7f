//! Whose an object is that stands where a step wants its own.
//!
//! An apply is forced, and brings an owner reference by which the garbage collector deletes the object with the owner. So
//! what somebody else made is written only if somebody who may decide that says so: on the object, or in the template.

use std::collections::BTreeMap;

use api_types::{LabelValue, labels};
use realizer::Submission;
use serde_json::Value;

use crate::belonging::{Belonging, ControllerRef};
use crate::manifest::{OwnerFacts, address};

/// Whether there is an owner of our kind with this namespace, name and uid.
pub type IsLiveOwner<'c> = &'c (dyn Fn(&str, &str, &str) -> bool + Send + Sync);

/// Whether a step with this name stands for the rendered object.
pub type WantedByStep<'c> = &'c (dyn Fn(&str, &Value) -> bool + Send + Sync);

/// Who wants an object, and what is known of those who may have it.
#[derive(Clone, Copy)]
pub struct Claim<'c> {
    /// The owner.
    pub owner: OwnerFacts<'c>,
    /// What it wants.
    pub submission: &'c Submission,
    /// Who is alive.
    pub is_live_owner: IsLiveOwner<'c>,
    /// What its steps want.
    pub wanted_by_step: WantedByStep<'c>,
}

/// An object that is there.
#[derive(Debug, Clone, Copy)]
pub struct Held<'h> {
    /// Its uid.
    pub uid: &'h str,
    /// Who controls it.
    pub belonging: Belonging<'h>,
    /// Its labels.
    pub labels: &'h BTreeMap<String, String>,
    /// Whether it is annotated to be taken over.
    pub adopt: bool,
}

/// Whether an object may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// It was made for this owner.
    Ours,
    /// Somebody else made it, and it may be taken over.
    Adoptable,
    /// It is not written; the text says to whom it belongs, and what to do.
    Contested(String),
}

impl Claim<'_> {
    /// Judges an object that is there.
    pub fn holder(self, held: Held<'_>) -> Holder {
        let owner = self.owner;
        let belonging = held.belonging;
        let is_owners = belonging.is_of(owner.kind, owner.namespace, owner.name, owner.uid);
        match belonging.controller {
            Some(controller) if is_owners || *controller.uid == *owner.uid => {
                self.of_the_owner(held)
            }
            Some(controller) if !self.is_stale(belonging) => {
                Holder::Contested(belongs_to_another(self.submission, controller))
            }
            Some(_) | None => self.without_owner(held),
        }
    }

    /// Whether the object refers to an owner of our kind that is no more: it was restored from a backup, or its owner was
    /// deleted and made anew.
    pub fn is_stale(self, belonging: Belonging<'_>) -> bool {
        belonging.controller.is_some_and(|controller| {
            controller.is_ours(self.owner.kind)
                && !(self.is_live_owner)(
                    belonging.owner_namespace,
                    &controller.name,
                    &controller.uid,
                )
        })
    }

    /// Two steps may want one object.
    fn of_the_owner(self, held: Held<'_>) -> Holder {
        let step = held.labels.get(labels::RESOURCE_NAME);
        let step = step.map(String::as_str).unwrap_or_default();
        let is_anothers = !step.is_empty()
            && self.submission.resource != *step
            && (self.wanted_by_step)(step, &self.submission.object);
        if is_anothers {
            return Holder::Contested(format!(
                "object [{}] belongs to resource [{step}] of the same {}; give the two templates different names",
                address(self.submission),
                self.owner.kind.to_lowercase()
            ));
        }
        Holder::Ours
    }

    fn without_owner(self, held: Held<'_>) -> Holder {
        let applied = self.submission.recorded.applied.as_ref();
        let was_applied = applied.is_some_and(|applied| *applied.uid == *held.uid);
        if was_applied || is_labelled(self.submission, held.labels) {
            return Holder::Ours;
        }
        if self.submission.adopt || held.adopt {
            return Holder::Adoptable;
        }
        Holder::Contested(format!(
            "object [{}] is there and was not made for this {}, so it is left alone; to take it over, annotate it with \
             {}: \"true\" or set spec.adopt in the template to true; otherwise rename it in the template",
            address(self.submission),
            self.owner.kind.to_lowercase(),
            labels::ADOPT,
        ))
    }
}

/// The text for an object that another owner or controller holds.
pub fn belongs_to_another(submission: &Submission, controller: &ControllerRef) -> String {
    format!(
        "object [{}] belongs to {} [{}]; rename it in the template or remove the other owner",
        address(submission),
        controller.kind,
        controller.name
    )
}

/// Whether the labels say that the object was made for this owner, by whatever step of it.
fn is_labelled(submission: &Submission, held: &BTreeMap<String, String>) -> bool {
    const OF_OWNER: [&str; 4] = [
        labels::WORKLOAD_NAME,
        labels::WORKLOAD_NAMESPACE,
        labels::DELIVERABLE_NAME,
        labels::DELIVERABLE_NAMESPACE,
    ];
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
