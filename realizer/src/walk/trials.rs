//! The part of a walk that is about validations: tied to arrivals, begun, and judged.

use std::sync::Arc;

use api_types::labels;
use api_types::runnable::RunResult;
use serde_json::json;

use crate::environment::site::time_left;
use crate::environment::{self, Incoming, annotate};
use crate::step::end::StepEnd;
use crate::step::error::{StepError, TrialError};
use crate::template::OutputPaths;
use crate::template::context::ResolvedInputs;
use crate::template::judgement::Trial;
use crate::template::outputs::Output;
use crate::template::runs::Due;
use crate::template::stamp;
use crate::values::canonical;
use crate::walk::prepare::{Asked, Withheld};
use crate::walk::realization::Realization;
use crate::{Ask, Lifecycle, Observation, Observed, Position, Submission, Template};

impl Realization<'_> {
    /// Ties the rendering of a validation to the arrivals it validates: an environment that is written anew has a new run,
    /// even if the template reads nothing of the deployment.
    pub(crate) fn tie(&self, step: usize, submission: &mut Submission) {
        let Some(flow) = self.flows[step]
            .as_ref()
            .filter(|flow| !flow.nearest.is_empty())
        else {
            return;
        };
        if submission.lifecycle == Lifecycle::Mutable {
            let arrivals: Vec<String> = flow
                .nearest
                .values()
                .map(|record| record.arrival.number.to_string())
                .collect();
            annotate(submission, labels::VALIDATES, &arrivals.join(","));
        }
        let tokens: Vec<&str> = flow
            .nearest
            .values()
            .map(|record| record.text.as_str())
            .collect();
        submission.digest =
            canonical::digest(&json!([canonical::digest(&submission.object), tokens]));
    }

    pub(crate) fn found_run(
        &mut self,
        step: usize,
        asked: Asked,
        mut submission: Submission,
        found: &[Observed],
    ) {
        let due = self.due(step, &asked.template, &submission, found);
        let known = self.known_trial(step, &asked.template, &submission, &due, found);
        let inputs = ResolvedInputs::of(&self.blueprint.steps[step], &self.outputs);
        let withheld = |error| {
            Box::new(Withheld {
                error,
                wanted: stamp::reference(&submission.object),
            })
        };
        if !inputs.missing.is_empty() {
            let withheld = withheld(self.preparing_with(step, inputs).held());
            self.trials[step] = Some(known.unwrap_or(Trial::NotBegun { first_told: false }));
            self.withhold_step(step, asked.template, withheld);
            return;
        }
        if !self.is_told_deployed(step) || known.is_none() && self.is_told_ended(step) {
            let withheld = withheld(self.trial_error(step, TrialError::Begins, ""));
            self.trials[step] = Some(Trial::NotBegun { first_told: true });
            self.withhold_step(step, asked.template, withheld);
            return;
        }
        match due {
            Due::Submit(position) => {
                submission.told.position = position;
                let ask = Ask::Submit(submission);
                self.outstanding = Some((step, Asked { ask, ..asked }));
            }
            Due::Ended(run) => {
                let trial = known.unwrap_or(Trial::Succeeded);
                let output = self.output_after(step, &asked.template, &trial);
                let end = self.observing(step, &asked.template).judged_before(
                    &submission,
                    &run,
                    found,
                    output,
                );
                self.trials[step] = Some(trial);
                self.end_step(step, &asked, end);
            }
        }
    }

    /// A mutable object is there or is written; an immutable one may have ended, and somebody deleted it.
    fn due(
        &self,
        step: usize,
        template: &Template,
        submission: &Submission,
        found: &[Observed],
    ) -> Due {
        if submission.lifecycle.is_immutable() {
            self.runs(step, template, found, &self.taint(step))
                .decide(&submission.digest)
        } else {
            Due::Submit(Position::default())
        }
    }

    /// What is known of the run for this arrival: by the object, or by status if that is gone.
    fn known_trial(
        &self,
        step: usize,
        template: &Template,
        submission: &Submission,
        due: &Due,
        found: &[Observed],
    ) -> Option<Trial> {
        if let Due::Ended(run) = due {
            return Some(match run.result {
                RunResult::Failed => Trial::Failed(self.told_cause(step)),
                RunResult::Succeeded | RunResult::Running | RunResult::Removed => Trial::Succeeded,
            });
        }
        let staying = |member: &&Observed| member.is_known && !member.terminating;
        let newest = found.iter().rev().find(staying);
        let run = newest.filter(|run| run.digest.as_deref() == Some(&submission.digest));
        run.map(|run| self.judge(step, template, run))
    }

    /// Why status says that a validation failed.
    fn told_cause(&self, step: usize) -> String {
        let name = &self.blueprint.steps[step].name;
        let flow = self.flows[step].iter().flat_map(|flow| &flow.lineage);
        let told = flow.filter_map(|(&environment, record)| {
            let environment = &self.blueprint.steps[environment].name;
            let status = self.owner.status.environment(environment)?;
            let mut validations = status.validations.iter();
            validations
                .find(|told| *name == *told.resource && told.arrival == record.arrival.number)
        });
        let mut causes = told.filter_map(|told| told.message.clone());
        causes.next().unwrap_or_default()
    }

    /// Whether status says of all that is validated that it is deployed. Before that it may be replaced at any time: by the
    /// next process, which cannot tell from the object alone what reached it.
    fn is_told_deployed(&self, step: usize) -> bool {
        let flow = self.flows[step].iter();
        flow.flat_map(|flow| &flow.lineage)
            .all(|(&environment, record)| {
                let environment = &self.blueprint.steps[environment].name;
                let status = self.owner.status.environment(environment);
                status.is_some_and(|status| {
                    status.arriving.is_none()
                        && (status.deployed.as_ref())
                            .is_some_and(|told| told.arrival == record.arrival.number)
                })
            })
    }

    /// Whether status says that this validation need not be waited for. To begin it now would let the next process, which
    /// knows no more than status, change the environment under it. One that timed out is not waited for anyhow.
    fn is_told_ended(&self, step: usize) -> bool {
        let name = &self.blueprint.steps[step].name;
        let flow = self.flows[step].iter();
        flow.flat_map(|flow| &flow.lineage)
            .any(|(&environment, record)| {
                let environment = &self.blueprint.steps[environment].name;
                let status = self.owner.status.environment(environment);
                let mut told = status.into_iter().flat_map(|status| &status.validations);
                told.any(|told| {
                    *name == *told.resource
                        && told.arrival == record.arrival.number
                        && told.verdict.releases()
                        && told.verdict != api_types::ValidationVerdict::TimedOut
                })
            })
    }

    /// Judges a validation that was submitted.
    pub(crate) fn validated(
        &mut self,
        step: usize,
        template: &Arc<Template>,
        submission: &Submission,
        observation: Observation,
    ) -> StepEnd {
        let (observed, members, write) = match observation {
            Observation::Failed(_) => {
                return self
                    .observing(step, template)
                    .observe(submission, observation);
            }
            Observation::Object { observed, write } => (observed, Vec::new(), write),
            Observation::Family {
                submitted,
                members,
                write,
            } => (submitted, members, write),
        };
        let trial = if observed.digest.as_deref() == Some(&submission.digest) {
            self.judge(step, template, &observed)
        } else {
            Trial::Running("the object belongs to another version of the owner".to_owned())
        };
        let output = self.output_after(step, template, &trial);
        self.trials[step] = Some(trial);
        self.observing(step, template)
            .judged(observed, &members, write, output)
    }

    fn output_after(
        &self,
        step: usize,
        template: &Template,
        trial: &Trial,
    ) -> Result<Output, StepError> {
        match trial {
            Trial::Succeeded => Ok(self.validated_output(step)),
            Trial::Failed(cause) => Err(self.trial_error(step, TrialError::Failed, cause)),
            Trial::Running(cause) => {
                let error = if self.is_late(step, template) {
                    TrialError::TimedOut
                } else {
                    TrialError::Running
                };
                Err(self.trial_error(step, error, cause))
            }
            Trial::NotBegun { .. } => Err(self.trial_error(step, TrialError::Begins, "")),
        }
    }

    fn validated_output(&self, step: usize) -> Output {
        let inputs = ResolvedInputs::of(&self.blueprint.steps[step], &self.outputs);
        inputs.deployment().cloned().unwrap_or(Output::NOTHING)
    }

    fn judge(&self, step: usize, template: &Template, run: &Observed) -> Trial {
        let OutputPaths::Validation(judgement) = &template.outputs else {
            // Only templates of the step's kind are found for it.
            return Trial::Running(String::new());
        };
        let taint = self.taint(step);
        match judgement.judge(template, &run.object, &taint) {
            Trial::Running(cause) => Trial::Running(taint.scrub(cause)),
            Trial::Failed(cause) => Trial::Failed(taint.scrub(cause)),
            other @ (Trial::Succeeded | Trial::NotBegun { .. }) => other,
        }
    }

    fn is_late(&self, step: usize, template: &Template) -> bool {
        let flow = self.flows[step].iter();
        flow.flat_map(|flow| flow.nearest.values()).any(|record| {
            time_left(template, record, &self.now.0).is_some_and(|left| left.is_zero())
        })
    }

    fn trial_error(&self, step: usize, error: TrialError, cause: &str) -> StepError {
        let nearest = self.flows[step].as_ref().map(|flow| &flow.nearest);
        let environments: Vec<&str> = nearest
            .into_iter()
            .flatten()
            .map(|(&environment, _)| self.blueprint.steps[environment].name.as_str())
            .collect();
        let inputs = ResolvedInputs::of(&self.blueprint.steps[step], &self.outputs);
        let incoming = Incoming::of(inputs.deployment());
        StepError::Validation {
            error,
            resource: self.blueprint.steps[step].name.clone(),
            revision: environment::shown(&incoming.revision, incoming.secret),
            is_told_of_environment: !environments.is_empty(),
            environment: environments.join(", "),
            cause: cause.to_owned(),
        }
    }
}
