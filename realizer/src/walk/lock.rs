//! The gate of environments: what is in one is not replaced before it is validated.
//!
//! ```text
//!  rendering ─▶ look where it would be ─▶ look where it may be ─▶ decide ─┬─▶ pass, with the arrival that status announced
//!                                                                         ├─▶ hold: what is deployed is read
//!                                                                         └─▶ hold: status has to say first what comes, or
//!                                                                             what is disregarded
//! ```

use api_types::condition::whole_seconds;
use api_types::labels;
use serde_json::{Value, json};

use crate::environment::state::EnvironmentState;
use crate::environment::{
    self, Decision, Incoming, Known, Live, Present, Record, annotate, annotation_path, said,
};
use crate::owner::owner_status::object_ref;
use crate::step::end::{StepEnd, StepResult};
use crate::step::error::StepError;
use crate::template::goodness::NotDone;
use crate::template::outputs::{Output, ReadError};
use crate::template::runs::Due;
use crate::template::stamp;
use crate::values::canonical;
use crate::walk::gate::{AfterLook, Gate, Reading, Ruling};
use crate::walk::prepare::Withheld;
use crate::walk::{At, Walk};
use crate::{
    Lifecycle, Looked, ObjectRef, Observation, Observed, Position, Precondition, Submission,
    SubmitFailureKind, Told,
};

/// Keeps an environment as it is until all validations behind it have ended for what is in it.
pub(super) struct EnvironmentLock;

/// The environment is searched, for this rendering.
struct Search {
    /// Without a record in it.
    rendering: Submission,
    /// The places that were not looked at yet.
    elsewhere: Vec<Submission>,
    /// Whether the place is that of the rendering.
    in_place: bool,
}

impl Gate for EnvironmentLock {
    fn approached(&self, walk: &mut Walk<'_>, at: &At, mut rendering: Submission) -> Ruling {
        // What is there counts, with whatever arrival.
        let mut reads = rendering.reads.to_vec();
        reads.push(annotation_path());
        rendering.reads = reads.into();
        let search = Search {
            elsewhere: walk.other_places(at.step, &rendering),
            rendering: rendering.clone(),
            in_place: true,
        };
        Ruling::Look(rendering, Box::new(search))
    }
}

impl AfterLook for Search {
    fn found(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        found: Looked,
    ) -> Ruling {
        match found {
            Ok(found) => self.go_on(walk, at, &place, &found),
            // Where it was is somebody else's now, so it is not there any more.
            Err(failure) if failure.kind == SubmitFailureKind::Contested && !self.in_place => {
                self.go_on(walk, at, &place, &[])
            }
            Err(failure) => Ruling::Hold(walk.not_seen(at, &place, failure)),
        }
    }
}

impl Search {
    /// Looks elsewhere as long as nothing is found.
    fn go_on(
        mut self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: &Submission,
        found: &[Observed],
    ) -> Ruling {
        let live = self.among(walk, at.step, place, found);
        if live.is_none() && !self.elsewhere.is_empty() {
            let next = self.elsewhere.remove(0);
            self.in_place = false;
            return Ruling::Look(next, self);
        }
        self.decide(walk, at, place, found, live)
    }

    /// The object that is the environment: the only one, or the newest. Elsewhere it is the one that says what status says;
    /// where the step wrote last, it is that one whatever it says. Only if status knows of nothing, it is the newest of
    /// those that say so: one without a record was written before there were validations, and nothing keeps it.
    fn among<'o>(
        &self,
        walk: &Walk<'_>,
        step: usize,
        place: &Submission,
        found: &'o [Observed],
    ) -> Option<&'o Observed> {
        if self.in_place {
            let newest = found.iter().rev().find(|member| !member.terminating);
            return newest.or_else(|| found.iter().rev().find(|member| !member.is_gone));
        }
        let known = walk.known(step);
        let mut found = found.iter().filter(|member| !member.is_gone);
        if known.is_in_use() {
            let is_told = place.lifecycle == Lifecycle::Mutable;
            return found.find(|member| is_told || known.recognises(said(&member.object)));
        }
        let newest =
            found.filter_map(
                |member| match known.present(said(&member.object), &walk.now) {
                    Present::Revision(record) => Some((record.arrival.number, member)),
                    Present::Nothing | Present::Either | Present::Unheard(_) => None,
                },
            );
        let newest = newest.max_by_key(|(arrival, _)| *arrival);
        newest.map(|(_, member)| member)
    }

    fn decide(
        self,
        walk: &mut Walk<'_>,
        at: &At,
        place: &Submission,
        found: &[Observed],
        live: Option<&Observed>,
    ) -> Ruling {
        let incoming = Incoming::of(walk.steps.inputs(at.step).deployment());
        let in_place = self.in_place;
        let seen = live.map(|observed| Live { observed, in_place });
        let decision = environment::decide(
            &self.rendering.digest,
            &incoming,
            seen.as_ref(),
            &walk.known(at.step),
            walk.now.0,
        );
        match decision {
            Decision::Submit {
                record,
                precondition,
            } => self.let_in(walk, at, found, record, precondition),
            Decision::Hold {
                observed,
                record,
                next,
                is_free,
            } => {
                let state = EnvironmentState {
                    next: Some(next),
                    waiting: Some(incoming),
                    held: true,
                    is_free,
                    ..EnvironmentState::default()
                };
                let end = keep(walk, at, observed, record, state);
                Ruling::Hold(at.ended(end, place))
            }
            Decision::Announce {
                record,
                disregarded,
            } => {
                let end = StepEnd::Failed(walk.awaits(at.step, &about_to_arrive(&record)));
                let state = EnvironmentState {
                    next: Some(record),
                    disregarded,
                    ..EnvironmentState::default()
                };
                walk.steps.find_unclear(at.step, state);
                Ruling::Hold(at.ended(end, place))
            }
            Decision::Disregard(digest) => {
                let what = "somebody else wrote what its object says of the environment";
                let end = StepEnd::Failed(walk.awaits(at.step, what));
                walk.steps
                    .find_unclear(at.step, EnvironmentState::disregarding(digest));
                Ruling::Hold(at.ended(end, place))
            }
            Decision::Keyless => Ruling::Hold(self.refuse(walk, at, live)),
        }
    }

    /// Status has announced the arrival, so it is written.
    fn let_in(
        self,
        walk: &Walk<'_>,
        at: &At,
        found: &[Observed],
        record: Record,
        precondition: Precondition,
    ) -> Ruling {
        let mut submission = self.rendering;
        annotate(&mut submission, labels::ENVIRONMENT, &record.text);
        submission.digest = canonical::digest(&submission.object);
        submission.precondition = precondition;
        submission.told.position = next_object(walk, at, found, &submission.digest);
        Ruling::Pass(submission, Reading::Arrival(Box::new(record)))
    }

    /// What comes in cannot be kept in the environment; what is in it can.
    fn refuse(&self, walk: &mut Walk<'_>, at: &At, live: Option<&Observed>) -> StepResult {
        let inputs = walk.steps.inputs(at.step);
        let withheld = Withheld {
            error: walk.preparing_with(at.step, inputs).keyless(&at.template),
            target: stamp::reference(&self.rendering.object),
        };
        let kept = live.and_then(|live| stays(walk, at, live));
        StepResult {
            kept,
            ..at.withheld(withheld)
        }
    }
}

