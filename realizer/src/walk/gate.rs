//! What stands between the rendering of a step and its submission.
//!
//! A gate looks at what the cluster holds, where that matters, and decides: it lets the rendering pass, or holds it. A step
//! may have several gates. They are asked one after the other; what passed the last one is submitted. If the object has
//! changed by then, the rendering begins again at the first one.
//!
//! ```text
//!  rendering ─▶ gate ─┬─▶ look ─▶ what is there ─▶ gate ─▶ …
//!                     ├─▶ pass ─▶ the next gate, or submit
//!                     └─▶ hold ─▶ nothing is written, and the step ends
//! ```
//!
//! A new policy is a type with [`Gate`], and an `if` in [`gates`] that says which steps have it. [`family`](super::family) is
//! the smallest there is. A policy that holds a step for reasons of its own answers with [`Ruling::Withhold`]; it stands before
//! the lock of environments, which announces an arrival in the status before it lets it pass, and before that of validations,
//! which counts a run from its submission.

use crate::environment::Record;
use crate::step::end::StepResult;
use crate::walk::doubt::DoubtGate;
use crate::walk::family::FamilyGate;
use crate::walk::lock::{self, EnvironmentLock};
use crate::walk::prepare::HeldStep;
use crate::walk::unconfirmed::UnconfirmedGate;
use crate::walk::updates::UpdateGate;
use crate::walk::validation::{self, ValidationGate};
use crate::walk::{At, Walk};
use crate::{Looked, Observation, Observed, Precondition, Submission, SubmitFailure};

/// Whoever keeps changing an object between a look and the write after it is not answered for ever.
const MOST_REFUSALS: u8 = 3;

/// A policy that decides whether a rendering is submitted.
pub(super) trait Gate: Sync {
    /// Decides about a rendering that comes to the gate.
    fn approached(&self, walk: &mut Walk<'_>, at: &At, rendering: Submission) -> Ruling;
}

/// The rest of a decision for which a gate has to know what is there.
pub(super) trait AfterLook: Send + Sync {
    /// Decides by what was found at the place that was looked at.
    fn found(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        found: Vec<Observed>,
    ) -> Ruling;

    /// Whether it decides by what the rules of the template say of what is found. If not, the objects that they read besides
    /// are not asked for yet.
    fn judges(&self) -> bool {
        true
    }

