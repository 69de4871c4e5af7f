//! What holds an owner back: the one thing to look at first.

use api_types::{BlueprintSpec, Condition, ConditionStatus, ConditionType, Reason};
use serde::Serialize;

use super::advice::{self, Subject};
use super::{OwnerView, Step};
use realizer::Family;

/// The answer to "why is it not ready?".
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Headline {
    /// Ready, waiting, or failing until somebody does something.
    pub state: State,
    /// One line for people.
    pub text: String,
    /// What to do next; absent when there is nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The step that holds the owner back, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Reason of the condition that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its message, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How an owner does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Everything is as wanted.
    Ready,
    /// Something is under way.
    Waiting,
    /// Nothing will move until somebody does something.
    Failing,
}

impl From<ConditionStatus> for State {
    fn from(status: ConditionStatus) -> Self {
        match status {
            ConditionStatus::True => Self::Ready,
            ConditionStatus::False => Self::Failing,
            ConditionStatus::Unknown => Self::Waiting,
        }
    }
}

pub(super) fn headline(
    family: Family,
    owner: &OwnerView,
    blueprint: Option<&BlueprintSpec>,
    steps: &[Step],
) -> Headline {
    let subject = Subject::new(family, owner, blueprint);
    let plain = |state: State, text: String, next: Option<String>| Headline {
        state,
        text,
        next,
        step: None,
        reason: None,
        message: None,
    };
    if owner.status.conditions.is_empty() {
        let text = format!("{subject} has not been reconciled yet");
        return plain(State::Waiting, text, Some(subject.check_controller()));
    }
    if !owner.is_current() {
        let text = format!(
            "the latest change of {subject} (generation {}) has not been reconciled yet",
            owner.metadata.generation
        );
        return plain(State::Waiting, text, Some(subject.check_controller()));
    }
    if owner.is_ready() {
        return plain(State::Ready, format!("{subject} is ready"), None);
    }
    if let Some(condition) = before_any_step(family, owner) {
        return of_owner(&subject, steps, condition);
    }
    match root_cause(steps) {
        Some(step) => of_step(&subject, steps, step),
        None => match owner.condition(ConditionType::Ready) {
            Some(ready) => of_owner(&subject, steps, ready),
            None => plain(
                State::Waiting,
                format!("{subject} is not ready yet"),
                Some(subject.check_controller()),
            ),
        },
    }
}

/// The condition that says why no step was even tried; the step entries are then those of an earlier time.
fn before_any_step(family: Family, owner: &OwnerView) -> Option<&Condition> {
    let blueprint = owner.condition(family.blueprint_ready());
    if let Some(condition) = blueprint.filter(|condition| condition.status != ConditionStatus::True)
    {
        return Some(condition);
    }
    let hindrances = [
        Reason::ServiceAccountError,
        Reason::ServiceAccountTokenError,
        Reason::ResourceRealizerBuilderError,
    ];
    owner
        .condition(ConditionType::ResourcesSubmitted)
        .filter(|condition| {
            hindrances
                .iter()
                .any(|reason| condition.reason == reason.as_str())
        })
}

/// The first step that fails although all it takes is there, else the first that is under way with all it takes, else
/// (steps that wait for one another) the first that is not ready.
fn root_cause(steps: &[Step]) -> Option<&Step> {
    let open = || {
        steps
            .iter()
            .filter(|step| step.status() != ConditionStatus::True)
    };
    let supplied = || open().filter(|step| step.waiting_for.is_empty());
    supplied()
        .find(|step| step.status() == ConditionStatus::False)
        .or_else(|| supplied().next())
        .or_else(|| open().next())
}

fn of_owner(subject: &Subject<'_>, steps: &[Step], condition: &Condition) -> Headline {
    Headline {
        state: State::from(condition.status),
        text: format!("{subject} {}: {}", verb(condition.status), said(condition)),
        next: Some(advice::for_owner(subject, steps, condition)),
        step: None,
        reason: Some(condition.reason.clone()),
        message: Some(condition.message.clone()),
    }
}

fn of_step(subject: &Subject<'_>, steps: &[Step], step: &Step) -> Headline {
    let Some(condition) = deciding(step) else {
        return Headline {
            state: State::Waiting,
            text: format!("{subject} waits for step {}: it is pending", step.name),
            next: Some(subject.check_controller()),
            step: Some(step.name.clone()),
            reason: None,
            message: None,
        };
    };
    Headline {
        state: State::from(condition.status),
        text: format!(
            "{subject} {} step {}: {}",
            verb_with_step(condition.status),
            step.name,
            told(step, condition)
        ),
        next: Some(advice::for_step(subject, steps, step, condition)),
        step: Some(step.name.clone()),
        reason: Some(condition.reason.clone()),
        message: Some(condition.message.clone()),
    }
}

/// What decides about a step: the first condition that is False, else the first that is not True.
fn deciding(step: &Step) -> Option<&Condition> {
    let parts = || {
        step.conditions
            .iter()
            .filter(|condition| !condition.is(ConditionType::Ready))
    };
    parts()
        .find(|condition| condition.status == ConditionStatus::False)
        .or_else(|| parts().find(|condition| condition.status == ConditionStatus::Unknown))
        .or_else(|| step.condition(ConditionType::Ready))
}

pub(super) fn verb(status: ConditionStatus) -> &'static str {
    if status == ConditionStatus::False {
        "is blocked"
    } else {
        "waits"
    }
}

fn verb_with_step(status: ConditionStatus) -> &'static str {
    if status == ConditionStatus::False {
        "is blocked at"
    } else {
        "waits for"
    }
}

/// Reason and message on one line.
pub(super) fn said(condition: &Condition) -> String {
    match gist(&condition.message) {
        Some(line) => format!("{} ({})", line, condition.reason),
        None => condition.reason.clone(),
    }
}

/// The first line; one that ends with a colon says only that the next one tells (`ytt: Error:`).
fn gist(message: &str) -> Option<String> {
    let mut gist = String::new();
    for line in message
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        if gist.is_empty() {
            line.clone_into(&mut gist);
        } else {
            gist = format!("{gist} {}", line.trim_start_matches("- "));
        }
        if !gist.ends_with(':') {
            break;
        }
    }
    (!gist.is_empty()).then_some(gist)
}

/// "Waiting to read value [...]" says little; what the object itself says is why it is not there.
fn told(step: &Step, condition: &Condition) -> String {
    let health = step.condition(ConditionType::Healthy);
    let own_words = health
        .filter(|health| {
            condition.is(ConditionType::ResourceSubmitted)
                && condition.reason == Reason::MissingValueAtPath.as_str()
                && health.status != ConditionStatus::True
        })
        .and_then(|health| health.message.lines().next())
        .filter(|line| !line.trim().is_empty());
    match own_words {
        Some(line) => format!("{}; the object says: {}", said(condition), line.trim()),
        None => said(condition),
    }
}
