//! What is in an environment: read when it is kept, when it was written, and when nothing can be put into it.

use api_types::condition::whole_seconds;

use crate::environment::state::EnvironmentState;
use crate::environment::{Known, Present, Record, annotation_of};
use crate::step::end::StepEnd;
use crate::step::error::StepError;
use crate::template::goodness::NotDone;
use crate::template::outputs::{Output, ReadError};
use crate::walk::{At, Walk};
use crate::{Observation, Observed, Submission};

impl Walk<'_> {
    /// What status says of the environment of a step.
    pub(super) fn known(&self, step: usize) -> Known<'_> {
        let validations = self.blueprint.validations(step);
        Known {
            status: self
                .owner
                .status
                .environment(&self.blueprint.steps[step].name),
            validations: validations
                .map(|validation| self.blueprint.steps[validation].name.as_str())
                .collect(),
            key: &self.key,
        }
    }

    pub(super) fn awaits(&self, step: usize, what: &str) -> StepError {
        let name = &self.blueprint.steps[step].name;
        let error = ReadError::NotDone(NotDone::Condition(what.to_owned()));
        let message = format!("resource [{name}] condition not met: {what}");
        StepError::Retrieve { error, message }
    }
}

/// What is in an environment, if that is known. Of several objects it is the one that says what status says, or the newest.
pub(in crate::walk) fn held_among(walk: &Walk<'_>, at: &At, found: &[Observed]) -> Option<Output> {
    let known = walk.known(at.step);
    let there = || found.iter().rev().filter(|member| !member.is_gone);
    let recognised = there().find(|member| known.recognises(annotation_of(&member.object)));
    let staying = || there().find(|member| !member.terminating);
    let held = recognised.or_else(staying).or_else(|| there().next())?;
    held_in(walk, at, held)
}

fn held_in(walk: &Walk<'_>, at: &At, observed: &Observed) -> Option<Output> {
    let said = annotation_of(&observed.object);
    match walk.known(at.step).present(said, &whole_seconds(&walk.now)) {
        Present::Revision(record) => record.output(),
        Present::Nothing | Present::Either | Present::Unheard(_) => None,
    }
}

/// An environment that nothing is put into now: what it hands on is what is in it.
pub(in crate::walk) fn stays(walk: &mut Walk<'_>, at: &At, observed: &Observed) -> Option<Output> {
    let said = annotation_of(&observed.object);
    let present = walk.known(at.step).present(said, &whole_seconds(&walk.now));
    match present {
        Present::Nothing | Present::Either => None,
        Present::Unheard(digest) => {
            walk.steps
                .find_unclear(at.step, EnvironmentState::disregarding(digest));
            None
        }
        Present::Revision(record) => {
            let end = keep(walk, at, observed, record, EnvironmentState::default());
            end.output().cloned()
        }
    }
}

/// Reads an environment that is not written. What may not be in it is not handed on.
pub(super) fn keep(
    walk: &mut Walk<'_>,
    at: &At,
    observed: &Observed,
    record: Record,
    state: EnvironmentState,
) -> StepEnd {
    let output = record.output().unwrap_or(Output::NOTHING);
    let mut end = walk.observing(at).held(observed.clone(), &output);
    if let StepEnd::Submitted(submitted) = &mut end
        && !record.proven
        && submitted.output.is_ok()
    {
        submitted.output = Err(walk.awaits(at.step, "only its object says what is in it"));
    }
    let disregarded = walk
        .known(at.step)
        .unless_deployed(annotation_of(&observed.object))
        .filter(|_| record.in_status.is_some());
    let state = EnvironmentState {
        failed: end.has_failed(),
        disregarded,
        ..state
    };
    walk.steps.find_arrival(at.step, record, state, false);
    end
}

/// Reads an environment that was written.
pub(in crate::walk) fn arrived(
    walk: &mut Walk<'_>,
    at: &At,
    submission: &Submission,
    record: &Record,
    observation: Observation,
) -> StepEnd {
    let (Observation::Object { observed, .. }
    | Observation::Family {
        submitted: observed,
        ..
    }) = &observation
    else {
        return walk.observing(at).observe(submission, observation);
    };
    let known = walk.known(at.step);
    let said = annotation_of(&observed.object);
    let was_there = known.status.is_some_and(|status| record.is_settled(status));
    let disregarded = known
        .unless_deployed(said)
        .filter(|_| said != Some(record.text.as_str()));
    if disregarded.is_some() && !was_there {
        // Another writer is in the way, or our own status changes the rendering again and again: it waits.
        return StepEnd::Failed(walk.awaits(at.step, &about_to_arrive(record)));
    }
    let content = record.output();
    let end = walk
        .observing(at)
        .observe_as(submission, observation, content.as_ref());
    let state = EnvironmentState {
        failed: end.has_failed(),
        disregarded,
        ..EnvironmentState::default()
    };
    walk.steps
        .find_arrival(at.step, record.clone(), state, true);
    end
}

pub(super) fn about_to_arrive(record: &Record) -> String {
    format!("revision [{}] is about to be deployed", record.revision())
}
