//! The gate of validations: one begins when status says that what it validates is deployed, and runs once for that.

use api_types::labels;
use api_types::runnable::RunResult;
use api_types::{EnvironmentStatus, ValidationStatus, ValidationVerdict};
use serde_json::json;

use crate::environment::state::time_left;
use crate::environment::{self, Incoming, Record, annotate};
use crate::step::end::StepEnd;
use crate::step::error::{StepError, ValidationError};
use crate::template::judgement::ValidationState;
use crate::template::outputs::Output;
use crate::template::runs::Due;
use crate::template::stamp;
use crate::values::canonical;
use crate::walk::gate::{AfterLook, Gate, Reading, Ruling};
use crate::walk::prepare::HeldStep;
use crate::walk::{At, Walk};
use crate::{Lifecycle, Observation, Observed, Position, Submission};

/// Lets a validation begin, once for each arrival.
pub(super) struct ValidationGate;

/// The object of the validation was asked for.
struct ValidationLook;

impl Gate for ValidationGate {
    fn approached(&self, walk: &mut Walk<'_>, at: &At, mut rendering: Submission) -> Ruling {
        walk.tie(at.step, &mut rendering);
        Ruling::Look(rendering, Box::new(ValidationLook))
    }
}

impl AfterLook for ValidationLook {
    fn found(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        found: Vec<Observed>,
    ) -> Ruling {
        begin(walk, at, place, &found)
    }
}

/// Begins the validation unless it has to wait, or has ended.
fn begin(walk: &mut Walk<'_>, at: &At, mut submission: Submission, found: &[Observed]) -> Ruling {
    let due = walk.due(at, &submission, found);
    let known = walk.known_state(at, &submission, &due, found);
    if let Some((error, state)) = walk.obstacle(at.step, known.as_ref()) {
        walk.steps.judge(at.step, state);
        let target = stamp::reference(&submission.object);
        return Ruling::Withhold(Box::new(HeldStep { error, target }));
    }
    match due {
        Due::Submit(position) => {
            submission.recorded.position = position;
            Ruling::Pass(submission, Reading::Verdict)
        }
        Due::Ended(run) => {
            let state = known.unwrap_or(ValidationState::Succeeded);
            let output = walk.output_after(at, &state);
            let end = walk
                .observing(at)
                .judged_before(&submission, &run, found, output);
            walk.steps.judge(at.step, state);
            Ruling::Hold(at.ended(end, &submission))
        }
    }
}

/// The end of a validation that was submitted.
pub(super) fn judged(
    walk: &mut Walk<'_>,
    at: &At,
    submission: &Submission,
    observation: Observation,
) -> StepEnd {
    let (observed, members, write) = match observation {
        Observation::Failed(_) => return walk.observing(at).observe(submission, observation),
        Observation::Object { observed, write } => (observed, Vec::new(), write),
        Observation::Family {
            submitted,
            members,
            write,
        } => (submitted, members, write),
    };
    let state = if observed.digest.as_deref() == Some(&submission.digest) {
        walk.judge(at, &observed)
    } else {
        ValidationState::Running("the object belongs to another version of the owner".to_owned())
    };
    let output = walk.output_after(at, &state);
    walk.steps.judge(at.step, state);
    walk.observing(at).judged(observed, &members, write, output)
}

