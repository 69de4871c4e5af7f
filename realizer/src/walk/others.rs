//! The objects that the rules of a step read beside the stamped one.
//!
//! They are asked for once the stamped object was looked at or submitted, one after the other, so that none is older than
//! what was applied. What follows from the look or the submission waits until all are answered. As long as the stamped object
//! decides by itself, none is read: a build that has just been applied is not done, whatever else there is. Nor is one read
//! while all is as it was when the object was good, which their versions tell:
//!
//! ```text
//!  answer ─▶ do they decide anything? ─┬─▶ no: they are watched ────────────────────────────────────▶ known
//!                                      └─▶ yes ─▶ versions ─┬─▶ all is as when the object was good ─▶ known
//!                                                           └─▶ it is not, or nobody knows ▶ values ─▶ known
//! ```

use std::collections::{BTreeMap, VecDeque};

use crate::template::others::{Others, ReadObject};
use crate::walk::gate::{AfterLook, Passage};
use crate::walk::lock;
use crate::walk::prepare::HeldStep;
use crate::walk::{At, Walk};
use crate::{FoundObject, Looked, Needed, ObjectQuery, Observation, Observed, Submission, Write};

/// What to ask for, in the order of the rules; of some it is known already why they are not read.
type Queries = VecDeque<Result<ObjectQuery, ReadObject>>;

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
    answered: Answered,
    waiting: Waiting,
}

/// What was answered so far, and what is to be asked.
enum Answered {
    /// In which versions they are there. `all` is what is to be read if they do not tell enough.
    Versions {
        versions: Vec<String>,
        left: Queries,
        all: Queries,
    },
    /// What they hold; `versions` are those that were read, as far as they are known.
    Values {
        versions: Vec<String>,
        left: Queries,
        read: Vec<ReadObject>,
        are_needed: bool,
    },
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

    /// Whether what follows depends on the rules.
    fn judges(&self) -> bool {
        match self {
            Self::Looked { then, .. } => then.judges(),
            Self::Read { .. } | Self::Observed { .. } => true,
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
        let is_known =
            known.is_some_and(|known| !known.are_as_when_good && (known.are_needed || !are_needed));
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

    /// Nothing is known of the objects yet.
    fn others(&self, are_needed: bool) -> Others {
        Others {
            of_rendering: self.rendering().to_owned(),
            are_needed,
            ..Others::default()
        }
    }

    /// Asks for the objects of the step, if there are any.
    pub(super) fn begin(self, walk: &mut Walk<'_>) -> Step {
        let at = self.at();
        if at.template.goodness.others().is_empty() || !self.judges() {
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
            if !are_needed {
                query.needed = Needed::Nothing;
            }
        }
        let all: Queries = queries.into();
        if are_needed && self.is_remembered(walk) && all.iter().all(Result::is_ok) {
            return ask_versions(walk, self, all.clone(), all, Vec::new());
        }
        ask_values(walk, self, are_needed, all, (Vec::new(), Vec::new()))
    }

    /// Whether it is about an object of which status may say by what it was good.
    fn is_remembered(&self, walk: &Walk<'_>) -> bool {
        let step = self.at().step;
        if walk.blueprint.is_environment(step) || !walk.steps.taint(step).is_none() {
            return false;
        }
        match self {
            Self::Looked { .. } | Self::Read { .. } => false,
            Self::Observed { observation, .. } => {
                let is_run = self.at().template.lifecycle.is_immutable();
                !is_run && matches!(**observation, Observation::Object { .. })
            }
        }
    }

    /// Whether with the other objects in these versions all is as it was when the stamped one was good.
    fn is_as_when_good(&self, walk: &Walk<'_>, versions: &[String]) -> bool {
        let Self::Observed {
            submission,
            observation,
            ..
        } = self
        else {
            return false;
        };
        let Observation::Object { observed, write } = &**observation else {
            return false;
        };
        let observing = walk.observing(self.at());
        let evidence = observing.evidence(submission, observed, versions);
        *write == Write::Unchanged
            && evidence.is_some_and(|evidence| observing.was_good_by(&evidence, observed))
    }
}

impl Reading {
    pub(super) fn asked(&self) -> &ObjectQuery {
        &self.asked
    }

    /// The object was asked for.
    pub(super) fn answered(self, walk: &mut Walk<'_>, found: FoundObject) -> Step {
        let Self {
            asked,
            answered,
            waiting,
        } = self;
        match answered {
            Answered::Versions {
                mut versions,
                left,
                all,
            } => {
                let Some(version) = found.version else {
                    return ask_values(walk, waiting, true, all, (Vec::new(), Vec::new()));
                };
                versions.push(named(&asked, &version));
                ask_versions(walk, waiting, left, all, versions)
            }
            Answered::Values {
                mut versions,
                left,
                mut read,
                are_needed,
            } => {
                let version = found.version.as_ref();
                versions.extend(version.map(|version| named(&asked, version)));
                let taint = walk.steps.taint(waiting.at().step);
                read.push(ReadObject::new(&asked, found, &taint));
                ask_values(walk, waiting, are_needed, left, (versions, read))
            }
        }
    }
}

/// An object in a version, told apart from any other.
fn named(query: &ObjectQuery, version: &str) -> String {
    let ObjectQuery {
        api_version,
        kind,
        choice,
        ..
    } = query;
    format!("{api_version} {kind} {choice:?} {version}")
}

fn ask_versions(
    walk: &mut Walk<'_>,
    waiting: Waiting,
    mut left: Queries,
    all: Queries,
    versions: Vec<String>,
) -> Step {
    if let Some(Ok(query)) = left.pop_front() {
        let asked = ObjectQuery {
            needed: Needed::Version,
            ..query
        };
        let answered = Answered::Versions {
            versions,
            left,
            all,
        };
        return Step::Ask(Box::new(Reading {
            asked,
            answered,
            waiting,
        }));
    }
    if waiting.is_as_when_good(walk, &versions) {
        let others = Others {
            are_as_when_good: true,
            versions,
            ..waiting.others(true)
        };
        return known(walk, waiting, others);
    }
    ask_values(walk, waiting, true, all, (Vec::new(), Vec::new()))
}

fn ask_values(
    walk: &mut Walk<'_>,
    waiting: Waiting,
    are_needed: bool,
    mut left: Queries,
    (versions, mut read): (Vec<String>, Vec<ReadObject>),
) -> Step {
    let step = waiting.at().step;
    while let Some(query) = left.pop_front() {
        match query {
            Ok(asked) => {
                let answered = Answered::Values {
                    versions,
                    left,
                    read,
                    are_needed,
                };
                return Step::Ask(Box::new(Reading {
                    asked,
                    answered,
                    waiting,
                }));
            }
            Err(unnamed) => read.push(unnamed.scrubbed(&walk.steps.taint(step))),
        }
    }
    let are_all_known = versions.len() == read.len();
    let others = Others {
        versions: if are_all_known { versions } else { Vec::new() },
        read,
        ..waiting.others(are_needed)
    };
    known(walk, waiting, others)
}

fn known(walk: &mut Walk<'_>, waiting: Waiting, others: Others) -> Step {
    walk.steps.find_others(waiting.at().step, others);
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
