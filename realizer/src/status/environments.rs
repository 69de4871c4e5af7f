//! What a walk learned about environments: `status.environments`, the events that tell of it, and when to look again.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::condition::whole_seconds;
use api_types::event::EventReason;
use api_types::{
    Condition, ConditionStatus, ConditionType, DeployedRevision, EnvironmentStatus, Reason,
    ValidationStatus, ValidationVerdict, WaitingRevision, labels,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::environment::state::{EnvironmentState, time_left};
use crate::environment::{Record, shown};
use crate::owner::owner_status::OwnerStatus;
use crate::status::conditions::Conditions;
use crate::status::events;
use crate::step::end::StepEnd;
use crate::step::state::Steps;
use crate::template::judgement::ValidationState;
use crate::{Blueprint, OwnerEvent};

/// What follows for the owner.
#[derive(Debug, Default)]
pub(crate) struct EnvironmentReport {
    pub(crate) statuses: Vec<EnvironmentStatus>,
    pub(crate) events: Vec<OwnerEvent>,
    /// When to walk again without an event.
    pub(crate) again: Option<Duration>,
    /// By index of the step: what its entry says while its update is held.
    held: BTreeMap<usize, String>,
}

/// What it is made of: what the walk knows of its steps, and what status said before.
struct WalkFacts<'r> {
    blueprint: &'r Blueprint,
    steps: &'r Steps<'r>,
    previous: &'r OwnerStatus,
    now: &'r Time,
}

/// What is known of one validation, before it is written down.
struct ValidationFact {
    verdict: ValidationVerdict,
    message: Option<String>,
}

impl ValidationFact {
    fn plain(verdict: ValidationVerdict) -> Self {
        Self {
            verdict,
            message: None,
        }
    }
}

impl EnvironmentReport {
    pub(crate) fn of(steps: &Steps<'_>, previous: &OwnerStatus, now: &Time) -> Self {
        let blueprint = steps.blueprint();
        let facts = WalkFacts {
            blueprint,
            steps,
            previous,
            now,
        };
        let mut report = Self::default();
        let all = 0..blueprint.steps.len();
        for environment in all.filter(|&step| blueprint.is_environment(step)) {
            match steps.environment(environment) {
                Some(state) => report.add(&facts, environment, state),
                // Not reached, or rejected: what is known stays known.
                None => report.statuses.extend(facts.told(environment).cloned()),
            }
        }
        report
    }

    /// Whether something has to be written down before it can be acted upon.
    pub(crate) fn is_urgent(&self) -> bool {
        self.again == Some(Duration::ZERO)
    }

    /// The extra condition of a step whose update is held, with its former time if it says the same.
    pub(crate) fn condition(
        &self,
        step: usize,
        previous: &[Condition],
        now: &Time,
    ) -> Option<Condition> {
        let message = self.held.get(&step)?;
        let mut conditions = Conditions::new(previous, now);
        conditions.add(
            ConditionType::UpdateHeld,
            ConditionStatus::True,
            &Reason::ValidationRunning,
            message.as_str(),
        );
        conditions.finish().pop()
    }

    fn add(&mut self, facts: &WalkFacts<'_>, environment: usize, state: &EnvironmentState) {
        let Some(record) = &state.record else {
            self.statuses.push(facts.unsettled(environment, state));
            self.look_again(Duration::ZERO);
            self.tell_disregarded(facts, environment, state);
            return;
        };
        let mut status = facts.status(environment, state, record);
        if state.is_free {
            facts.keep_released(environment, &mut status.validations);
        }
        self.tell(facts, environment, &status);
        self.tell_disregarded(facts, environment, state);
        let unfinished: Vec<&str> = status
            .validations
            .iter()
            .filter(|told| !told.verdict.releases())
            .map(|told| told.resource.as_str())
            .collect();
        if let Some(next) = state.next.as_ref().filter(|_| unfinished.is_empty()) {
            status.arriving = Some(deployed(next));
            status.waiting = None;
            self.look_again(Duration::ZERO);
        } else if let Some(waiting) = status.waiting.as_ref().filter(|_| state.held) {
            let message = format!(
                "revision [{}] waits: revision [{}] is in the environment until it is validated; no verdict yet from [{}]",
                waiting.revision,
                record.revision(),
                unfinished.join(", ")
            );
            self.held.insert(environment, message);
        }
        for validation in facts.blueprint.validations(environment) {
            let told = &facts.blueprint.steps[validation].name;
            if facts.begins_when_told(validation) {
                self.look_again(Duration::ZERO);
            }
            if unfinished.contains(&told.as_str())
                && let Some(left) = facts.time_left(validation, record)
            {
                self.look_again(left);
            }
        }
        self.statuses.push(status);
    }

