//! From what the cluster holds to health, outputs and retention
//! (docs/behaviour/objects.md#retention, docs/behaviour/outputs.md#reading).

mod doubt;
mod errors;
mod evidence;
mod foreign_fields;

use api_types::names::{ObjectName, ResourceName};
use api_types::runnable::RunResult;
use api_types::{AppliedObject, OutputStatus, ResourceStatus, StampedRun};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::owner::owner_status::object_ref;
use crate::step::end::{Memory, StepEnd, Submitted};
use crate::step::error::StepError;
use crate::template::family_members::{newest_healthy, superseded};
use crate::template::goodness::{NotDone, RuleInputs};
use crate::template::health::{Health, Subject};
use crate::template::outputs::{Output, ReadError};
use crate::template::provenance::{Acceptance, Basis};
use crate::template::runs::Runs;
use crate::values::redaction::{self, Taint};
use crate::{Observation, Observed, Removal, StatusKey, Submission, Template, Write};

/// One step whose submission was answered.
pub(crate) struct Observing<'r> {
    pub(crate) blueprint: &'r ObjectName,
    pub(crate) step: &'r ResourceName,
    pub(crate) template: &'r Template,
    /// The deployment that goes in, if there is one.
    pub(crate) deployment: Option<Output>,
    /// What of the inputs came from Secrets.
    pub(crate) taint: Taint,
    pub(crate) key: &'r StatusKey,
    /// The entry of the step in the present status.
    pub(crate) previous: Option<&'r ResourceStatus>,
    /// The objects of the step that it knows.
    pub(crate) recorded: &'r [StampedRun],
    /// What its outputs are made from, if they are tied to that.
    pub(crate) basis: Option<Basis>,
    pub(crate) now: &'r Time,
}

/// An object to read outputs from.
#[derive(Clone, Copy)]
struct Reading<'o> {
    observed: Option<&'o Observed>,
    /// What is in the environment, if it is one.
    environment: Option<&'o Output>,
    /// Whether it was made from other inputs than the present ones.
    is_of_other_inputs: bool,
    /// Digest of what is to be in it; none of an environment that is kept, which holds what its record says.
    rendering: Option<&'o str>,
}

