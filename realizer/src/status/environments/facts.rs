//! What there is to write down of environments and their validations.

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::condition::whole_seconds;
use api_types::{
    DeployedRevision, EnvironmentStatus, ValidationStatus, ValidationVerdict, WaitingRevision,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::Blueprint;
use crate::environment::state::{EnvironmentState, time_left};
use crate::environment::{Record, shown};
use crate::owner::owner_status::OwnerStatus;
use crate::step::end::StepEnd;
use crate::step::state::Steps;
use crate::template::judgement::ValidationState;

/// What the walk knows of its steps, and what status said before.
pub(super) struct WalkFacts<'r> {
    pub(super) blueprint: &'r Blueprint,
    pub(super) steps: &'r Steps<'r>,
    pub(super) previous: &'r OwnerStatus,
    pub(super) now: &'r Time,
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

impl WalkFacts<'_> {
    pub(super) fn recorded(&self, environment: usize) -> Option<&EnvironmentStatus> {
        self.previous
            .environment(&self.blueprint.steps[environment].name)
    }

    /// What is in the environment cannot be said: what is known stays known, beside what has to be written down first.
    pub(super) fn unsettled(
        &self,
        environment: usize,
        state: &EnvironmentState,
    ) -> EnvironmentStatus {
        let before = self.recorded(environment).cloned().unwrap_or_default();
        EnvironmentStatus {
            resource: self.blueprint.steps[environment].name.to_string(),
            arriving: state.next.as_ref().map(deployed).or(before.arriving),
            waiting: before.waiting.filter(|_| state.next.is_none()),
            disregarded: state.disregarded.clone(),
            ..before
        }
    }

    pub(super) fn status(
        &self,
        environment: usize,
        state: &EnvironmentState,
        record: &Record,
    ) -> EnvironmentStatus {
        let before = self.recorded(environment);
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
    pub(super) fn keep_released(&self, environment: usize, validations: &mut [ValidationStatus]) {
        let recorded = self.recorded(environment).into_iter();
        for before in recorded.flat_map(|recorded| &recorded.validations) {
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
        let mut validations: Vec<(usize, ValidationStatus)> = Vec::new();
        for &step in &self.blueprint.downstream[environment] {
            let behind = self.blueprint.steps[step]
                .deployment_providers()
                .any(|provider| stuck.get(&provider) == Some(&true));
            if self.blueprint.steps[step].validates() {
                let fact = self.fact(environment, record, step, behind);
                stuck.insert(step, is_stuck(fact.verdict));
                validations.push((step, self.written(environment, record, step, fact)));
            } else {
                let failed = self
                    .steps
                    .environment(step)
                    .is_some_and(|state| state.failed)
                    && self.is_of(environment, record, step);
                stuck.insert(step, behind || failed);
            }
        }
        validations.sort_by_key(|(step, _)| *step);
        validations
            .into_iter()
            .map(|(_, validation)| validation)
            .collect()
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
            Some(ValidationState::NotBegun { is_reported: true }) => ValidationFact::plain(Pending),
            Some(ValidationState::NotBegun { is_reported: false }) if behind => skipped(),
            Some(ValidationState::NotBegun { is_reported: false }) => {
                self.unbegun(environment, record, step)
            }
            Some(ValidationState::Running(_)) => self.unless_late(step, record, Running),
            None if passed_through => ValidationFact::plain(Succeeded),
            None => match self.recorded_of(environment, record, step) {
                Some(recorded) if matches!(recorded.verdict, Succeeded | Failed | TimedOut) => {
                    ValidationFact {
                        verdict: recorded.verdict,
                        message: recorded.message.clone(),
                    }
                }
                Some(recorded) if recorded.verdict == Running => {
                    self.unless_late(step, record, Running)
                }
                // It is not known whether it has begun, but what it would begin with is not there.
                _ if behind => skipped(),
                _ => self.unbegun(environment, record, step),
            },
        }
    }

    /// Of what is not proven to be in the environment no validation begins; only one that status says is awaited, is.
    fn unbegun(&self, environment: usize, record: &Record, step: usize) -> ValidationFact {
        use ValidationVerdict::{Pending, Running, Skipped};
        let recorded = self.recorded_of(environment, record, step);
        let is_awaited =
            recorded.is_some_and(|recorded| matches!(recorded.verdict, Pending | Running));
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
            .recorded_of(environment, record, step)
            .filter(|before| before.verdict == fact.verdict);
        ValidationStatus {
            resource: self.blueprint.steps[step].name.to_string(),
            verdict: fact.verdict,
            arrival: record.arrival.number,
            message: fact.message,
            since: before.map_or_else(|| whole_seconds(self.now), |before| before.since.clone()),
        }
    }

    fn recorded_of(
        &self,
        environment: usize,
        record: &Record,
        step: usize,
    ) -> Option<&ValidationStatus> {
        let name = &self.blueprint.steps[step].name;
        let recorded = self.recorded(environment)?.validations.iter();
        recorded.into_iter().find(|recorded| {
            *name == *recorded.resource && recorded.arrival == record.arrival.number
        })
    }

    /// Whether what went into a step is this arrival.
    fn is_of(&self, environment: usize, record: &Record, step: usize) -> bool {
        let arrivals = self.steps.arrivals(step);
        arrivals
            .and_then(|arrivals| arrivals.lineage.get(&environment))
            .is_some_and(|of| of.text == record.text)
    }

    /// Whether the validation speaks of this environment before all: those behind another one are told of there.
    pub(super) fn is_nearest(&self, environment: usize, validation: &str) -> bool {
        let step = self
            .blueprint
            .steps
            .iter()
            .position(|step| step.name == validation);
        step.and_then(|step| self.steps.arrivals(step))
            .is_some_and(|arrivals| arrivals.nearest.contains_key(&environment))
    }

    pub(super) fn begins_when_told(&self, step: usize) -> bool {
        matches!(
            self.steps.validation(step),
            Some(ValidationState::NotBegun { is_reported: true })
        )
    }

    /// How much longer the environment is kept for a validation; `None` for ever, or as long as its template is not there.
    pub(super) fn time_left(&self, step: usize, record: &Record) -> Option<Duration> {
        let template = self.steps.result(step)?.template.as_deref()?;
        time_left(template, record, &self.now.0)
    }
}

/// What status says of an arrival.
pub(super) fn deployed(record: &Record) -> DeployedRevision {
    DeployedRevision {
        revision: record.revision(),
        url: record.url(),
        arrival: record.arrival.number,
        since: record.since.clone(),
        record: record.in_status.clone(),
        unproven: record.in_status.is_none(),
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
