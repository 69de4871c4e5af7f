//! A finished walk: what is to be deleted, and then what to report.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api_types::condition::cut;
use api_types::{BlueprintRef, Condition, ConditionStatus, ConditionType, Reason, StampedRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::owner::owner_status::{ENVIRONMENTS, OwnerStatus, object_ref, stamped_ref};
use crate::status::conditions::{self, Conditions, Deciding};
use crate::status::entry::{Entry, EntryMaker};
use crate::status::environments::EnvironmentReport;
use crate::status::events;
use crate::status::progress::{self, Hindrance, Standing};
use crate::status::report::{self, Extras, Kept};
use crate::step::end::StepResult;
use crate::step::error::StepError;
use crate::values::redaction::Taint;
use crate::walk::Walk;
use crate::walk::orphans::{CurrentStep, Found, Orphans};
use crate::{
    Blueprint, Ended, ErrorKind, FailedRemoval, ObjectRef, Outcome, Owner, Realization, Removal,
    Retry, SubmitFailure,
};

/// The most characters that status says of why an object is still there.
const MOST_REASON_CHARS: usize = 1024;

/// The most objects that status remembers to delete. Those beyond are found in the shell's caches.
const MOST_PENDING: usize = 100;

/// [`Retry::Slow`] in time: within 60 s, whatever the queue adds.
const SLOWLY: Duration = Duration::from_secs(50);

/// An object of the owner in the shell's caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownObject {
    /// Which object; with uid.
    pub object: ObjectRef,
    /// Its labels; those of spec 3.6 are read.
    pub labels: BTreeMap<String, String>,
    /// Whether it is being deleted.
    pub terminating: bool,
}

/// A finished walk: what is to be deleted, and then what to report.
pub struct Conclusion<'a> {
    owner: &'a Owner,
    blueprint: &'a Blueprint,
    now: Time,
    /// In blueprint order.
    entries: Vec<Entry>,
    /// In blueprint order, of the steps that failed; with the index of the step.
    errors: Vec<(usize, StepError)>,
    removals: Vec<Removal>,
    /// What is no longer wanted and stays for now.
    kept: Vec<Kept>,
    /// Whether an immutable object was made: until status knows it, nobody else does.
    made_run: bool,
    environments: EnvironmentReport,
    /// What is missing to watch the kinds of some steps.
    unwatched: BTreeSet<String>,
    /// What was to be deleted and was gone already, or on its way out.
    absent: Vec<Removal>,
    /// What came from Secrets, of all steps.
    taint: Taint,
}

impl<'a> Conclusion<'a> {
    pub(super) fn of(walk: Walk<'a>, known: &[KnownObject]) -> Self {
        let steps = 0..walk.blueprint.steps.len();
        let taints: Vec<Taint> = steps.map(|step| walk.steps.taint(step)).collect();
        let environments = EnvironmentReport::of(&walk.steps, &walk.owner.status, &walk.now);
        let Walk {
            owner,
            blueprint,
            templates,
            now,
            key,
            steps,
        } = walk;
        let results = steps.into_results();
        let maker = |step: usize| EntryMaker {
            step: &blueprint.steps[step],
            previous: owner.status.resource(&blueprint.steps[step].name),
            is_of_another_blueprint: !owner.status.is_of(&blueprint.name),
            taint: &taints[step],
            key: &key,
            now: &now,
        };
        let entries: Vec<Entry> = results
            .iter()
            .enumerate()
            .map(|(step, result)| {
                let maker = maker(step);
                let mut entry = maker.make(result);
                let held = environments.condition(step, maker.previous_conditions(), &now);
                entry.status.conditions.extend(held);
                entry
            })
            .collect();
        let current = current_steps(&entries, &results);
        let orphans = Orphans::new(blueprint, current, known, templates);
        let Found { removals, kept } = orphans.find(&owner.status);
        Self {
            owner,
            blueprint,
            entries,
            removals: with_superseded(&results, removals),
            kept,
            made_run: results.iter().any(StepResult::made_run),
            errors: errors(results),
            environments,
            unwatched: BTreeSet::new(),
            absent: Vec::new(),
            taint: taints.iter().fold(Taint::NONE, Taint::and),
            now,
        }
    }

    /// Reports kinds whose objects the shell cannot watch, too: one text each that names the kind and what is missing.
    #[must_use]
    pub fn with_unwatched(self, unwatched: BTreeSet<String>) -> Self {
        Self { unwatched, ..self }
    }

    /// Tells of no deletion of these: they were gone already, or on their way out.
    #[must_use]
    pub fn with_absent(self, absent: Vec<Removal>) -> Self {
        Self { absent, ..self }
    }

    /// What is to be deleted with the owner's rights, a uid being the precondition.
    ///
    /// A removal without uid is known from status only: the object must be read, and left alone unless its controller
    /// owner reference is this owner's.
    pub fn removals(&self) -> &[Removal] {
        &self.removals
    }

