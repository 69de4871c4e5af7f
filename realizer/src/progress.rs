//! How it goes on with an owner that is not Ready: for tools that wait for objects, and in one line for people.
//!
//! Tools know nothing of our conditions. What they understand (kstatus) are `Reconciling` and `Stalled`: without them a
//! broken owner is one that is waited for until the time is over.

use api_types::condition::{cut, whole_seconds};
use api_types::status::MOST_SUMMARY_CHARS;
use api_types::{Condition, ConditionStatus, ConditionType, OwnerSummary, Reason, SummaryState};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::conditions::{self, Conditions};

/// The most characters of `Ready`'s message that are said once more.
const MOST_CHARS: usize = 1024;

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
            reason: Reason::copied(&condition.reason),
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

    fn next(&self) -> Option<String> {
        advice(&self.reason, self.object.is_some()).filter(|_| self.is_stuck)
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

/// What somebody has to do, by the reason of what is wrong. `carto tree` says it with the commands.
const ADVICE: [(&[Reason], &str); 12] = [
    (
        &[
            Reason::WorkloadLabelsMissing,
            Reason::DeliverableLabelsMissing,
        ],
        "give it the labels that a blueprint selects by",
    ),
    (
        &[
            Reason::MultipleSupplyChainMatches,
            Reason::MultipleDeliveryMatches,
        ],
        "make the selector of one of the blueprints more specific",
    ),
    (
        &[
            Reason::ServiceAccountError,
            Reason::ServiceAccountTokenError,
        ],
        "create the ServiceAccount, or name another one",
    ),
    (
        &[Reason::TemplateStampFailure],
        "correct the template, or what it is given",
    ),
    (
        &[Reason::TemplateRejectedByAPIServer],
        "correct the template, or grant the ServiceAccount the right that the message names",
    ),
    (
        &[Reason::ObjectContested],
        "give the object another name in the template, or have its holder give it up",
    ),
    (
        &[Reason::ObjectUndone],
        "stop the other writer, or take the fields that it sets out of the template",
    ),
    (
        &[
            Reason::ResolveTemplateOptionsError,
            Reason::TemplateOptionsMatchError,
        ],
        "have exactly one option match",
    ),
    (
        &[Reason::InputsNotReady, Reason::PassThrough],
        "correct the inputs in the blueprint",
    ),
    (
        &[Reason::MissingValueAtPath, Reason::ConditionNotMet],
        "correct the path in the template",
    ),
    (
        &[Reason::ValidationFailed, Reason::ValidationTimedOut],
        "look at the validation; the next revision goes on without this one",
    ),
    (&[Reason::FailedConditionMet], "look at the object"),
];

/// An object says more of itself than what is known of it.
fn advice(reason: &Reason, has_object: bool) -> Option<String> {
    let known = ADVICE.iter().find(|(reasons, _)| reasons.contains(reason));
    let known = known.map(|(_, advice)| *advice);
    let text = known.or_else(|| has_object.then_some("look at the object"))?;
    Some(text.to_owned())
}

#[cfg(test)]
mod tests;