impl Walk<'_> {
    /// Ties the rendering of a validation to the arrivals it validates: an environment that is written anew has a new run,
    /// even if the template reads nothing of the deployment.
    fn tie(&self, step: usize, submission: &mut Submission) {
        let arrivals = self.steps.arrivals(step);
        let Some(arrivals) = arrivals.filter(|arrivals| !arrivals.nearest.is_empty()) else {
            return;
        };
        if submission.lifecycle == Lifecycle::Mutable {
            let arrivals = arrivals.nearest.values();
            let arrivals: Vec<String> = arrivals
                .map(|record| record.arrival.number.to_string())
                .collect();
            annotate(submission, labels::VALIDATES, &arrivals.join(","));
        }
        let tokens = arrivals.nearest.values().map(|record| record.text.as_str());
        let tokens: Vec<&str> = tokens.collect();
        submission.digest =
            canonical::digest(&json!([canonical::digest(&submission.object), tokens]));
    }

    /// Why the validation cannot begin or go on now, and what is to be said of it.
    fn obstacle(
        &self,
        step: usize,
        known: Option<&ValidationState>,
    ) -> Option<(StepError, ValidationState)> {
        let inputs = self.steps.inputs(step);
        if !inputs.missing.is_empty() {
            let known = known.cloned();
            let state = known.unwrap_or(ValidationState::NotBegun { is_reported: false });
            return Some((self.preparing_with(step, inputs).held(), state));
        }
        if !self.is_deployed_by_status(step) || known.is_none() && self.has_ended_by_status(step) {
            let error = self.not_validated(step, ValidationError::Begins, "");
            return Some((error, ValidationState::NotBegun { is_reported: true }));
        }
        None
    }

    /// A mutable object is there or is written; an immutable one may have ended, and somebody deleted it.
    fn due(&self, at: &At, submission: &Submission, found: &[Observed]) -> Due {
        if submission.lifecycle.is_immutable() {
            self.observing(at).runs(found).decide(&submission.digest)
        } else {
            Due::Submit(Position::default())
        }
    }

    /// What is known of the run for this arrival: by the object, or by status if that is gone.
    fn known_state(
        &self,
        at: &At,
        submission: &Submission,
        due: &Due,
        found: &[Observed],
    ) -> Option<ValidationState> {
        if let Due::Ended(run) = due {
            return Some(match run.result {
                RunResult::Failed => ValidationState::Failed(self.recorded_cause(at.step)),
                RunResult::Succeeded | RunResult::Running | RunResult::Removed => {
                    ValidationState::Succeeded
                }
            });
        }
        let staying = |member: &&Observed| member.is_known && !member.terminating;
        let newest = found.iter().rev().find(staying);
        let run = newest.filter(|run| run.digest.as_deref() == Some(&submission.digest));
        run.map(|run| self.judge(at, run))
    }

    /// The arrivals that a validation is about, with what status says of their environments.
    fn arrivals(&self, step: usize) -> impl Iterator<Item = (&Record, Option<&EnvironmentStatus>)> {
        let arrivals = self.steps.arrivals(step).into_iter();
        arrivals
            .flat_map(|arrivals| &arrivals.lineage)
            .map(move |(&environment, record)| {
                let name = &self.blueprint.steps[environment].name;
                (record, self.owner.status.environment(name))
            })
    }

    /// What status says of a validation, for each arrival that it is about.
    fn recorded_verdicts(&self, step: usize) -> impl Iterator<Item = &ValidationStatus> {
        let name = &self.blueprint.steps[step].name;
        self.arrivals(step).flat_map(move |(record, status)| {
            let recorded = status.into_iter().flat_map(|status| &status.validations);
            recorded.filter(move |recorded| {
                *name == *recorded.resource && recorded.arrival == record.arrival.number
            })
        })
    }

    /// Why status says that a validation failed.
    fn recorded_cause(&self, step: usize) -> String {
        let mut causes = self
            .recorded_verdicts(step)
            .filter_map(|recorded| recorded.message.clone());
        causes.next().unwrap_or_default()
    }

    /// Whether status says of all that is validated that it is deployed. Before that it may be replaced at any time: by the
    /// next process, which cannot tell from the object alone what reached it.
    fn is_deployed_by_status(&self, step: usize) -> bool {
        self.arrivals(step)
            .all(|(record, status)| status.is_some_and(|status| record.is_settled(status)))
    }

    /// Whether status says that this validation need not be waited for. To begin it now would let the next process, which
    /// knows no more than status, change the environment under it. One that timed out is not waited for anyhow.
    fn has_ended_by_status(&self, step: usize) -> bool {
        self.recorded_verdicts(step).any(|recorded| {
            recorded.verdict.releases() && recorded.verdict != ValidationVerdict::TimedOut
        })
    }

    fn output_after(&self, at: &At, state: &ValidationState) -> Result<Output, StepError> {
        match state {
            ValidationState::Succeeded => Ok(self.validated_output(at.step)),
            ValidationState::Failed(cause) => {
                Err(self.not_validated(at.step, ValidationError::Failed, cause))
            }
            ValidationState::Running(cause) => {
                let error = if self.is_late(at) {
                    ValidationError::TimedOut
                } else {
                    ValidationError::Running
                };
                Err(self.not_validated(at.step, error, cause))
            }
            ValidationState::NotBegun { .. } => {
                Err(self.not_validated(at.step, ValidationError::Begins, ""))
            }
        }
    }

    fn validated_output(&self, step: usize) -> Output {
        let inputs = self.steps.inputs(step);
        inputs.deployment().cloned().unwrap_or(Output::NOTHING)
    }

    fn judge(&self, at: &At, run: &Observed) -> ValidationState {
        let Some(judgement) = at.template.judgement() else {
            // Only templates of the step's kind are found for it.
            return ValidationState::Running(String::new());
        };
        let taint = self.steps.taint(at.step);
        match judgement.judge(&at.template, &run.object, &taint) {
            ValidationState::Running(cause) => ValidationState::Running(taint.scrub(cause)),
            ValidationState::Failed(cause) => ValidationState::Failed(taint.scrub(cause)),
            other @ (ValidationState::Succeeded | ValidationState::NotBegun { .. }) => other,
        }
    }

    fn is_late(&self, at: &At) -> bool {
        let arrivals = self.steps.arrivals(at.step).into_iter();
        arrivals
            .flat_map(|arrivals| arrivals.nearest.values())
            .any(|record| {
                time_left(&at.template, record, &self.now.0).is_some_and(|left| left.is_zero())
            })
    }

    fn not_validated(&self, step: usize, error: ValidationError, cause: &str) -> StepError {
        let nearest = self.steps.arrivals(step).map(|arrivals| &arrivals.nearest);
        let environments: Vec<&str> = nearest
            .into_iter()
            .flatten()
            .map(|(&environment, _)| self.blueprint.steps[environment].name.as_str())
            .collect();
        let inputs = self.steps.inputs(step);
        let incoming = Incoming::of(inputs.deployment());
        StepError::Validation {
            error,
            resource: self.blueprint.steps[step].name.clone(),
            revision: environment::shown(&incoming.revision, incoming.secret),
            has_environment_event: !environments.is_empty(),
            environment: environments.join(", "),
            cause: cause.to_owned(),
        }
    }
}
