//! The gate of environments: what is in one is not replaced before it is validated.
//!
//! ```text
//!  rendering ─▶ look where it would be ─▶ look where it may be ─▶ decide ─┬─▶ pass, with the arrival that status announced
//!                                                                         ├─▶ hold: what is deployed is read
//!                                                                         └─▶ hold: status has to say first what comes, or
//!                                                                             what is disregarded
//! ```

mod content;
mod places;

use api_types::labels;

use self::content::{about_to_arrive, keep};
use crate::environment::state::EnvironmentState;
use crate::environment::{
    self, Decision, Incoming, Live, Present, Record, annotate, annotation_of, annotation_path,
};
use crate::step::end::{StepEnd, StepResult};
use crate::template::runs::Due;
use crate::template::stamp;
use crate::values::canonical;
use crate::walk::gate::{AfterLook, Gate, Reading, Ruling};
use crate::walk::prepare::HeldStep;
use crate::walk::{At, Walk};
use crate::{
    Lifecycle, Observed, Position, Precondition, Submission, SubmitFailure, SubmitFailureKind,
};

pub(super) use self::content::{arrived, held_among, stays};

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
        found: Vec<Observed>,
    ) -> Ruling {
        self.go_on(walk, at, &place, &found)
    }

    fn not_seen(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        failure: SubmitFailure,
    ) -> Ruling {
        // Where it was is somebody else's now, so it is not there any more.
        if failure.kind == SubmitFailureKind::Contested && !self.in_place {
            return self.go_on(walk, at, &place, &[]);
        }
        Ruling::Hold(walk.not_seen(at, &place, failure))
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
            let is_recorded = place.lifecycle == Lifecycle::Mutable;
            return found
                .find(|member| is_recorded || known.recognises(annotation_of(&member.object)));
        }
        let newest = found.filter_map(|member| {
            match known.present(annotation_of(&member.object), &walk.now) {
                Present::Revision(record) => Some((record.arrival.number, member)),
                Present::Nothing | Present::Either | Present::Unheard(_) => None,
            }
        });
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
                let state = EnvironmentState::holding(incoming, *next, is_free);
                let end = keep(walk, at, observed, record, state);
                Ruling::Hold(at.ended(end, place))
            }
            Decision::Announce {
                record,
                disregarded,
            } => {
                let awaited = about_to_arrive(&record);
                let state = EnvironmentState::announcing(record, disregarded);
                unclear(walk, at, place, &awaited, state)
            }
            Decision::Disregard(digest) => {
                let awaited = "somebody else wrote what its object says of the environment";
                let state = EnvironmentState::disregarding(digest);
                unclear(walk, at, place, awaited, state)
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
        submission.recorded.position = next_object(walk, at, found, &submission.digest);
        Ruling::Pass(submission, Reading::Arrival(Box::new(record)))
    }

    /// What comes in cannot be kept in the environment; what is in it can.
    fn refuse(&self, walk: &mut Walk<'_>, at: &At, live: Option<&Observed>) -> StepResult {
        let inputs = walk.steps.inputs(at.step);
        let withheld = HeldStep {
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

/// It cannot be said what is in an environment: nothing is read before status says more.
fn unclear(
    walk: &mut Walk<'_>,
    at: &At,
    place: &Submission,
    awaited: &str,
    state: EnvironmentState,
) -> Ruling {
    let end = StepEnd::Failed(walk.awaits(at.step, awaited));
    walk.steps.find_unclear(at.step, state);
    Ruling::Hold(at.ended(end, place))
}

/// Position of the object that an environment is to be: one that somebody deleted is made again, whatever it came to,
/// because the environment is the object.
fn next_object(walk: &Walk<'_>, at: &At, found: &[Observed], digest: &str) -> Position {
    match walk.observing(at).runs(found).decide(digest) {
        Due::Submit(position) => position,
        Due::Ended(run) => Position::to_be_made(run.sequence.saturating_add(1)),
    }
}
