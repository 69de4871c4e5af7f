//! The objects that the rules of a step read beside the stamped one.
//!
//! They are asked for once the stamped object was looked at or submitted, one after the other, so that none is older than
//! what was applied. What follows from the look or the submission waits until all are answered. As long as the stamped object
//! decides by itself, none is read: a build that has just been applied is not done, whatever else there is.

use std::collections::{BTreeMap, VecDeque};

use crate::template::others::{Others, ReadObject};
use crate::walk::gate::{AfterLook, Passage};
use crate::walk::lock;
use crate::walk::prepare::HeldStep;
use crate::walk::{At, Walk};
use crate::{FoundObject, Looked, ObjectQuery, Observation, Observed, Submission, Write};

/// What waits for the objects.
pub(super) enum Waiting {
    /// What a gate looked for was found.
    Looked {
        place: Box<Submission>,
        then: Box<dyn AfterLook>,
        passage: Box<Passage>,
        looked: Looked,
    },
    /// What is in an environment was found.
    Read {
        at: At,
        place: Box<Submission>,
        because: Box<HeldStep>,
        looked: Looked,
    },
    /// The submission was answered.
    Observed {
        submission: Box<Submission>,
        passage: Box<Passage>,
        observation: Box<Observation>,
    },
}

/// Objects that are being asked for.
pub(super) struct Reading {
    /// What is asked now.
    asked: ObjectQuery,
    left: VecDeque<Result<ObjectQuery, ReadObject>>,
    read: Vec<ReadObject>,
    are_needed: bool,
    waiting: Waiting,
}

/// What follows.
pub(super) enum Step {
    /// An object is asked for.
    Ask(Box<Reading>),
    /// All that there is to know is known.
    Known(Box<Waiting>),
}

impl Waiting {
    fn at(&self) -> &At {
        match self {
            Self::Looked { passage, .. } | Self::Observed { passage, .. } => passage.at(),
            Self::Read { at, .. } => at,
        }
    }

    /// Whether anything depends on the objects: not where there is nothing to judge.
    fn needs_them(&self) -> bool {
        let template = &self.at().template;
        let is_run = template.is_judged_as_run();
        let judged = |observed: &Observed| template.goodness.needs_others(&observed.object, is_run);
        match self {
            Self::Looked { .. } | Self::Read { .. } => self.found().iter().any(judged),
            Self::Observed { observation, .. } => match &**observation {
                Observation::Object { observed, .. } => judged(observed),
                Observation::Family { members, .. } => members.iter().any(judged),
                Observation::Failed(_) => false,
            },
        }
    }

    /// Whether they have been asked for since the step was looked at, and nothing was applied since.
    fn knows_them(&self, walk: &Walk<'_>, are_needed: bool) -> bool {
        let known = walk.steps.others(self.at().step);
        let is_known = known.is_some_and(|known| known.are_needed || !are_needed);
        is_known && matches!(self, Self::Observed { .. }) && !self.has_written()
    }

    /// What was found in the place of the step.
    fn found(&self) -> &[Observed] {
        match self {
            Self::Looked { looked, .. } | Self::Read { looked, .. } => {
                looked.as_deref().unwrap_or_default()
            }
            Self::Observed { .. } => &[],
        }
    }

    /// Whether something was applied.
    fn has_written(&self) -> bool {
        match self {
            Self::Looked { .. } | Self::Read { .. } => false,
            Self::Observed { observation, .. } => match &**observation {
                Observation::Object { write, .. } | Observation::Family { write, .. } => {
                    *write != Write::Unchanged
                }
                Observation::Failed(_) => false,
            },
        }
    }

    /// The rendering that it is about.
    fn rendering(&self) -> &str {
        match self {
            Self::Looked { place, .. } | Self::Read { place, .. } => &place.digest,
            Self::Observed { submission, .. } => &submission.digest,
        }
    }

    /// Asks for the objects of the step, if there are any.
    pub(super) fn begin(self, walk: &mut Walk<'_>) -> Step {
        let at = self.at();
        if at.template.goodness.others().is_empty() {
            return Step::Known(Box::new(self));
        }
        let are_needed = self.needs_them();
        if self.knows_them(walk, are_needed) {
            return Step::Known(Box::new(self));
        }
        let mut queries = walk.queries(at, self.found());
        let is_fresh = self.has_written();
        for query in queries.iter_mut().flatten() {
            query.is_fresh = is_fresh;
            query.is_needed = are_needed;
        }
        go_on(walk, self, are_needed, (queries.into(), Vec::new()))
    }
}

impl Reading {
    pub(super) fn asked(&self) -> &ObjectQuery {
        &self.asked
    }

    /// The object was asked for.
    pub(super) fn answered(mut self, walk: &mut Walk<'_>, found: FoundObject) -> Step {
        let taint = walk.steps.taint(self.waiting.at().step);
        self.read.push(ReadObject::new(&self.asked, found, &taint));
        go_on(walk, self.waiting, self.are_needed, (self.left, self.read))
    }
}

fn go_on(
    walk: &mut Walk<'_>,
    waiting: Waiting,
    are_needed: bool,
    (mut left, mut read): (VecDeque<Result<ObjectQuery, ReadObject>>, Vec<ReadObject>),
) -> Step {
    let step = waiting.at().step;
    while let Some(query) = left.pop_front() {
        match query {
            Ok(asked) => {
                return Step::Ask(Box::new(Reading {
                    asked,
                    left,
                    read,
                    are_needed,
                    waiting,
                }));
            }
            Err(unnamed) => read.push(unnamed.scrubbed(&walk.steps.taint(step))),
        }
    }
    let others = Others {
        of_rendering: waiting.rendering().to_owned(),
        are_needed,
        read,
    };
    walk.steps.find_others(step, others);
    Step::Known(Box::new(waiting))
}

impl Walk<'_> {
    /// An update that is applied already has the objects that it was rendered with, and so has what is in an environment.
    fn queries(&self, at: &At, found: &[Observed]) -> Vec<Result<ObjectQuery, ReadObject>> {
        let is_environment = self.blueprint.is_environment(at.step);
        let held = is_environment.then(|| lock::held_among(self, at, found));
        let held = held.flatten();
        let inputs = self.steps.inputs(at.step);
        let inputs = match &held {
            Some(held) => inputs.with_deployment(held),
            None => inputs,
        };
        let preparing = self.preparing_with(at.step, inputs);
        match self.steps.taken_up(at.step) {
            Some(arrived) => {
                let made_from = &arrived.stack.applied.made_from;
                preparing.queries(&at.template, &made_from.context)
            }
            None => preparing.queries(&at.template, &BTreeMap::new()),
        }
    }
}