impl Observing<'_> {
    pub(crate) fn observe(self, submission: &Submission, observation: Observation) -> StepEnd {
        self.observe_as(submission, observation, None)
    }

    /// As [`Observing::observe`]; an `environment` is what the submitted object holds, which is not what goes into the
    /// step while that waits, and it is done by that object alone.
    pub(crate) fn observe_as(
        mut self,
        submission: &Submission,
        observation: Observation,
        environment: Option<&Output>,
    ) -> StepEnd {
        if let Some(environment) = environment {
            self.taint = self.taint.and(&environment.taint);
        }
        match observation {
            Observation::Failed(failure) => StepEnd::Failed(self.failed(submission, &failure)),
            Observation::Object { observed, write } => {
                let output = self.read(Reading {
                    environment,
                    ..Reading::of(&observed, submission)
                });
                let mut memory = self.applied(&observed);
                if output.is_ok()
                    && let Some(applied) = &mut memory.applied
                {
                    applied.doubtful.clear();
                    // What is in an environment may have come from a Secret that goes in no more.
                    let is_plain = environment.is_none();
                    let good_by = is_plain.then(|| self.evidence_so_far(submission, &observed));
                    applied.good_by = good_by.flatten();
                }
                let is_current = observed.digest.as_ref() == Some(&submission.digest);
                let end = self.submitted(observed, write, output, Vec::new(), memory);
                let end = end.of_present(is_current);
                match (write, end) {
                    (Write::Undone(_), StepEnd::Submitted(mut submitted)) => {
                        submitted.unsettled = Some(self.undone(submission));
                        StepEnd::Submitted(submitted)
                    }
                    (_, end) => end,
                }
            }
            Observation::Family {
                submitted,
                members,
                write,
            } => {
                let of_submitted = Reading {
                    environment,
                    ..Reading::of(&submitted, submission)
                };
                // Outputs that are tied to what made them are those of the present inputs.
                let output = if environment.is_some() || self.basis.is_some() {
                    self.read(of_submitted)
                } else {
                    self.newest_output(&members, submitted.digest.as_deref())
                };
                let is_current = self.is_of_present(&submitted, &members, submission);
                let superseded = self.superseded(&submitted, &members);
                let memory = self.remembering(&members);
                let end = self.submitted(submitted, write, output, superseded, memory);
                end.of_present(is_current)
            }
        }
    }

    /// The newest object of an immutable step has ended, and somebody deleted it: what it came to holds.
    pub(crate) fn ended(
        &self,
        submission: &Submission,
        run: &StampedRun,
        found: &[Observed],
    ) -> StepEnd {
        let (submitted, memory) = self.remembered(submission, run, found);
        let superseded = self.superseded(&submitted, found);
        let output = match &self.basis {
            Some(basis) => self.output_of(basis, run, &submitted, submission),
            None => self.newest_output(found, run.digest.as_deref()),
        };
        let end = self.submitted(submitted, Write::Unchanged, output, superseded, memory);
        end.of_present(run.result == RunResult::Succeeded)
    }

    /// Whether what a family hands on is of the object of the present rendering.
    fn is_of_present(
        &self,
        submitted: &Observed,
        members: &[Observed],
        submission: &Submission,
    ) -> bool {
        let is_rendered = submitted.digest.as_ref() == Some(&submission.digest);
        let uid = |observed: &Observed| observed.object["metadata"]["uid"].clone();
        let newest = || newest_healthy(self.template.family_rule(), members);
        let is_newest = || newest().is_some_and(|newest| uid(newest) == uid(submitted));
        is_rendered && (self.basis.is_some() || is_newest())
    }

    /// As [`Observing::ended`], of a validation whose output was decided by its arrival.
    pub(crate) fn judged_before(
        &self,
        submission: &Submission,
        run: &StampedRun,
        found: &[Observed],
        output: Result<Output, StepError>,
    ) -> StepEnd {
        let (observed, memory) = self.remembered(submission, run, found);
        self.by_arrival(observed, found, Write::Unchanged, output, memory)
    }

    /// A run that has ended and is on its way out, or what is known of one that is gone.
    fn remembered(
        &self,
        submission: &Submission,
        run: &StampedRun,
        found: &[Observed],
    ) -> (Observed, Memory) {
        let is_run = |found: &&Observed| found.object["metadata"]["uid"] == run.uid;
        let leaving = found.iter().find(is_run);
        let memory = Memory {
            is_gone: leaving.is_none(),
            ..self.remembering(found)
        };
        let observed = leaving.cloned();
        (
            observed.unwrap_or_else(|| self.stand_in(submission, run)),
            memory,
        )
    }

    /// As much as is known of an object that is gone.
    fn stand_in(&self, submission: &Submission, run: &StampedRun) -> Observed {
        let recorded = self.previous.and_then(|entry| entry.stamped_ref.as_ref());
        let object = json!({
            "apiVersion": submission.object["apiVersion"],
            "kind": submission.object["kind"],
            "metadata": {
                "namespace": submission.object["metadata"]["namespace"],
                "name": run.name,
                "uid": run.uid,
            },
        });
        Observed {
            qualified_resource: recorded
                .and_then(object_ref)
                .and_then(|recorded| recorded.qualified_resource),
            namespaced: recorded.is_none_or(|recorded| recorded.namespace.is_some()),
            sequence: run.sequence,
            digest: run.digest.clone(),
            terminating: true,
            ..Observed::of(object)
        }
    }

    /// Of the newest object that succeeded, whether it is there or only remembered. `digest` is that of the present inputs.
    fn newest_output(
        &self,
        members: &[Observed],
        digest: Option<&str>,
    ) -> Result<Output, ReadError> {
        let healthy = newest_healthy(self.template.family_rule(), members);
        let remembered = self.runs(members).remembered_output();
        match (healthy, remembered) {
            (Some(healthy), Some((sequence, output))) if healthy.sequence < sequence => Ok(output),
            (None, Some((_, output))) => Ok(output),
            (healthy, _) => {
                let is_of_others =
                    healthy.is_some_and(|healthy| healthy.digest.as_deref() != digest);
                self.read(Reading {
                    observed: healthy,
                    environment: None,
                    is_of_other_inputs: is_of_others,
                    rendering: None,
                })
            }
        }
    }

    /// Of a run that has ended and is gone.
    fn output_of(
        &self,
        basis: &Basis,
        run: &StampedRun,
        observed: &Observed,
        submission: &Submission,
    ) -> Result<Output, ReadError> {
        let output = self.runs(&[]).output_of(run);
        let succeeded = output.filter(|_| run.result == RunResult::Succeeded);
        let output = succeeded.ok_or_else(|| {
            let why = format!("run [{}] failed", run.name);
            ReadError::NotDone(NotDone::Failed(why))
        })?;
        Ok(self.accepted(basis, output, (&observed.object, &[]), &submission.digest))
    }

    /// What status remembers of the objects of the step, with those that were found.
    pub(crate) fn runs<'s>(&'s self, found: &'s [Observed]) -> Runs<'s> {
        Runs {
            template: self.template,
            found,
            recorded: self.recorded,
            deployment: self.deployment.as_ref(),
            taint: &self.taint,
            others: self.basis.as_ref().map(|basis| &basis.others),
        }
    }

    /// Whether what was stamped holds values of a Secret.
    fn is_tainted(&self, observed: Option<&Observed>) -> bool {
        !self.taint.is_none()
            || observed.is_some_and(|observed| redaction::is_secret(&observed.object))
    }

    fn remembering(&self, members: &[Observed]) -> Memory {
        Memory {
            runs: self.runs(members).records(self.is_tainted(members.first())),
            ..Memory::default()
        }
    }

    fn applied(&self, observed: &Observed) -> Memory {
        let uid = observed.object["metadata"]["uid"].as_str();
        let is_told = !self.is_tainted(Some(observed));
        let applied = uid.map(|uid| AppliedObject {
            uid: uid.to_owned(),
            state: observed.state.clone().filter(|_| is_told),
            beside: self.expected_beside(uid, observed).filter(|_| is_told),
            values: self.values_left_in(uid, observed),
            doubtful: self.doubts_about(uid).to_vec(),
            good_by: None,
        });
        Memory {
            applied,
            ..Memory::default()
        }
    }

    /// An environment that is kept as it is.
    pub(crate) fn held(mut self, observed: Observed, environment: &Output) -> StepEnd {
        self.taint = self.taint.and(&environment.taint);
        let output = self.read(Reading {
            observed: Some(&observed),
            environment: Some(environment),
            is_of_other_inputs: false,
            rendering: None,
        });
        self.submitted(observed, Write::Unchanged, output, Vec::new(), self.kept())
    }

    /// An object to which no update is applied yet, for this reason.
    pub(crate) fn waiting(&self, observed: Observed, why: &str) -> StepEnd {
        let output = Err(ReadError::NotDone(NotDone::Condition(why.to_owned())));
        self.submitted(observed, Write::Unchanged, output, Vec::new(), self.kept())
    }

    /// What was applied last is another rendering than the one that waits: the entry goes on knowing it.
    fn kept(&self) -> Memory {
        Memory {
            applied: self.previous.and_then(|entry| entry.applied.clone()),
            runs: self.recorded.to_vec(),
            is_gone: false,
        }
    }

    /// A validation whose output was decided by its arrival.
    pub(crate) fn judged(
        &self,
        observed: Observed,
        members: &[Observed],
        write: Write,
        output: Result<Output, StepError>,
    ) -> StepEnd {
        let memory = if self.template.lifecycle.is_immutable() {
            self.remembering(members)
        } else {
            self.applied(&observed)
        };
        self.by_arrival(observed, members, write, output, memory)
    }

    fn by_arrival(
        &self,
        observed: Observed,
        members: &[Observed],
        write: Write,
        output: Result<Output, StepError>,
        memory: Memory,
    ) -> StepEnd {
        StepEnd::Submitted(Box::new(Submitted {
            health: self.health(&observed, output.is_ok()),
            superseded: self.superseded(&observed, members),
            observed,
            write,
            is_of_present: output.is_ok(),
            output,
            earlier: None,
            unsettled: None,
            memory,
        }))
    }

    fn superseded(&self, submitted: &Observed, members: &[Observed]) -> Vec<Removal> {
        superseded(self.template.family_rule(), self.step, submitted, members)
    }

    fn read(&self, reading: Reading<'_>) -> Result<Output, ReadError> {
        let object = reading.observed.map(|observed| &observed.object);
        if self.basis.is_some() && reading.is_changed() {
            return Err(ReadError::Changed);
        }
        let output = Output::read(
            self.template,
            object,
            reading.environment.or(self.deployment.as_ref()),
            &self.taint,
            self.basis
                .as_ref()
                .map_or_else(RuleInputs::default, Basis::rule_inputs),
        )?;
        if self.basis.is_some() && self.template.refuses_foreign_fields {
            self.refuse_foreign_fields(&reading)?;
        }
        if object.is_some_and(|object| self.is_doubtful(object)) {
            return Err(ReadError::Doubtful);
        }
        let (before, others) = (self.outputs_before(), reading.is_of_other_inputs);
        let output = output.remembered(before, &self.taint, others, self.key);
        // What is in an environment was made from the inputs of its arrival, which may be others by now.
        let basis = self
            .basis
            .as_ref()
            .filter(|_| reading.environment.is_none());
        Ok(match (basis, object, reading.rendering) {
            (Some(basis), Some(object), Some(rendering)) => {
                let beside = reading.observed.and_then(|it| it.beside.as_ref());
                let foreign = beside.map_or(&[][..], |beside| &beside.named);
                self.accepted(basis, output, (object, foreign), rendering)
            }
            _ => output,
        })
    }

    /// `object` with the fields of it that others have set.
    fn accepted(
        &self,
        basis: &Basis,
        output: Output,
        (object, foreign): (&Value, &[String]),
        rendering: &str,
    ) -> Output {
        let Some(attribution) = &self.template.attribution else {
            return output;
        };
        let acceptance = Acceptance {
            step: self.step.as_str(),
            attribution,
            basis,
            taint: &self.taint,
            object,
            foreign,
            rendering,
            previous: self.outputs_before(),
            key: self.key,
            now: self.now,
        };
        acceptance.accept(output)
    }

    fn outputs_before(&self) -> &[OutputStatus] {
        self.previous.map_or(&[], |entry| &entry.outputs)
    }

    fn health(&self, observed: &Observed, has_outputs: bool) -> Health {
        let health = self.template.health.judge(Subject {
            object: Some(&observed.object),
            kind: self.template.kind,
            has_outputs,
            secret: redaction::is_secret(&observed.object),
        });
        Health {
            message: self.taint.scrub(health.message),
            ..health
        }
    }

    fn submitted(
        &self,
        observed: Observed,
        write: Write,
        output: Result<Output, ReadError>,
        superseded: Vec<Removal>,
        memory: Memory,
    ) -> StepEnd {
        let has_outputs = output
            .as_ref()
            .is_ok_and(|output| !output.named().is_empty());
        let health = self.health(&observed, has_outputs);
        let output = output.map_err(|error| {
            let message = self.unreadable(&error, &observed, &health);
            let message = self.taint.scrub(message);
            StepError::Retrieve { error, message }
        });
        StepEnd::Submitted(Box::new(Submitted {
            observed,
            write,
            health,
            output,
            is_of_present: false,
            earlier: None,
            unsettled: None,
            superseded,
            memory,
        }))
    }
}

impl<'o> Reading<'o> {
    fn of(observed: &'o Observed, submission: &'o Submission) -> Self {
        Self {
            observed: Some(observed),
            environment: None,
            is_of_other_inputs: false,
            rendering: Some(&submission.digest),
        }
    }

    /// Whether the object holds something else than what is rendered: nothing that it says is about our spec then.
    fn is_changed(&self) -> bool {
        self.rendering.is_some_and(|rendering| {
            let is_rendered = |observed: &Observed| {
                observed.digest.as_deref() == Some(rendering) && observed.unchanged
            };
            !self.observed.is_some_and(is_rendered)
        })
    }
}

#[cfg(test)]
mod tests;
