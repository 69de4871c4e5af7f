//! What holds an owner back: the one thing to look at first.

use api_types::condition::cut;
use api_types::status::MOST_SUMMARY_CHARS;
use api_types::{
    BlueprintSpec, Condition, ConditionStatus, ConditionType, OwnerSummary, Reason, SummaryState,
};
use realizer::{Advice, Family, Urgency};
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

impl From<SummaryState> for State {
    fn from(state: SummaryState) -> Self {
        match state {
            SummaryState::Waiting => Self::Waiting,
            SummaryState::Failing => Self::Failing,
        }
    }
}

/// What holds an owner back: what its status says in `summary`, or, where another controller wrote the status, what the
/// conditions say.
pub(super) struct Cause<'s> {
    state: State,
    pub(super) step: Option<&'s Step>,
    pub(super) reason: Reason,
    /// The reason as it stands in the status.
    word: &'s str,
    /// Whole.
    pub(super) message: &'s str,
    /// Whether it is the blueprint that is not ready.
    pub(super) is_of_blueprint: bool,
}

impl<'s> Cause<'s> {
    /// What the controller says. The summary is cut and on one line; where a condition says the same, its message is whole.
    fn told(summary: &'s OwnerSummary, owner: &'s OwnerView, steps: &'s [Step]) -> Option<Self> {
        let named = |name: &String| steps.iter().find(|step| step.name == *name);
        let step = match &summary.step {
            // A step that the blueprint has no longer is told of by its conditions, if at all.
            Some(name) => Some(named(name)?),
            None => None,
        };
        let conditions = step.map_or(&owner.status.conditions, |step| &step.conditions);
        let mut same = conditions.iter().filter(|it| it.reason == summary.reason);
        let whole = same.find(|condition| {
            let message = one_line(&condition.message);
            // The summary adds what a condition may not say.
            cut(message, MOST_SUMMARY_CHARS) == summary.message
        });
        Some(Self {
            state: summary.state.into(),
            step,
            reason: Reason::read(&summary.reason),
            word: &summary.reason,
            message: whole.map_or(summary.message.as_str(), |it| it.message.as_str()),
            is_of_blueprint: whole.is_some_and(is_of_blueprint),
        })
    }

    fn of(condition: &'s Condition, step: Option<&'s Step>) -> Self {
        Self {
            state: condition.status.into(),
            step,
            reason: Reason::read(&condition.reason),
            word: &condition.reason,
            message: &condition.message,
            is_of_blueprint: is_of_blueprint(condition),
        }
    }

    pub(super) fn advice(&self) -> Advice {
        Advice::on(&self.reason, self.state == State::Failing)
    }

    pub(super) fn waits_for_steps(&self) -> bool {
        self.step.is_some_and(|step| !step.waiting_for.is_empty())
    }

    fn headline(&self, subject: &Subject<'_>, steps: &[Step]) -> Headline {
        let verb = match (self.state, self.step) {
            (State::Failing, None) => "is blocked".to_owned(),
            (State::Failing, Some(step)) => format!("is blocked at step {}", step.name),
            (State::Ready | State::Waiting, None) => "waits".to_owned(),
            (State::Ready | State::Waiting, Some(step)) => format!("waits for step {}", step.name),
        };
        Headline {
            state: self.state,
            text: format!("{subject} {verb}: {}", self.text()),
            next: Some(advice::next(subject, steps, self)),
            step: self.step.map(|step| step.name.clone()),
            reason: Some(self.word.to_owned()),
            message: Some(self.message.to_owned()),
        }
    }

    /// "Waiting to read value [...]" says little; what the object itself says is why it is not there.
    fn text(&self) -> String {
        let said = said(self.message, self.word);
        let health = self
            .step
            .and_then(|step| step.condition(ConditionType::Healthy));
        let own_words = health
            .filter(|health| {
                self.reason == Reason::MissingValueAtPath && health.status != ConditionStatus::True
            })
            .and_then(|health| health.message.lines().next())
            .filter(|line| !line.trim().is_empty());
        match own_words {
            Some(line) => format!("{said}; the object says: {}", line.trim()),
            None => said,
        }
    }
}

fn is_of_blueprint(condition: &Condition) -> bool {
    condition.is(ConditionType::SupplyChainReady) || condition.is(ConditionType::DeliveryReady)
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
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
    let summary = owner.status.summary.as_ref();
    let told = summary.and_then(|summary| Cause::told(summary, owner, steps));
    if let Some(cause) = told {
        return cause.headline(&subject, steps);
    }
    if let Some(condition) = before_any_step(family, owner) {
        return Cause::of(condition, None).headline(&subject, steps);
    }
    let cause = if let Some(step) = first_open(steps) {
        let Some(condition) = deciding(step) else {
            return not_tried(&subject, step);
        };
        Some(Cause::of(condition, Some(step)))
    } else {
        let ready = owner.condition(ConditionType::Ready);
        ready.map(|ready| Cause::of(ready, None))
    };
    match cause {
        Some(cause) => cause.headline(&subject, steps),
        None => plain(
            State::Waiting,
            format!("{subject} is not ready yet"),
            Some(subject.check_controller()),
        ),
    }
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

/// The step to look at first.
fn first_open(steps: &[Step]) -> Option<&Step> {
    let open = steps
        .iter()
        .filter(|step| step.status() != ConditionStatus::True);
    open.min_by_key(|step| match step.status() {
        _ if !step.waiting_for.is_empty() => Urgency::Awaits,
        ConditionStatus::False => Urgency::Stuck,
        ConditionStatus::True | ConditionStatus::Unknown => Urgency::GoesOn,
    })
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