impl Walk<'_> {
    /// A template may render another name, or another kind, for each revision; the environment is then where the step
    /// wrote last.
    fn other_places(&self, step: usize, rendering: &Submission) -> Vec<Submission> {
        let mut places = Vec::new();
        if rendering.lifecycle == Lifecycle::Mutable {
            places.push(Submission {
                lifecycle: Lifecycle::Immutable,
                ..rendering.clone()
            });
        }
        let here = stamp::reference(&rendering.object);
        let is_elsewhere = |last: &ObjectRef| {
            here.as_ref().is_some_and(|here| {
                (&here.api_version, &here.kind, &here.name)
                    != (&last.api_version, &last.kind, &last.name)
            })
        };
        if let Some(last) = self.last_place(step).filter(is_elsewhere) {
            places.push(Submission {
                object: self.stand_in(&last),
                lifecycle: Lifecycle::Mutable,
                ..rendering.clone()
            });
        }
        places
    }

    /// Where the step wrote last, by status.
    fn last_place(&self, step: usize) -> Option<ObjectRef> {
        let name = &self.blueprint.steps[step].name;
        let entry = self.owner.status.resource(name)?;
        object_ref(entry.stamped_ref.as_ref()?)
    }

    /// Enough of an object to look at it.
    fn stand_in(&self, object: &ObjectRef) -> Value {
        json!({
            "apiVersion": object.api_version,
            "kind": object.kind,
            "metadata": {"namespace": self.owner.namespace, "name": object.name},
        })
    }

    /// What to look at while nothing can be put into an environment: its validations go on, and what they say must not wait
    /// for the next revision. None for other steps.
    pub(super) fn place_to_read(&self, at: &At) -> Option<Submission> {
        let is_environment = self.blueprint.is_environment(at.step);
        let last = self.last_place(at.step).filter(|_| is_environment)?;
        let mut reads = at.template.reads().to_vec();
        reads.push(annotation_path());
        let object = self.stand_in(&last);
        Some(Submission {
            resource: self.blueprint.steps[at.step].name.clone(),
            digest: canonical::digest(&object),
            name_seed: None,
            basis: None,
            object,
            lifecycle: Lifecycle::Mutable,
            family: crate::Labels::new(),
            reads: reads.into(),
            precondition: Precondition::None,
            told: Told::default(),
            adopt: false,
        })
    }

    /// What status says of the environment of a step.
    fn known(&self, step: usize) -> Known<'_> {
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

    fn awaits(&self, step: usize, what: &str) -> StepError {
        let name = &self.blueprint.steps[step].name;
        let error = ReadError::NotDone(NotDone::Condition(what.to_owned()));
        let message = format!("resource [{name}] condition not met: {what}");
        StepError::Retrieve { error, message }
    }
}

/// An environment that nothing is put into now: what it hands on is what is in it.
pub(super) fn stays(walk: &mut Walk<'_>, at: &At, observed: &Observed) -> Option<Output> {
    let said = said(&observed.object);
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
fn keep(
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
        .unless_deployed(said(&observed.object))
        .filter(|_| record.told.is_some());
    let state = EnvironmentState {
        failed: end.has_failed(),
        disregarded,
        ..state
    };
    walk.steps.find_arrival(at.step, record, state, false);
    end
}

/// Reads an environment that was written.
pub(super) fn arrived(
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
    let said = said(&observed.object);
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

/// Position of the object that an environment is to be: one that somebody deleted is made again, whatever it came to,
/// because the environment is the object.
fn next_object(walk: &Walk<'_>, at: &At, found: &[Observed], digest: &str) -> Position {
    let taint = walk.steps.taint(at.step);
    match walk.runs(at, found, &taint).decide(digest) {
        Due::Submit(position) => position,
        Due::Ended(run) => Position::to_be_made(run.sequence.saturating_add(1)),
    }
}

fn about_to_arrive(record: &Record) -> String {
    format!("revision [{}] is about to be deployed", record.revision())
}
