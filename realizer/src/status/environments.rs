//! What a walk learned about environments: `status.environments`, the events that tell of it, and when to look again.

mod facts;

use std::collections::BTreeMap;
use std::time::Duration;

use api_types::event::EventReason;
use api_types::{
    Condition, ConditionStatus, ConditionType, DeployedRevision, EnvironmentStatus, Reason,
    ValidationStatus, ValidationVerdict, labels,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use self::facts::{WalkFacts, deployed};
use crate::OwnerEvent;
use crate::environment::state::EnvironmentState;
use crate::owner::owner_status::OwnerStatus;
use crate::status::conditions::Conditions;
use crate::status::events;
use crate::step::state::Steps;

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
                None => report.statuses.extend(facts.recorded(environment).cloned()),
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
            .filter(|recorded| !recorded.verdict.releases())
            .map(|recorded| recorded.resource.as_str())
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
            let name = &facts.blueprint.steps[validation].name;
            if facts.begins_when_told(validation) {
                self.look_again(Duration::ZERO);
            }
            if unfinished.contains(&name.as_str())
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
        let before = facts.recorded(environment);
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
        let before = facts.recorded(environment);
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
        for recorded in &status.validations {
            let known = before
                .into_iter()
                .flat_map(|before| &before.validations)
                .any(|before| {
                    (&before.resource, before.arrival, before.verdict)
                        == (&recorded.resource, recorded.arrival, recorded.verdict)
                });
            if !known && facts.is_nearest(environment, &recorded.resource) {
                self.events
                    .extend(verdict_event(status, deployed, recorded));
            }
        }
    }
}

fn verdict_event(
    status: &EnvironmentStatus,
    deployed: &DeployedRevision,
    recorded: &ValidationStatus,
) -> Option<OwnerEvent> {
    let (reason, what) = match recorded.verdict {
        ValidationVerdict::Succeeded => (EventReason::ValidationSucceeded, "succeeded"),
        ValidationVerdict::Failed => (EventReason::ValidationFailed, "failed"),
        ValidationVerdict::TimedOut => (EventReason::ValidationTimedOut, "did not end in time"),
        ValidationVerdict::Pending | ValidationVerdict::Running | ValidationVerdict::Skipped => {
            return None;
        }
    };
    let cause = recorded
        .message
        .as_ref()
        .map(|cause| format!(": {cause}"))
        .unwrap_or_default();
    Some(events::of_status(
        reason,
        format!(
            "validation [{}] {what} for revision [{}] in environment [{}]{cause}",
            recorded.resource, deployed.revision, status.resource
        ),
    ))
}