    /// Decides where the place could not be looked at: nothing is submitted unseen.
    fn not_seen(
        self: Box<Self>,
        walk: &mut Walk<'_>,
        at: &At,
        place: Submission,
        failure: SubmitFailure,
    ) -> Ruling {
        Ruling::Hold(walk.not_seen(at, &place, failure))
    }
}

/// What a gate decides.
pub(super) enum Ruling {
    /// It has to know first what is at this place.
    Look(Submission, Box<dyn AfterLook>),
    /// The rendering passes, as it is here, and what becomes of it is read so.
    Pass(Submission, Reading),
    /// Nothing is submitted, and the step ends so: what the gate has read at the place is the end.
    Hold(StepResult),
    /// Nothing is submitted for this reason, and what is there is left as it is. What is in an environment is handed on all
    /// the same.
    Withhold(Box<HeldStep>),
}

/// How the end of a step is read from its object.
pub(super) enum Reading {
    /// By its outputs.
    Outputs,
    /// It is an environment that holds this arrival.
    Arrival(Box<Record>),
    /// It is a validation, which comes to a verdict.
    Verdict,
}

/// The gates of a step for a rendering, in the order in which they are asked.
fn gates(walk: &Walk<'_>, at: &At, rendering: &Submission) -> Vec<&'static dyn Gate> {
    let step = at.step;
    let mut gates: Vec<&'static dyn Gate> = Vec::new();
    // Of these, each looks at what the step has stamped so far, so a step has one of them.
    if walk.blueprint.is_environment(step) {
        gates.push(&EnvironmentLock);
    } else if walk.blueprint.steps[step].validates() {
        gates.push(&ValidationGate);
    } else {
        // Which rendering it is comes first. An environment waits by its lock already.
        if at.template.updates.is_some() {
            gates.push(&UpdateGate);
        }
        if !walk.steps.unconfirmed_providers(step).is_empty() {
            gates.push(&UnconfirmedGate);
        }
        if rendering.lifecycle.is_immutable() {
            gates.push(&FamilyGate);
        } else if at.template.is_attributed() && at.template.goodness.compares() {
            gates.push(&DoubtGate);
        }
    }
    gates
}

/// A rendering on its way through the gates of its step.
pub(super) struct Passage {
    at: At,
    gates: Vec<&'static dyn Gate>,
    /// How many gates have let it pass.
    passed: usize,
    /// How the last gate that cares wants the end to be read.
    reading: Reading,
    /// What came to the first gate, if there is one.
    rendering: Option<Submission>,
    /// Whether a gate has decided by what the object was, so that it is to be written as that only.
    is_bound: bool,
    /// How often the write was refused, because the object had changed.
    refused: u8,
}

/// Where a rendering has come to.
pub(super) enum Progress {
    /// A gate has to know what is at this place.
    Look(Submission, Box<dyn AfterLook>),
    /// All gates let it pass.
    Submit(Submission),
    /// A gate holds it.
    Held(StepResult),
    /// A gate holds it, and what is there stays as it is.
    Withheld(Box<HeldStep>),
}

impl Passage {
    /// A rendering comes to the gates of its step.
    pub(super) fn begin(walk: &mut Walk<'_>, at: At, rendering: Submission) -> (Self, Progress) {
        let gates = gates(walk, &at, &rendering);
        let mut passage = Self::through(gates, at, &rendering);
        let progress = passage.approach(walk, rendering);
        (passage, progress)
    }

    fn through(gates: Vec<&'static dyn Gate>, at: At, rendering: &Submission) -> Self {
        Self {
            at,
            rendering: (!gates.is_empty()).then(|| rendering.clone()),
            gates,
            passed: 0,
            reading: Reading::Outputs,
            is_bound: false,
            refused: 0,
        }
    }

    /// What a gate wanted to know was found.
    pub(super) fn found(
        &mut self,
        walk: &mut Walk<'_>,
        then: Box<dyn AfterLook>,
        place: Submission,
        found: Looked,
    ) -> Progress {
        let ruling = match found {
            Ok(found) => then.found(walk, &self.at, place, found),
            Err(failure) => then.not_seen(walk, &self.at, place, failure),
        };
        self.follow(walk, ruling)
    }

    /// The object has changed since a gate decided by what it was, by another process or a person. Nothing is wrong, but what
    /// was decided no longer holds: it is decided again, unless that was done often enough.
    pub(super) fn begin_again(&mut self, walk: &mut Walk<'_>) -> Option<Progress> {
        let may_again = self.is_bound && self.refused < MOST_REFUSALS;
        let rendering = self.rendering.clone().filter(|_| may_again)?;
        self.refused += 1;
        self.passed = 0;
        self.reading = Reading::Outputs;
        self.is_bound = false;
        Some(self.approach(walk, rendering))
    }

    /// The end of the step, by what became of the submission.
    pub(super) fn end(
        &self,
        walk: &mut Walk<'_>,
        submission: &Submission,
        observation: Observation,
    ) -> StepResult {
        let end = match &self.reading {
            Reading::Outputs => walk.observing(&self.at).observe(submission, observation),
            Reading::Arrival(record) => {
                lock::arrived(walk, &self.at, submission, record, observation)
            }
            Reading::Verdict => validation::judged(walk, &self.at, submission, observation),
        };
        self.at.ended(end, submission)
    }

    /// The step that it belongs to.
    pub(super) fn at(&self) -> &At {
        &self.at
    }

    fn approach(&mut self, walk: &mut Walk<'_>, rendering: Submission) -> Progress {
        match self.gates.get(self.passed) {
            None => Progress::Submit(rendering),
            Some(gate) => {
                let ruling = gate.approached(walk, &self.at, rendering);
                self.follow(walk, ruling)
            }
        }
    }

    fn follow(&mut self, walk: &mut Walk<'_>, ruling: Ruling) -> Progress {
        match ruling {
            Ruling::Look(place, then) => Progress::Look(place, then),
            Ruling::Hold(result) => Progress::Held(result),
            Ruling::Withhold(because) => Progress::Withheld(because),
            Ruling::Pass(rendering, reading) => {
                self.is_bound |= rendering.precondition != Precondition::None
                    || matches!(reading, Reading::Arrival(_));
                match reading {
                    // Another gate may want more.
                    Reading::Outputs => {}
                    Reading::Arrival(_) | Reading::Verdict => self.reading = reading,
                }
                self.passed += 1;
                self.approach(walk, rendering)
            }
        }
    }
}

#[cfg(test)]
mod tests;
