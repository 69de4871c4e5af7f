//! A finished walk: what is to be deleted, and then what to report.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use api_types::condition::cut;
use api_types::{BlueprintRef, Condition, ProvenanceInput, StampedRef};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use crate::owner::owner_status::{ENVIRONMENTS, OwnerStatus, object_ref, stamped_ref};
use crate::status::conditions::Conditions;
use crate::status::entry::{Entry, EntryMaker};
use crate::status::environments::EnvironmentReport;
use crate::status::explanation::{ExplainedStep, Explanation};
use crate::status::report::{self, Extras, Kept};
use crate::step::end::StepResult;
use crate::step::error::StepError;
use crate::template::updates;
use crate::values::redaction::Taint;
use crate::walk::Walk;
use crate::walk::keep::{Keeping, Kept as KeptOutputs};
use crate::walk::orphans::{CurrentStep, Found, Orphans};
use crate::{
    ArtifactWrite, Blueprint, Ended, ErrorKind, FailedRemoval, ObjectRef, Outcome, Owner,
    OwnerEvent, Removal, Retry, ShellFacts,
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
    /// Its labels; those of docs/behaviour/stamping.md#labels are read.
    pub labels: BTreeMap<String, String>,
    /// Whether it is being deleted.
    pub terminating: bool,
}

/// A finished walk: what is to be deleted, and then what to report.
pub struct Conclusion<'a> {
    owner: &'a Owner,
    blueprint: &'a Blueprint,
    now: Time,
    explanation: Explanation<'a>,
    /// Of the steps, in blueprint order, and then of environments.
    events: Vec<OwnerEvent>,
    removals: Vec<Removal>,
    /// What is no longer wanted and stays for now.
    kept: Vec<Kept>,
    /// What is kept as Artifacts.
    kept_outputs: KeptOutputs,
    /// Whether an immutable object was made: until status knows it, nobody else does.
    made_run: bool,
    /// When a step that waits has to be looked at again.
    again: Option<Duration>,
    /// Whether something waits until status tells of it: the next update of a step, or that somebody has changed an object.
    is_awaited: bool,
    /// See [`Outcome::tells_all`].
    tells_all: bool,
    environments: EnvironmentReport,
    /// What the shell met with.
    pub shell: ShellFacts,
    /// What came from Secrets, of all steps.
    taint: Taint,
}

impl<'a> Conclusion<'a> {
    pub(super) fn of(mut walk: Walk<'a>, known: &[KnownObject]) -> Self {
        let steps = 0..walk.blueprint.steps.len();
        let taints: Vec<Taint> = steps.map(|step| walk.steps.taint(step)).collect();
        let inputs: Vec<Vec<ProvenanceInput>> = (0..walk.blueprint.steps.len())
            .map(|step| walk.inputs_of_attributed(step))
            .collect();
        let updates = walk.steps.take_weighed();
        let mut environments = EnvironmentReport::of(&walk.steps, &walk.owner.status, &walk.now);
        let is_all_confirmed = walk.steps.is_all_confirmed();
        let Walk {
            owner,
            blueprint,
            templates,
            now,
            key,
            steps,
            artifacts,
            ..
        } = walk;
        let results = steps.into_results();
        let tells_all = is_all_confirmed && results.iter().any(StepResult::is_attributed);
        let maker = |step: usize| EntryMaker {
            step: &blueprint.steps[step],
            previous: owner.status.resource(&blueprint.steps[step].name),
            is_of_another_blueprint: !owner.status.is_of(&blueprint.name),
            taint: &taints[step],
            inputs: &inputs[step],
            updates: updates[step].as_ref(),
            artifacts: &artifacts,
            key: &key,
            now: &now,
        };
        let mut entries: Vec<Entry> = results
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
        let keeping = Keeping {
            owner,
            blueprint,
            known: &artifacts,
        };
        let kept_outputs = keeping.keep(entries.iter_mut().map(|it| &mut it.status), &results);
        let current = current_steps(&entries, &results);
        let orphans = Orphans::new(blueprint, current, known, templates);
        let Found { removals, kept } = orphans.find(&owner.status);
        let mut events: Vec<OwnerEvent> = Vec::new();
        for entry in &mut entries {
            events.append(&mut entry.events);
        }
        events.append(&mut environments.events);
        let taint = taints.iter().fold(Taint::NONE, Taint::and);
        let removals = with_superseded(&results, removals);
        let made_run = results.iter().any(StepResult::made_run);
        let has_updates = blueprint.steps.iter().zip(&updates).any(|(step, weighed)| {
            let before = owner.status.resource(&step.name);
            let before = before.and_then(|entry| entry.updates.as_ref());
            let now = weighed.as_ref().map(|it| &it.stack);
            before
                .zip(now)
                .is_some_and(|(before, now)| updates::are_others(before, now))
        });
        let has_doubts = blueprint.steps.iter().zip(&entries).any(|(step, entry)| {
            let before = owner.status.resource(&step.name);
            let before = before.and_then(|before| before.applied.as_ref());
            let before = before.map_or(&[][..], |applied| &applied.doubtful);
            let applied = entry.status.applied.iter();
            let mut now = applied.flat_map(|applied| &applied.doubtful);
            now.any(|doubt| !before.contains(doubt))
        });
        let next_update = updates.iter().flatten().filter_map(|it| it.again);
        let next_doubt = has_doubts.then_some(Duration::ZERO);
        let conditions = Conditions::new(&owner.status.conditions, &now);
        let steps = explained(entries, results);
        Self {
            explanation: Explanation {
                blueprint: Some(blueprint.name.to_string()),
                ..Explanation::of_walk(steps, conditions, blueprint.family, &taint)
            },
            owner,
            blueprint,
            events,
            removals,
            kept,
            kept_outputs,
            made_run,
            again: next_update.chain(next_doubt).min(),
            is_awaited: has_updates || has_doubts,
            tells_all,
            environments,
            shell: ShellFacts::default(),
            taint,
            now,
        }
    }

