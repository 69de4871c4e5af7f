//! What holds an owner back: the one thing to look at first.

use api_types::{BlueprintSpec, ConditionStatus, ConditionType, Reason};
use realizer::explanation::{self, ExplainedStep, Explanation, Hindrance};
use realizer::{Advice, Family};
use serde::Serialize;

use super::advice::{self, Subject};
use super::{OwnerView, Step};

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

/// What holds an owner back, with the step as it is shown.
pub(super) struct Cause<'s> {
    pub(super) told: &'s Hindrance,
    pub(super) step: Option<&'s Step>,
    /// Whether it is the blueprint that is not ready.
    pub(super) is_of_blueprint: bool,
}

impl<'s> Cause<'s> {
    fn of(told: &'s Hindrance, family: Family, owner: &OwnerView, steps: &'s [Step]) -> Self {
        let step = told.step.as_ref();
        let blueprint = owner.condition(family.blueprint_ready());
        Self {
            told,
            step: step.and_then(|name| steps.iter().find(|step| step.name == *name)),
            is_of_blueprint: blueprint.is_some_and(|blueprint| {
                let same_reason = Reason::read(&blueprint.reason) == told.reason;
                same_reason && blueprint.message == told.message
            }),
        }
    }

    fn state(&self) -> State {
        if self.told.is_stuck {
            State::Failing
        } else {
            State::Waiting
        }
    }

    pub(super) fn advice(&self) -> Advice {
        self.told.advice()
    }

    pub(super) fn waits_for_steps(&self) -> bool {
        self.step.is_some_and(|step| !step.waiting_for.is_empty())
    }

    fn headline(&self, subject: &Subject<'_>, steps: &[Step]) -> Headline {
        let verb = match (self.told.is_stuck, self.step) {
            (true, None) => "is blocked".to_owned(),
            (true, Some(step)) => format!("is blocked at step {}", step.name),
            (false, None) => "waits".to_owned(),
            (false, Some(step)) => format!("waits for step {}", step.name),
        };
        Headline {
            state: self.state(),
            text: format!("{subject} {verb}: {}", self.text()),
            next: Some(advice::next(subject, steps, self)),
            step: self.step.map(|step| step.name.clone()),
            reason: Some(self.told.reason.as_str().into_owned()),
            message: Some(self.told.message.clone()),
        }
    }

    /// "Waiting to read value [...]" says little; what the object itself says is why it is not there.
    fn text(&self) -> String {
        let said = said(&self.told.message, &self.told.reason.as_str());
        let health = self
            .step
            .and_then(|step| step.condition(ConditionType::Healthy));
        let own_words = health
            .filter(|health| {
                self.told.reason == Reason::MissingValueAtPath
                    && health.status != ConditionStatus::True
            })
            .and_then(|health| health.message.lines().next())
            .filter(|line| !line.trim().is_empty());
        match own_words {
            Some(line) => format!("{said}; the object says: {}", line.trim()),
            None => said,
        }
    }
}

pub(super) fn headline(
    family: Family,
    owner: &OwnerView,
    blueprint: Option<&BlueprintSpec>,
    explanation: &Explanation<'_>,
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
    let Some(first) = &explanation.first else {
        let text = format!("{subject} is not ready yet");
        return plain(State::Waiting, text, Some(subject.check_controller()));
    };
    let cause = Cause::of(first, family, owner, steps);
    match cause.step {
        Some(step) if is_pending(explanation, step) => not_tried(&subject, step),
        _ => cause.headline(&subject, steps),
    }
}

fn is_pending(explanation: &Explanation<'_>, step: &Step) -> bool {
    let mut explained = explanation.steps.iter();
    let explained = explained.find(|explained| explained.entry.name == step.name);
    let cause = explained.and_then(ExplainedStep::cause);
    cause == Some(explanation::Cause::Pending)
}

fn not_tried(subject: &Subject<'_>, step: &Step) -> Headline {
    Headline {
        state: State::Waiting,
        text: format!("{subject} waits for step {}: it is pending", step.name),
        next: Some(subject.check_controller()),
        step: Some(step.name.clone()),
        reason: None,
        message: None,
    }
}

pub(super) fn verb(status: ConditionStatus) -> &'static str {
    if status == ConditionStatus::False {
        "is blocked"
    } else {
        "waits"
    }
}

/// Message and reason on one line.
pub(super) fn said(message: &str, reason: &str) -> String {
    match gist(message) {
        Some(line) => format!("{line} ({reason})"),
        None => reason.to_owned(),
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