    fn look_again(&mut self, after: Duration) {
        self.again = Some(self.again.map_or(after, |again| again.min(after)));
    }

    fn tell_disregarded(
        &mut self,
        facts: &WalkFacts<'_>,
        environment: usize,
        state: &EnvironmentState,
    ) {
        let before = facts.told(environment);
        let known = before.and_then(|before| before.disregarded.as_ref());
        // What we announced and replace was written by ourselves, if it was.
        let is_news = state.disregarded.is_some() && known != state.disregarded.as_ref();
        if is_news && (state.record.is_some() || state.next.is_none()) {
            let name = &facts.blueprint.steps[environment].name;
            self.events.push(events::of_status(
                EventReason::RecordDisregarded,
                format!(
                    "[{name}] annotation [{}] of the object was written by somebody else; it is disregarded",
                    labels::ENVIRONMENT
                ),
            ));
        }
    }

    /// Told when it is new.
    fn tell(&mut self, facts: &WalkFacts<'_>, environment: usize, status: &EnvironmentStatus) {
        let Some(deployed) = &status.deployed else {
            return;
        };
        let before = facts.told(environment);
        let arrived = before
            .and_then(|before| before.deployed.as_ref())
            .is_none_or(|before| before.arrival != deployed.arrival);
        if arrived {
            self.events.push(events::of_status(
                EventReason::RevisionDeployed,
                format!(
                    "[{}] deployed revision [{}], arrival {}",
                    status.resource, deployed.revision, deployed.arrival
                ),
            ));
        }
        for told in &status.validations {
            let known = before
                .into_iter()
                .flat_map(|before| &before.validations)
                .any(|before| {
                    (&before.resource, before.arrival, before.verdict)
                        == (&told.resource, told.arrival, told.verdict)
                });
            if !known && facts.is_nearest(environment, &told.resource) {
                self.events.extend(verdict_event(status, deployed, told));
            }
        }
    }
}

fn verdict_event(
    status: &EnvironmentStatus,
    deployed: &DeployedRevision,
    told: &ValidationStatus,
) -> Option<OwnerEvent> {
    let (reason, what) = match told.verdict {
        ValidationVerdict::Succeeded => (EventReason::ValidationSucceeded, "succeeded"),
        ValidationVerdict::Failed => (EventReason::ValidationFailed, "failed"),
        ValidationVerdict::TimedOut => (EventReason::ValidationTimedOut, "did not end in time"),
        ValidationVerdict::Pending | ValidationVerdict::Running | ValidationVerdict::Skipped => {
            return None;
        }
    };
    let cause = told
        .message
        .as_ref()
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    Some(events::of_status(
        reason,
        format!(
            "validation [{}] {what} for revision [{}] in environment [{}]{cause}",
            told.resource, deployed.revision, status.resource
        ),
    ))
}