    /// Why the owner is as it is, as far as the walk knows.
    pub fn explanation(&self) -> &Explanation<'a> {
        &self.explanation
    }

    pub(super) fn into_explanation(self) -> Explanation<'a> {
        self.explanation
    }

    /// What is to be deleted with the owner's rights, a uid being the precondition.
    ///
    /// A removal without uid is known from status only: the object must be read, and left alone unless its controller
    /// owner reference is this owner's.
    pub fn removals(&self) -> &[Removal] {
        &self.removals
    }

    /// The Artifacts that are to be written, with the controller's own rights, before the status. What was not goes into
    /// [`ShellFacts::unkept`].
    pub fn artifacts(&self) -> &[ArtifactWrite] {
        &self.kept_outputs.writes
    }

    /// The outcome, given the deletions that failed (NotFound is no failure) and why.
    pub fn report(mut self, failed: &[FailedRemoval]) -> Outcome {
        let failed = &report::scrubbed(failed, &self.taint);
        let conditions = self.conditions(failed);
        let unwatched = report::unwatched_event(&self.owner.status.conditions, &conditions);
        let status = self.status(conditions, failed);
        let status = with_good_by_kept(status, &self.owner.status);
        let mut events = std::mem::take(&mut self.events);
        events.extend(unwatched);
        events.extend(self.removal_events(failed));
        for event in &mut events {
            // Names of objects, above all: a template may have put anything into them.
            event.message = self.taint.scrub(std::mem::take(&mut event.message));
        }
        let retries = self.retries(failed);
        let retry = retries.last().copied().unwrap_or(Retry::AwaitChange);
        // Beside an error that backs off ever longer, one that is to be tried slowly still is.
        let slowly = (retry > Retry::Slow && retries.contains(&Retry::Slow)).then_some(SLOWLY);
        let again = self.environments.again.into_iter().chain(slowly);
        let again = again.chain(self.again).min();
        let kinds = self.error_kinds(failed);
        let has_environments =
            !(status.environments.is_empty() && self.owner.status.environments.is_empty());
        let makes_history = self.makes_history();
        let outcome = report::outcome(self.owner, &status, events, self.removals, retry);
        Outcome {
            again,
            write_now: self.made_run
                || self.is_awaited
                || self.environments.is_urgent()
                || makes_history,
            unless_changed: has_environments.then_some(ENVIRONMENTS),
            end: Ended::of(kinds, outcome.ready),
            obsolete_artifacts: self.kept_outputs.obsolete,
            tells_all: self.tells_all,
            ..outcome
        }
    }

    /// Whether an output is kept that a status which is held back would never name if another came meanwhile.
    fn makes_history(&self) -> bool {
        self.blueprint.retains() && !self.kept_outputs.writes.is_empty()
    }

    /// Takes the entries of the steps.
    fn status(&mut self, conditions: Vec<Condition>, failed: &[FailedRemoval]) -> OwnerStatus {
        let steps = self.explanation.steps.iter_mut();
        let unkept = &self.shell.unkept;
        let entries = steps.map(|step| {
            let mut entry = std::mem::take(&mut step.entry);
            entry.artifacts.retain(|kept| !unkept.contains(&kept.name));
            entry
        });
        let entries = entries.collect();
        let before = self.owner.status.summary.as_ref();
        let first = self.explanation.first.as_ref();
        OwnerStatus {
            observed_generation: Some(self.owner.generation),
            conditions,
            blueprint_ref: BlueprintRef::new(
                self.blueprint.family.blueprint_kind(),
                self.blueprint.name.as_str(),
            ),
            environments: self.environments.statuses.clone(),
            pending_removals: self.pending_removals(failed),
            stamped_for: self.owner.stamped_for.clone(),
            summary: first.map(|first| first.summary(before, &self.now)),
            resources: entries,
        }
    }

    fn removal_events(&self, failed: &[FailedRemoval]) -> Vec<OwnerEvent> {
        let was_told = |object: &ObjectRef, why: &str| {
            let why = cut(why.to_owned(), MOST_REASON_CHARS);
            let pending = self.owner.status.pending_removals.iter();
            let mut so = pending.filter(|it| it.message.as_ref() == Some(&why));
            so.any(|it| object_ref(it).is_some_and(|it| it.is_same(object)))
        };
        report::removal_events(&self.removals, failed, &self.shell.absent, &was_told)
    }

    fn retries(&self, failed: &[FailedRemoval]) -> BTreeSet<Retry> {
        let errors = self.explanation.errors().map(|error| error.verdict().retry);
        let deletions = failed.iter().map(|_| Retry::Backoff);
        errors.chain(deletions).collect()
    }

    fn error_kinds(&self, failed: &[FailedRemoval]) -> Vec<ErrorKind> {
        let errors = self.explanation.errors().map(|error| error.verdict().kind);
        let deletions = failed
            .iter()
            .map(|(_, why)| ErrorKind::of_deletion(why.kind));
        errors.chain(deletions).collect()
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

    fn conditions(&self, failed: &[FailedRemoval]) -> Vec<Condition> {
        let explained = self.explanation.conditions.clone();
        let before = &self.owner.status.conditions;
        let mut conditions = Conditions::go_on(explained, before, &self.now);
        let contested = self.explanation.errors().filter(|error| {
            matches!(
                error,
                StepError::Contested { .. } | StepError::Undone { .. }
            )
        });
        let extras = Extras {
            failed,
            kept: &self.kept,
            contested: contested.map(ToString::to_string).collect(),
            unwatched: &self.shell.unwatched,
        };
        extras.add(&mut conditions);
        if let Some(first) = &self.explanation.first {
            first.add(&mut conditions);
        }
        conditions.finish()
    }
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

/// The entries with why each step failed.
fn explained<'a>(entries: Vec<Entry>, results: Vec<StepResult>) -> Vec<ExplainedStep<'a>> {
    let steps = entries.into_iter().zip(results);
    let steps = steps.map(|(entry, result)| ExplainedStep {
        entry: entry.status,
        error: result.end.into_error(),
        ..ExplainedStep::default()
    });
    steps.collect()
}

/// What rules went by spares a read after a restart. That it has changed, and nothing else, is no reason for a write.
fn with_good_by_kept(mut status: OwnerStatus, before: &OwnerStatus) -> OwnerStatus {
    let are_as_many = status.resources.len() == before.resources.len();
    if !are_as_many || good_by(&status).eq(good_by(before)) {
        return status;
    }
    let of_all = |status| -> Vec<Option<String>> {
        let good_by = good_by(status);
        good_by.map(Option::<&String>::cloned).collect()
    };
    let (present, former) = (of_all(&status), of_all(before));
    set_good_by(&mut status, former);
    if status != *before {
        set_good_by(&mut status, present);
    }
    status
}

fn good_by(status: &OwnerStatus) -> impl Iterator<Item = Option<&String>> {
    let entries = status.resources.iter();
    entries.map(|entry| entry.applied.as_ref()?.good_by.as_ref())
}

fn set_good_by(status: &mut OwnerStatus, good_by: Vec<Option<String>>) {
    for (entry, good_by) in status.resources.iter_mut().zip(good_by) {
        if let Some(applied) = &mut entry.applied {
            applied.good_by = good_by;
        }
    }
}
