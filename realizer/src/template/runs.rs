//! What the owner's status remembers of the objects that an immutable step made.
//!
//! A pruner, `ttlSecondsAfterFinished` or a person deletes runs that have ended. What such a run came to is still known, so
//! it is not run again: a pipeline that is cleaned up every hour would otherwise run every hour. And an object counts only
//! if status knows it: whoever may create objects in the namespace can write any label and annotation on them.
//!
//! ```text
//!  found in the cluster ──┐                      ┌─▶ Submit(position): it is there, or is to be made
//!                         ├─▶ newest ─▶ decide ──┤
//!  remembered by status ──┘                      └─▶ Ended: nothing is made, what it came to is handed on
//! ```

use std::collections::BTreeMap;

use api_types::names::ResourceName;
use api_types::runnable::RunResult;
use api_types::{ConditionStatus, ResourceStatus, StampedRun};
use serde_json::Value;

use crate::owner::owner_status::OwnerStatus;
use crate::template::foreign;
use crate::template::goodness::{NotDone, RuleInputs};
use crate::template::judgement::ValidationState;
use crate::template::others::Others;
use crate::template::outputs::{Output, ReadError};
use crate::values::redaction::Taint;
use crate::{Blueprint, KnownRun, Observed, Position, Template};

/// The most objects of a step that status remembers.
const MOST_RUNS: usize = 64;

/// The most bytes of outputs, as JSON, that status remembers of a run.
const MOST_OUTPUT_BYTES: usize = 16 * 1024;

/// Positions are 64 bit integers with a sign in the schema.
pub(crate) const HIGHEST: u64 = i64::MAX as u64;

/// The objects of one immutable step.
#[derive(Clone, Copy)]
pub(crate) struct Runs<'r> {
    pub(crate) template: &'r Template,
    /// What the cluster holds.
    pub(crate) found: &'r [Observed],
    /// What status remembers.
    pub(crate) recorded: &'r [StampedRun],
    /// What the deployment input holds.
    pub(crate) deployment: Option<&'r Output>,
    /// What of the inputs came from Secrets.
    pub(crate) taint: &'r Taint,
    /// The objects that the rules read beside them.
    pub(crate) others: Option<&'r Others>,
}

/// The objects of a step that status knows, as long as the step makes its objects from the same template under the same
/// blueprint: another one has a family of its own.
pub(crate) fn recorded_of<'s>(
    status: &'s OwnerStatus,
    blueprint: &Blueprint,
    step: &ResourceName,
    template: &Template,
) -> &'s [StampedRun] {
    let is_of_template = |entry: &&ResourceStatus| {
        entry.template_ref.as_ref().is_some_and(|reference| {
            reference.kind.as_deref() == Some(template.kind.as_str())
                && reference.name.as_deref() == Some(template.name.as_str())
        })
    };
    if !status.is_of(&blueprint.name) {
        return &[];
    }
    let entry = status.resource(step).filter(is_of_template);
    entry.map_or(&[], |entry| &entry.runs)
}

/// What is to be done for a rendering.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Due {
    /// The object at this position is to be there.
    Submit(Position),
    /// The object has ended, and somebody deleted it.
    Ended(StampedRun),
}

/// An object of the step, whether it is there or not.
struct Run {
    sequence: u64,
    digest: Option<String>,
    is_live: bool,
    is_found: bool,
    record: StampedRun,
}

/// The objects that status knows, for the shell.
pub(crate) fn known(recorded: &[StampedRun]) -> std::sync::Arc<[KnownRun]> {
    let known = recorded.iter().map(|run| KnownRun {
        uid: Some(run.uid.clone()),
        name: run.name.clone(),
        started: None,
        digest: run.digest.clone(),
        sequence: run.sequence,
        state: run.state.clone(),
        beside: run.beside.clone(),
    });
    known.collect()
}

