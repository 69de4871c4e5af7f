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
pub(crate) struct Hindrance {
    /// Whether nothing will change until somebody does something.
    pub(crate) is_stuck: bool,
    pub(crate) step: Option<String>,
    pub(crate) object: Option<String>,
    pub(crate) reason: Reason,
    pub(crate) message: String,
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
        let advice = Advice::on(&self.reason, self.is_stuck);
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

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