    /// The outcome, given the deletions that failed (NotFound is no failure) and why.
    pub fn report(self, failed: &[FailedRemoval]) -> Outcome {
        let scrubbed = |(removal, failure): &FailedRemoval| {
            let message = self.taint.scrub(failure.message.as_str());
            let kind = failure.kind;
            (removal.clone(), SubmitFailure { kind, message })
        };
        let failed: &[FailedRemoval] = &failed.iter().map(scrubbed).collect::<Vec<_>>();
        let (conditions, hindrance) = self.conditions(failed);
        let unwatched = report::unwatched_event(&self.owner.status.conditions, &conditions);
        let status = OwnerStatus {
            observed_generation: Some(self.owner.generation),
            conditions,
            blueprint_ref: BlueprintRef::new(
                self.blueprint.family.blueprint_kind(),
                self.blueprint.name.as_str(),
            ),
            environments: self.environments.statuses.clone(),
            pending_removals: self.pending_removals(failed),
            stamped_for: self.owner.stamped_for.clone(),
            summary: hindrance
                .map(|hindrance| hindrance.summary(self.owner.status.summary.as_ref(), &self.now)),
            resources: self
                .entries
                .iter()
                .map(|entry| entry.status.clone())
                .collect(),
        };
        let errors = self.errors.iter().map(|(_, error)| error.verdict().retry);
        let retries: BTreeSet<Retry> = errors
            .chain(failed.iter().map(|_| Retry::Backoff))
            .collect();
        let retry = retries.last().copied().unwrap_or(Retry::AwaitChange);
        // Beside an error that backs off ever longer, one that is to be tried slowly still is.
        let slowly = (retry > Retry::Slow && retries.contains(&Retry::Slow)).then_some(SLOWLY);
        let mut events: Vec<_> = self
            .entries
            .into_iter()
            .flat_map(|entry| entry.events)
            .collect();
        let hindrances: Vec<ErrorKind> = self
            .errors
            .iter()
            .map(|(_, error)| error.verdict().kind)
            .chain(
                failed
                    .iter()
                    .map(|(_, why)| ErrorKind::of_deletion(why.kind)),
            )
            .collect();
        let write_now = self.made_run || self.environments.is_urgent();
        let has_environments =
            !(status.environments.is_empty() && self.owner.status.environments.is_empty());
        events.extend(self.environments.events);
        events.extend(unwatched);
        events.extend(report::removal_events(
            &self.removals,
            failed,
            &self.absent,
            &|object| {
                let mut pending = self.owner.status.pending_refs();
                pending.any(|pending| pending.is_same(object))
            },
        ));
        for event in &mut events {
            // Names of objects, above all: a template may have put anything into them.
            event.message = self.taint.scrub(std::mem::take(&mut event.message));
        }
        let outcome = report::outcome(self.owner, &status, events, self.removals, retry);
        Outcome {
            again: [self.environments.again, slowly]
                .into_iter()
                .flatten()
                .min(),
            write_now,
            unless_changed: has_environments.then_some(ENVIRONMENTS),
            end: Ended::of(hindrances, outcome.ready),
            ..outcome
        }
    }

    /// What is no longer wanted and still there, with the reason.
    fn pending_removals(&self, failed: &[FailedRemoval]) -> Vec<StampedRef> {
        let failed = failed.iter().map(|(removal, why)| (removal, &why.message));
        let kept = self.kept.iter().map(|kept| (&kept.removal, &kept.why));
        failed
            .chain(kept)
            .take(MOST_PENDING)
            .map(|(removal, why)| StampedRef {
                message: Some(cut(why.clone(), MOST_REASON_CHARS)),
                ..stamped_ref(&removal.object)
            })
            .collect()
    }

    fn conditions(&self, failed: &[FailedRemoval]) -> (Vec<Condition>, Option<Hindrance>) {
        let mut conditions = Conditions::new(&self.owner.status.conditions, &self.now);
        conditions.add(
            self.blueprint.family.blueprint_ready(),
            ConditionStatus::True,
            &Reason::Ready,
            "",
        );
        match self.errors.first() {
            Some((_, error)) => {
                let verdict = error.verdict();
                let message = error.to_string();
                conditions.add(
                    ConditionType::ResourcesSubmitted,
                    verdict.status,
                    &verdict.reason,
                    message,
                );
            }
            None => conditions.add(
                ConditionType::ResourcesSubmitted,
                ConditionStatus::True,
                &Reason::ResourceSubmissionComplete,
                "",
            ),
        }
        let (status, message) = self.health();
        conditions.add(
            ConditionType::ResourcesHealthy,
            status,
            &Reason::HealthyConditionRule,
            message,
        );
        conditions.derive_ready();
        let contested = self.errors.iter().map(|(_, error)| error).filter(|error| {
            matches!(
                error,
                StepError::Contested { .. } | StepError::Undone { .. }
            )
        });
        let extras = Extras {
            failed,
            kept: &self.kept,
            contested: contested.map(ToString::to_string).collect(),
            unwatched: &self.unwatched,
        };
        extras.add(&mut conditions);
        let unready = progress::unready(conditions.list()).cloned();
        let hindrance = unready.map(|ready| self.hindrance(&ready));
        if let Some(hindrance) = &hindrance {
            hindrance.add(&mut conditions);
        }
        (conditions.finish(), hindrance)
    }