impl Runs<'_> {
    /// Decides what is to be done for the rendering with this digest.
    pub(crate) fn decide(&self, digest: &str) -> Due {
        let runs = self.all();
        let highest = runs.iter().map(|run| run.sequence).max().unwrap_or(0);
        let next = highest.saturating_add(1).min(HIGHEST);
        let is_of_rendering = |run: &&Run| run.digest.as_deref() == Some(digest);
        // What somebody deleted before its end came to nothing and does not count.
        let counts = |run: &&Run| run.is_live || run.record.result != RunResult::Running;
        let newest = runs.iter().filter(counts).max_by_key(|run| run.sequence);
        match newest.filter(is_of_rendering) {
            Some(run) if run.is_live => Due::Submit(Position {
                sequence: run.sequence,
                is_there: true,
            }),
            Some(run) if self.knows_outputs(&run.record) => Due::Ended(run.record.clone()),
            Some(_) => Due::Submit(Position::to_be_made(next)),
            // The same position has the same name: an object that only lost its labels is found by it again.
            None => {
                let vanished = runs
                    .iter()
                    .filter(is_of_rendering)
                    .find(|run| run.sequence == highest && !run.is_found && !counts(run));
                let sequence = vanished.map_or(next, |run| run.sequence);
                Due::Submit(Position::to_be_made(sequence))
            }
        }
    }

    /// What status is to remember, newest first: every known object that is there, and of those that are gone the newest and
    /// the newest that succeeded. A `tainted` step stamps values of a Secret, of which nothing may be told.
    pub(crate) fn records(&self, tainted: bool) -> Vec<StampedRun> {
        let mut runs = self.all();
        runs.sort_by_key(|run| std::cmp::Reverse(run.sequence));
        let newest = runs.first().map(|run| run.sequence);
        let succeeded = runs
            .iter()
            .find(|run| run.record.result == RunResult::Succeeded)
            .map(|run| run.sequence);
        let keeps_state = !tainted && self.template.is_attributed();
        let needed = |run: &Run| {
            let has_ended = run.record.result != RunResult::Running;
            let is_newest = newest == Some(run.sequence) || succeeded == Some(run.sequence);
            run.is_found || (has_ended && is_newest)
        };
        let records = runs.into_iter().filter(needed).map(|run| {
            let is_newest = succeeded == Some(run.sequence);
            let keeps_outputs = is_newest && !tainted && !self.is_validation();
            let outputs = if keeps_outputs {
                run.record.outputs
            } else {
                BTreeMap::new()
            };
            StampedRun {
                digest: run.digest.filter(|_| !tainted),
                state: run.record.state.filter(|_| keeps_state),
                beside: run.record.beside.filter(|_| keeps_state),
                outputs,
                ..run.record
            }
        });
        records.take(MOST_RUNS).collect()
    }

    /// The outputs of the newest run that succeeded and is gone, with its position.
    pub(crate) fn remembered_output(&self) -> Option<(u64, Output)> {
        let gone = self.all().into_iter().filter(|run| !run.is_live);
        gone.filter(|run| run.record.result == RunResult::Succeeded)
            .filter_map(|run| Some((run.sequence, self.output_of(&run.record)?)))
            .max_by_key(|(sequence, _)| *sequence)
    }

    fn all(&self) -> Vec<Run> {
        let found = self.found.iter().filter(|found| found.is_known);
        let found: Vec<Run> = found.map(|found| self.found(found)).collect();
        let gone = self
            .recorded
            .iter()
            .filter(|recorded| !found.iter().any(|run| run.record.uid == recorded.uid))
            .map(|recorded| Run {
                sequence: recorded.sequence,
                digest: recorded.digest.clone(),
                is_live: false,
                is_found: false,
                record: recorded.clone(),
            });
        let gone: Vec<Run> = gone.collect();
        found.into_iter().chain(gone).collect()
    }

    fn found(&self, found: &Observed) -> Run {
        let text = |pointer| found.object.pointer(pointer).and_then(Value::as_str);
        let uid = text("/metadata/uid").unwrap_or_default();
        let recorded = self.recorded.iter().find(|recorded| recorded.uid == uid);
        let output = self.read(found);
        let result = self.result(found, &output);
        let output = output.ok();
        // A run that has ended says no more than it did; what is on its way out may have lost what it said.
        let recorded = recorded.filter(|recorded| {
            let has_ended = recorded.result != RunResult::Running;
            (found.terminating && result == RunResult::Running) || (self.has_others() && has_ended)
        });
        Run {
            sequence: found.sequence,
            digest: found.digest.clone(),
            is_live: !found.terminating,
            is_found: !found.is_gone,
            record: recorded.cloned().unwrap_or_else(|| StampedRun {
                name: text("/metadata/name").unwrap_or_default().to_owned(),
                uid: uid.to_owned(),
                digest: found.digest.clone(),
                sequence: found.sequence,
                state: found.state.clone(),
                beside: self.made_with(found),
                result,
                outputs: output.map_or_else(BTreeMap::new, |output| kept(&output)),
            }),
        }
    }

    /// Whether the rules read other objects.
    fn has_others(&self) -> bool {
        !self.template.goodness.others().is_empty()
    }

    /// What it held beside the rendering when it was made.
    fn made_with(&self, found: &Observed) -> Option<Vec<String>> {
        let beside = found.beside.as_ref();
        let beside = beside.filter(|_| self.template.refuses_foreign_fields)?;
        beside.expected.clone()?.ok()
    }

    /// What somebody changed came to nothing: it must not be handed on once it is gone, either.
    fn read(&self, found: &Observed) -> Result<Output, ReadError> {
        if self.template.is_attributed() && !found.unchanged {
            return Err(ReadError::Changed);
        }
        let is_of_others = self.others.map(|others| &others.of_rendering) == found.digest.as_ref();
        if self.has_others() && !is_of_others {
            let why = "what is read beside it is that of another run";
            return Err(ReadError::NotDone(NotDone::Condition(why.to_owned())));
        }
        let output = Output::read(
            self.template,
            Some(&found.object),
            self.deployment,
            self.taint,
            RuleInputs {
                others: self.others.map_or(&[], |others| &others.read),
                ..RuleInputs::default()
            },
        )?;
        if self.template.refuses_foreign_fields {
            foreign::refuse_in_run(found)?;
        }
        Ok(output)
    }

    /// What a run came to. Without a rule nothing says that an object has ended, except that its outputs are there.
    fn result(&self, found: &Observed, output: &Result<Output, ReadError>) -> RunResult {
        if self.template.is_attributed() {
            return match output {
                Ok(_) => RunResult::Succeeded,
                Err(ReadError::NotDone(NotDone::Failed(_))) => RunResult::Failed,
                Err(_) => RunResult::Running,
            };
        }
        if let Some(judgement) = self.template.judgement() {
            return match judgement.judge(self.template, &found.object, self.taint) {
                ValidationState::Succeeded => RunResult::Succeeded,
                ValidationState::Failed(_) => RunResult::Failed,
                ValidationState::Running(_) | ValidationState::NotBegun { .. } => {
                    RunResult::Running
                }
            };
        }
        if self.template.health.is_always_healthy() {
            let has_outputs = output
                .as_ref()
                .is_ok_and(|output| !output.named().is_empty());
            return if has_outputs {
                RunResult::Succeeded
            } else {
                RunResult::Running
            };
        }
        match self.template.family_rule().judge(found) {
            ConditionStatus::True => RunResult::Succeeded,
            ConditionStatus::False => RunResult::Failed,
            ConditionStatus::Unknown => RunResult::Running,
        }
    }

    /// What a validation hands on does not come from its object: by the time it is asked for, the revision that goes in may be
    /// another one than the run has validated.
    fn is_validation(&self) -> bool {
        self.template.judgement().is_some()
    }

    fn knows_outputs(&self, run: &StampedRun) -> bool {
        self.is_validation() || run.result == RunResult::Failed || self.output_of(run).is_some()
    }

    /// The outputs of a run as status remembers them.
    pub(crate) fn output_of(&self, run: &StampedRun) -> Option<Output> {
        // What a validation hands on is decided by its arrival.
        let is_read = !self.is_validation();
        let value = |name: &str| run.outputs.get(name).cloned();
        let values = self.template.outputs.kept(value).filter(|_| is_read)?;
        Some(Output::of(values, Taint::NONE))
    }
}

/// The outputs as they are kept: nothing of a Secret, and nothing large.
fn kept(output: &Output) -> BTreeMap<String, Value> {
    if !output.taint.is_none() {
        return BTreeMap::new();
    }
    let named = output.named().into_iter();
    let values: BTreeMap<String, Value> = named
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    let bytes: usize = values.values().map(|value| value.to_string().len()).sum();
    if bytes > MOST_OUTPUT_BYTES {
        return BTreeMap::new();
    }
    values
}
