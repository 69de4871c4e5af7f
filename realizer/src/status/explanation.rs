//! Why an owner is as it is, as a tree in which every reason is typed.
//!
//! ```text
//!  a walk ────▶ Conclusion ───────────┐                ┌─▶ conditions, `status.summary` (progress.rs)
//!  no walk ───▶ Unrealized ───────────┼─▶ Explanation ─┤
//!  a status ──▶ Explanation::of_status┘                └─▶ carto tree
//! ```
//!
//! A walk knows of each step the error itself. Of a status only the conditions can be read, so a step then has no error, and
//! what holds it back is what a condition says. Texts are made where they are printed.

mod of_status;

use std::collections::BTreeMap;

use api_types::{Condition, ConditionStatus, ConditionType, Reason, ResourceStatus};

use crate::owner::owner_status::object_ref;
use crate::status::conditions::{self, Conditions, Deciding};
use crate::status::{events, progress};
use crate::values::redaction::Taint;
use crate::{Family, ObjectRef};

pub use crate::status::progress::{Hindrance, Urgency};
pub use crate::step::error::{StepError, ValidationError, WaitsFor};
pub use crate::template::goodness::NotDone;
pub use crate::template::outputs::ReadError;
pub use crate::template::params::{Origin, Param};
pub use crate::values::field_path::PathProblem;
pub use crate::values::matching::{Candidate, FieldError, Match, MatchError, Unmet};

/// Why an owner is as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Explanation<'a> {
    /// The blueprint that it has.
    pub blueprint: Option<String>,
    /// What each blueprint that was there to choose says of it; nothing where a status was read.
    pub candidates: Vec<Candidate<'a>>,
    /// The conditions that make up `Ready`, and `Ready` itself; where a status was read, also those that come after it.
    pub conditions: Vec<Condition>,
    /// Its steps: in blueprint order, and where a status was read with its blueprint, in the order of submission.
    pub steps: Vec<ExplainedStep<'a>>,
    /// What is to be looked at first; nothing when it is Ready.
    pub first: Option<Hindrance>,
}

/// Why a step is as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExplainedStep<'a> {
    /// What status says of it: its template, its object, its outputs and conditions. An update that a gate holds back is told
    /// by condition `UpdateHeld`.
    pub entry: ResourceStatus,
    /// Why it is not realized. A status does not tell it. What it is made of may quote the object; print it by its Display.
    pub error: Option<StepError>,
    /// The steps whose outputs it takes and that have none yet.
    pub waits_for: Vec<String>,
    /// The options of its template; nothing where a status was read, or the template is named.
    pub options: Vec<Candidate<'a>>,
    /// What its template gets as parameters, by name; nothing where a status was read, or there is no template.
    pub params: BTreeMap<String, Param<'static>>,
}

/// What holds a step back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause<'s> {
    /// It is not realized.
    Error(&'s StepError),
    /// A condition says so; `Healthy` is what its object says.
    Condition(&'s Condition),
    /// Nothing was done about it yet.
    Pending,
}

impl ExplainedStep<'_> {
    /// What holds it back, if anything does. A value that is awaited does not come from an object that says it is broken.
    pub fn cause(&self) -> Option<Cause<'_>> {
        let Some(error) = &self.error else {
            return self.by_conditions();
        };
        let broken = self
            .condition(ConditionType::Healthy)
            .filter(|healthy| error.waits_for_object() && healthy.status == ConditionStatus::False);
        Some(broken.map_or(Cause::Error(error), Cause::Condition))
    }

    /// What its conditions say: the first that is False, else the first that is not True.
    fn by_conditions(&self) -> Option<Cause<'_>> {
        let ready = self.condition(ConditionType::Ready);
        if ready.is_some_and(|ready| ready.status == ConditionStatus::True) {
            return None;
        }
        let with = |status| {
            let mut parts = self.entry.conditions.iter();
            parts.find(|part| !part.is(ConditionType::Ready) && part.status == status)
        };
        let deciding = with(ConditionStatus::False)
            .or_else(|| with(ConditionStatus::Unknown))
            .or(ready);
        Some(deciding.map_or(Cause::Pending, Cause::Condition))
    }

    /// How soon it is to be looked at, if anything holds it back.
    pub fn urgency(&self) -> Option<Urgency> {
        let awaits = !self.waits_for.is_empty();
        Some(match self.cause()? {
            Cause::Error(error) if error.is_stuck() => Urgency::Stuck,
            Cause::Error(error) if error.waits_for_another_step() => Urgency::Awaits,
            Cause::Condition(_) | Cause::Pending if awaits => Urgency::Awaits,
            Cause::Condition(by_conditions) if by_conditions.status == ConditionStatus::False => {
                Urgency::Stuck
            }
            Cause::Error(_) | Cause::Condition(_) | Cause::Pending => Urgency::GoesOn,
        })
    }

    /// Its condition of this type.
    pub fn condition(&self, type_: ConditionType) -> Option<&Condition> {
        conditions::of_type(&self.entry.conditions, type_)
    }

    fn hindrance(&self) -> Option<Hindrance> {
        let cause = self.cause()?;
        let object: Option<ObjectRef> = self.entry.stamped_ref.as_ref().and_then(object_ref);
        Some(Hindrance {
            is_stuck: cause.is_stuck(),
            step: Some(self.entry.name.clone()),
            object: object.as_ref().and_then(events::shown),
            reason: cause.reason(),
            message: cause.message(),
        })
    }
}