    /// What holds the owner back.
    fn hindrance(&self, ready: &Condition) -> Hindrance {
        let steps = 0..self.entries.len();
        let concerns = steps.filter_map(|step| Some((self.concern(step)?, step)));
        match concerns.min_by_key(|(concern, step)| (concern.standing(), *step)) {
            Some((Concern::Error(error), step)) => self.failing(step, error),
            Some((Concern::Object(healthy), step)) => self.of_object(step, healthy),
            None => Hindrance::of(ready, ready.status == ConditionStatus::False),
        }
    }

    /// What is wrong with a step, if anything. A value that is awaited does not come from an object that says it is broken.
    fn concern(&self, step: usize) -> Option<Concern<'_>> {
        let mut errors = self.errors.iter();
        let error = errors.find(|(failed, _)| *failed == step);
        let error = error.map(|(_, error)| error);
        let unhealthy = self.unhealthy(step);
        let broken = unhealthy.filter(|healthy| {
            let waits = error.is_some_and(StepError::waits_for_object);
            waits && healthy.status == ConditionStatus::False
        });
        broken
            .map(Concern::Object)
            .or_else(|| error.map(Concern::Error))
            .or_else(|| unhealthy.map(Concern::Object))
    }

    fn failing(&self, step: usize, error: &StepError) -> Hindrance {
        let message = match error.unreadable() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        self.at_step(step, error.is_stuck(), error.verdict().reason, message)
    }

    /// Condition `Healthy` of the step, unless it is True or there is none.
    fn unhealthy(&self, step: usize) -> Option<&Condition> {
        let conditions = &self.entries[step].status.conditions;
        conditions::of_type(conditions, ConditionType::Healthy)
            .filter(|healthy| healthy.status != ConditionStatus::True)
    }

    fn of_object(&self, step: usize, healthy: &Condition) -> Hindrance {
        let is_stuck = healthy.status == ConditionStatus::False;
        let reason = Reason::copied(&healthy.reason);
        self.at_step(step, is_stuck, reason, healthy.message.clone())
    }

    fn at_step(&self, step: usize, is_stuck: bool, reason: Reason, message: String) -> Hindrance {
        let status = &self.entries[step].status;
        let stamped = status.stamped_ref.as_ref().and_then(object_ref);
        let shown = stamped.and_then(|object| events::shown(&object));
        Hindrance {
            is_stuck,
            step: Some(status.name.clone()),
            object: shown.map(|shown| self.taint.scrub(shown)),
            reason,
            message: self.taint.scrub(message),
        }
    }

    /// The conditions `Healthy` of all steps that have one, taken together.
    fn health(&self) -> (ConditionStatus, String) {
        let healthy: Vec<&Condition> = self
            .entries
            .iter()
            .filter_map(|entry| {
                conditions::of_type(&entry.status.conditions, ConditionType::Healthy)
            })
            .collect();
        if healthy.is_empty() {
            return (ConditionStatus::Unknown, String::new());
        }
        match Deciding::among(healthy).condition() {
            Some(condition) => (condition.status, condition.message.clone()),
            None => (ConditionStatus::True, String::new()),
        }
    }
}

/// What is wrong with a step.
enum Concern<'c> {
    Error(&'c StepError),
    /// Condition `Healthy`, which is not True.
    Object(&'c Condition),
}

impl Concern<'_> {
    fn standing(&self) -> Standing {
        match self {
            Self::Error(error) if error.is_stuck() => Standing::Stuck,
            Self::Error(error) if error.waits_for_another_step() => Standing::Awaits,
            Self::Object(healthy) if healthy.status == ConditionStatus::False => Standing::Stuck,
            Self::Error(_) | Self::Object(_) => Standing::GoesOn,
        }
    }
}

/// What retention deletes, and then what no step stands for.
fn with_superseded(results: &[StepResult], orphans: Vec<Removal>) -> Vec<Removal> {
    let superseded = results.iter().flat_map(StepResult::superseded);
    let mut removals: Vec<Removal> = superseded.cloned().collect();
    for orphan in orphans {
        let is_same = |removal: &Removal| removal.object.is_same(&orphan.object);
        if !removals.iter().any(is_same) {
            removals.push(orphan);
        }
    }
    removals
}

/// The errors with the index of the step.
fn errors(results: Vec<StepResult>) -> Vec<(usize, StepError)> {
    let ends = results.into_iter().enumerate();
    ends.filter_map(|(step, result)| Some((step, result.end.into_error()?)))
        .collect()
}

fn current_steps<'r>(entries: &'r [Entry], results: &'r [StepResult]) -> Vec<CurrentStep<'r>> {
    entries
        .iter()
        .zip(results)
        .map(|(entry, result)| CurrentStep {
            status: &entry.status,
            target: result.target.as_ref(),
            is_settled: entry.is_settled,
            lifecycle: result.template.as_ref().map(|template| template.lifecycle),
        })
        .collect()
}
