//! How it goes on with an owner that is not Ready: for tools that wait for objects, and in one line for people.
//!
//! Tools know nothing of our conditions. What they understand (kstatus) are `Reconciling` and `Stalled`: without them a
//! broken owner is one that is waited for until the time is over.

use api_types::condition::{cut, whole_seconds};
use api_types::status::MOST_SUMMARY_CHARS;
use api_types::{Condition, ConditionStatus, ConditionType, OwnerSummary, Reason, SummaryState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::Advice;
use crate::status::conditions::{self, Conditions};
use crate::values::redaction::Taint;

/// The most characters of `Ready`'s message that are said once more.
const MOST_CHARS: usize = 1024;

/// What is to be looked at first of all that holds an owner back: what only somebody can mend, and what waits for another
/// step last. Among equals it is the first step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Nothing will change until somebody does something.
    Stuck,
    /// It is under way, or tried again.
    GoesOn,
    /// Another step has to come first.
    Awaits,
}

/// What holds an owner back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hindrance {
    /// Whether nothing will change until somebody does something.
    pub is_stuck: bool,
    /// Name of the step that holds the owner back, if it is one.
    pub step: Option<String>,
    /// The object of that step, as `<plural>[.<group>]/<name>`, if there is one.
    pub object: Option<String>,
    /// In one word.
    pub reason: Reason,
    /// As a text for people.
    pub message: String,
}

impl Hindrance {
    /// What a condition says, of the owner as a whole.
    pub(crate) fn of(condition: &Condition, is_stuck: bool) -> Self {
        Self {
            is_stuck,
            step: None,
            object: None,
            reason: Reason::read(&condition.reason),
            message: condition.message.clone(),
        }
    }

    /// What somebody can do about it.
    pub fn advice(&self) -> Advice {
        Advice::on(&self.reason, self.is_stuck)
    }

    /// Without what came from Secrets.
    pub(crate) fn scrubbed(self, taint: &Taint) -> Self {
        Self {
            object: self.object.map(|object| taint.scrub(object)),
            message: taint.scrub(self.message),
            ..self
        }
    }

    /// Adds `Reconciling` or `Stalled`.
    pub(crate) fn add(&self, conditions: &mut Conditions<'_>) {
        let type_ = if self.is_stuck {
            ConditionType::Stalled
        } else {
            ConditionType::Reconciling
        };
        let message = cut(self.message.clone(), MOST_CHARS);
        conditions.add(type_, ConditionStatus::True, &self.reason, message);
    }

    /// What to do about it. An object that is not there cannot be looked at.
    fn next(&self) -> Option<String> {
        let advice = self.advice();
        let has_subject = self.object.is_some() || advice != Advice::ExamineObject;
        advice.words().filter(|_| has_subject).map(str::to_owned)
    }

    pub(crate) fn summary(&self, previous: Option<&OwnerSummary>, now: &Time) -> OwnerSummary {
        let state = if self.is_stuck {
            SummaryState::Failing
        } else {
            SummaryState::Waiting
        };
        let reason = self.reason.as_str().into_owned();
        let same = previous.filter(|previous| {
            previous.state == state && previous.step == self.step && previous.reason == reason
        });
        OwnerSummary {
            state,
            step: self.step.clone(),
            object: self.object.clone(),
            message: cut(one_line(&self.message), MOST_SUMMARY_CHARS),
            next: self.next(),
            since: same.map_or_else(|| whole_seconds(now), |same| same.since.clone()),
            reason,
        }
    }
}

/// `Ready`, unless it is True.
pub(crate) fn unready(conditions: &[Condition]) -> Option<&Condition> {
    conditions::of_type(conditions, ConditionType::Ready)
        .filter(|ready| ready.status != ConditionStatus::True)
}

pub(crate) fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