impl Cause<'_> {
    /// Whether nothing will change until somebody does something, as far as can be told.
    pub fn is_stuck(self) -> bool {
        match self {
            Self::Error(error) => error.is_stuck(),
            Self::Condition(condition) => condition.status == ConditionStatus::False,
            Self::Pending => false,
        }
    }

    /// In one word.
    pub fn reason(self) -> Reason {
        match self {
            Self::Error(error) => error.verdict().reason,
            Self::Condition(condition) => Reason::read(&condition.reason),
            Self::Pending => Reason::Unknown,
        }
    }

    /// As a text for people. What it quotes of an object may have come from a Secret: whoever shows it scrubs it first.
    pub(crate) fn message(self) -> String {
        match self {
            Self::Error(error) => match error.unreadable() {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            },
            Self::Condition(condition) => condition.message.clone(),
            Self::Pending => String::new(),
        }
    }
}

impl<'a> Explanation<'a> {
    /// Of a walk that has ended: its conditions follow from the steps. `conditions` is empty, and knows the former ones.
    pub(crate) fn of_walk(
        steps: Vec<ExplainedStep<'a>>,
        mut conditions: Conditions<'_>,
        family: Family,
        taint: &Taint,
    ) -> Self {
        let blueprint = family.blueprint_ready();
        conditions.add(blueprint, ConditionStatus::True, &Reason::Ready, "");
        let (status, reason, message) = submitted(&steps);
        conditions.add(ConditionType::ResourcesSubmitted, status, &reason, message);
        let (status, message) = health(&steps);
        let (healthy, reason) = (
            ConditionType::ResourcesHealthy,
            Reason::HealthyConditionRule,
        );
        conditions.add(healthy, status, &reason, message);
        conditions.derive_ready();
        let first = progress::unready(conditions.list()).map(|ready| {
            let of_step = first(&steps).map(|first| first.scrubbed(taint));
            let is_stuck = ready.status == ConditionStatus::False;
            of_step.unwrap_or_else(|| Hindrance::of(ready, is_stuck))
        });
        Self {
            conditions: conditions.finish(),
            steps,
            first,
            ..Self::default()
        }
    }

    /// Why steps are not realized, in their order.
    pub(crate) fn errors(&self) -> impl Iterator<Item = &StepError> {
        self.steps.iter().filter_map(|step| step.error.as_ref())
    }
}

/// What is to be looked at first of what holds steps back.
fn first(steps: &[ExplainedStep<'_>]) -> Option<Hindrance> {
    let open = steps.iter().filter(|step| step.cause().is_some());
    open.min_by_key(|step| step.urgency())?.hindrance()
}

/// Whether all steps were submitted: the first error counts.
fn submitted(steps: &[ExplainedStep<'_>]) -> (ConditionStatus, Reason, String) {
    match steps.iter().find_map(|step| step.error.as_ref()) {
        Some(error) => {
            let verdict = error.verdict();
            (verdict.status, verdict.reason, error.to_string())
        }
        None => (
            ConditionStatus::True,
            Reason::ResourceSubmissionComplete,
            String::new(),
        ),
    }
}

/// The conditions `Healthy` of all steps that have one, taken together.
fn health(steps: &[ExplainedStep<'_>]) -> (ConditionStatus, String) {
    let healthy = steps
        .iter()
        .filter_map(|step| step.condition(ConditionType::Healthy));
    let mut healthy = healthy.peekable();
    if healthy.peek().is_none() {
        return (ConditionStatus::Unknown, String::new());
    }
    match Deciding::among(healthy).condition() {
        Some(condition) => (condition.status, condition.message.clone()),
        None => (ConditionStatus::True, String::new()),
    }
}

#[cfg(test)]
mod tests;