impl WalkFacts<'_> {
    fn told(&self, environment: usize) -> Option<&EnvironmentStatus> {
        self.previous
            .environment(&self.blueprint.steps[environment].name)
    }

    /// What is in the environment cannot be said: what is known stays known, beside what has to be written down first.
    fn unsettled(&self, environment: usize, state: &EnvironmentState) -> EnvironmentStatus {
        let before = self.told(environment).cloned().unwrap_or_default();
        EnvironmentStatus {
            resource: self.blueprint.steps[environment].name.to_string(),
            arriving: state.next.as_ref().map(deployed).or(before.arriving),
            waiting: before.waiting.filter(|_| state.next.is_none()),
            disregarded: state.disregarded.clone(),
            ..before
        }
    }

    fn status(
        &self,
        environment: usize,
        state: &EnvironmentState,
        record: &Record,
    ) -> EnvironmentStatus {
        let before = self.told(environment);
        let waiting = state.waiting.as_ref().map(|waiting| {
            let revision = shown(&waiting.revision, waiting.secret);
            let url = shown(&waiting.url, waiting.secret);
            let since = before
                .and_then(|before| before.waiting.as_ref())
                .filter(|before| before.revision == revision && before.url == url)
                .map_or_else(|| whole_seconds(self.now), |before| before.since.clone());
            WaitingRevision {
                revision,
                url,
                since,
            }
        });
        EnvironmentStatus {
            resource: self.blueprint.steps[environment].name.to_string(),
            deployed: Some(deployed(record)),
            arriving: None,
            disregarded: state.disregarded.clone(),
            waiting,
            validations: self.validations(environment, record, state.failed),
        }
    }

    /// An environment that status calls free goes to what comes next, though something that had ended could begin now.
    fn keep_released(&self, environment: usize, validations: &mut [ValidationStatus]) {
        let told = self.told(environment).into_iter();
        for before in told.flat_map(|told| &told.validations) {
            let is_same = |now: &&mut ValidationStatus| {
                (&now.resource, now.arrival) == (&before.resource, before.arrival)
            };
            if let Some(now) = validations.iter_mut().find(is_same)
                && !now.verdict.releases()
            {
                now.clone_from(before);
            }
        }
    }

    /// The verdicts on what is in the environment, in blueprint order.
    fn validations(
        &self,
        environment: usize,
        record: &Record,
        failed: bool,
    ) -> Vec<ValidationStatus> {
        let mut stuck: BTreeMap<usize, bool> = BTreeMap::from([(environment, failed)]);
        let mut told: Vec<(usize, ValidationStatus)> = Vec::new();
        for &step in &self.blueprint.downstream[environment] {
            let behind = self.blueprint.steps[step]
                .deployment_providers()
                .any(|provider| stuck.get(&provider) == Some(&true));
            if self.blueprint.steps[step].validates() {
                let fact = self.fact(environment, record, step, behind);
                stuck.insert(step, is_stuck(fact.verdict));
                told.push((step, self.written(environment, record, step, fact)));
            } else {
                let failed = self
                    .steps
                    .environment(step)
                    .is_some_and(|state| state.failed)
                    && self.is_of(environment, record, step);
                stuck.insert(step, behind || failed);
            }
        }
        told.sort_by_key(|(step, _)| *step);
        told.into_iter().map(|(_, told)| told).collect()
    }

    /// `behind` when something before it failed.
    fn fact(
        &self,
        environment: usize,
        record: &Record,
        step: usize,
        behind: bool,
    ) -> ValidationFact {
        use ValidationVerdict::{Failed, Pending, Running, Succeeded, TimedOut};
        let state = self.steps.validation(step);
        let state = state.filter(|_| self.is_of(environment, record, step));
        let result = self.steps.result(step);
        let passed_through =
            result.is_some_and(|result| matches!(result.end, StepEnd::PassedThrough(_)));
        match state {
            Some(ValidationState::Succeeded) => ValidationFact::plain(Succeeded),
            Some(ValidationState::Failed(cause)) => ValidationFact {
                verdict: Failed,
                message: Some(cause.clone()).filter(|cause| !cause.is_empty()),
            },
            Some(ValidationState::NotBegun { first_told: true }) => ValidationFact::plain(Pending),
            Some(ValidationState::NotBegun { first_told: false }) if behind => skipped(),
            Some(ValidationState::NotBegun { first_told: false }) => {
                self.unbegun(environment, record, step)
            }
            Some(ValidationState::Running(_)) => self.unless_late(step, record, Running),
            None if passed_through => ValidationFact::plain(Succeeded),
            None => match self.told_of(environment, record, step) {
                Some(told) if matches!(told.verdict, Succeeded | Failed | TimedOut) => {
                    ValidationFact {
                        verdict: told.verdict,
                        message: told.message.clone(),
                    }
                }
                Some(told) if told.verdict == Running => self.unless_late(step, record, Running),
                // It is not known whether it has begun, but what it would begin with is not there.
                _ if behind => skipped(),
                _ => self.unbegun(environment, record, step),
            },
        }
    }

    /// Of what is not proven to be in the environment no validation begins; only one that status says is awaited, is.
    fn unbegun(&self, environment: usize, record: &Record, step: usize) -> ValidationFact {
        use ValidationVerdict::{Pending, Running, Skipped};
        let told = self.told_of(environment, record, step);
        let is_awaited = told.is_some_and(|told| matches!(told.verdict, Pending | Running));
        if record.proven || is_awaited {
            return self.unless_late(step, record, Pending);
        }
        ValidationFact {
            verdict: Skipped,
            message: Some("only its object says what is in the environment".to_owned()),
        }
    }

    fn unless_late(
        &self,
        step: usize,
        record: &Record,
        verdict: ValidationVerdict,
    ) -> ValidationFact {
        if self.time_left(step, record) == Some(Duration::ZERO) {
            return ValidationFact {
                verdict: ValidationVerdict::TimedOut,
                message: Some("the environment is released".to_owned()),
            };
        }
        ValidationFact::plain(verdict)
    }

    /// The fact with the time since when it holds.
    fn written(
        &self,
        environment: usize,
        record: &Record,
        step: usize,
        fact: ValidationFact,
    ) -> ValidationStatus {
        let before = self
            .told_of(environment, record, step)
            .filter(|before| before.verdict == fact.verdict);
        ValidationStatus {
            resource: self.blueprint.steps[step].name.to_string(),
            verdict: fact.verdict,
            arrival: record.arrival.number,
            message: fact.message,
            since: before.map_or_else(|| whole_seconds(self.now), |before| before.since.clone()),
        }
    }

    fn told_of(
        &self,
        environment: usize,
        record: &Record,
        step: usize,
    ) -> Option<&ValidationStatus> {
        let name = &self.blueprint.steps[step].name;
        let told = self.told(environment)?.validations.iter();
        told.into_iter()
            .find(|told| *name == *told.resource && told.arrival == record.arrival.number)
    }

    /// Whether what went into a step is this arrival.
    fn is_of(&self, environment: usize, record: &Record, step: usize) -> bool {
        let arrivals = self.steps.arrivals(step);
        arrivals
            .and_then(|arrivals| arrivals.lineage.get(&environment))
            .is_some_and(|of| of.text == record.text)
    }

    /// Whether the validation speaks of this environment before all: those behind another one are told of there.
    fn is_nearest(&self, environment: usize, validation: &str) -> bool {
        let step = self
            .blueprint
            .steps
            .iter()
            .position(|step| step.name == validation);
        step.and_then(|step| self.steps.arrivals(step))
            .is_some_and(|arrivals| arrivals.nearest.contains_key(&environment))
    }

    fn begins_when_told(&self, step: usize) -> bool {
        matches!(
            self.steps.validation(step),
            Some(ValidationState::NotBegun { first_told: true })
        )
    }

    /// How much longer the environment is kept for a validation; `None` for ever, or as long as its template is not there.
    fn time_left(&self, step: usize, record: &Record) -> Option<Duration> {
        let template = self.steps.result(step)?.template.as_deref()?;
        time_left(template, record, &self.now.0)
    }
}

/// What status says of an arrival.
fn deployed(record: &Record) -> DeployedRevision {
    DeployedRevision {
        revision: record.revision(),
        url: record.url(),
        arrival: record.arrival.number,
        since: record.since.clone(),
        record: record.told.clone(),
        unproven: record.told.is_none(),
    }
}

fn is_stuck(verdict: ValidationVerdict) -> bool {
    use ValidationVerdict::{Failed, Skipped, TimedOut};
    matches!(verdict, Failed | TimedOut | Skipped)
}

fn skipped() -> ValidationFact {
    ValidationFact {
        verdict: ValidationVerdict::Skipped,
        message: Some("what comes before it failed or did not end in time".to_owned()),
    }
}
