//! When an object is good, so that its step hands on what is read
//! (docs/behaviour/deployments.md#rules).
//!
//! What is read and when it is good are two things: any kind of output may wait until its object is good. Kubernetes has no
//! common way to say so, which is why a template says what to look at ([`Readiness`]). A validation is judged for each arrival
//! ([`Judgement`]).

mod completion;

use api_types::templates::ObservedMatch;
use api_types::{ClusterDeploymentTemplateSpec, Template};
use serde_json::Value;

use self::completion::Completion;

use crate::template::judgement::Judgement;
use crate::template::outputs::ReadError;
use crate::values::field_path::{FieldPath, PathProblem};
use crate::values::redaction::{REDACTED, Taint, Veil};
use template_language::go_format;

pub(crate) use self::completion::Expected;

/// When an object is good.
#[derive(Clone, Debug)]
pub(crate) enum Goodness {
    /// As soon as it is there.
    Always,
    /// Once it says that it is done.
    Done(Box<Readiness>),
    /// Once it has a verdict on what was deployed. Reading does not ask for it: the walk does, for each arrival.
    Verdict(Box<Judgement>),
}

impl Goodness {
    pub(crate) fn new(template: &Template) -> Self {
        match template {
            Template::Source(_) | Template::Image(_) | Template::Config(_) | Template::Plain(_) => {
                Self::Always
            }
            Template::Deployment(template) => Self::Done(Box::new(Readiness::new(&template.spec))),
            Template::Validation(template) => {
                Self::Verdict(Box::new(Judgement::new(&template.spec)))
            }
        }
    }

    /// Whether what is read on the object may be handed on, as far as the object alone can say. `inputs` is what all inputs
    /// of the step taint with.
    pub(crate) fn check(&self, object: Option<&Value>, inputs: &Taint) -> Result<(), ReadError> {
        match self {
            Self::Always | Self::Verdict(_) => Ok(()),
            Self::Done(readiness) => {
                let object = object.ok_or(ReadError::NoObject)?;
                Ok(readiness.check(object, Veil::over(object, inputs))?)
            }
        }
    }

    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        match self {
            Self::Always => Vec::new(),
            Self::Done(readiness) => readiness.paths(),
            Self::Verdict(judgement) => judgement.paths(),
        }
    }
}

/// The rules of a template with their paths parsed. Neither given: done at once.
#[derive(Clone, Debug)]
pub(crate) struct Readiness {
    matches: Vec<PathPair>,
    completion: Option<Completion>,
}

#[derive(Clone, Debug)]
struct PathPair {
    input: FieldPath,
    output: FieldPath,
}

/// Why a deployment is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotDone {
    /// Not yet.
    #[error("{0}")]
    Condition(String),
    /// Never, unless somebody corrects a path of the rules.
    #[error("{0}")]
    Hopeless(String),
    /// It failed.
    #[error("{0}")]
    Failed(String),
    /// The object does not say which generation it speaks of.
    #[error("failed to evaluate status.observedGeneration: {problem}")]
    ObservedGeneration {
        /// Why it cannot be read.
        problem: PathProblem,
        /// Whether it has a status all the same, so that it may never say. Until then its controller has not come to it.
        has_status: bool,
    },
    /// A path cannot be evaluated.
    #[error("failed to evaluate json path '{path}': {cause}")]
    Path {
        /// The path.
        path: String,
        /// Why not; it may quote the object.
        cause: String,
        /// Whether only somebody who corrects the path can help.
        is_hopeless: bool,
    },
}

impl Readiness {
    pub(crate) fn new(spec: &ClusterDeploymentTemplateSpec) -> Self {
        Self {
            matches: spec.observed_matches.iter().map(PathPair::new).collect(),
            completion: spec.observed_completion.as_ref().map(Completion::new),
        }
    }

    /// Whether any rule is given.
    pub(crate) fn is_given(&self) -> bool {
        !self.matches.is_empty() || self.completion.is_some()
    }

    /// Whether the object is done. Messages show no values under the veil.
    pub(crate) fn check(&self, object: &Value, veil: Veil<'_>) -> Result<(), NotDone> {
        self.check_matches(object, veil)?;
        self.completion.as_ref().map_or(Ok(()), |completion| {
            completion.check_generation(object)?;
            completion.check(object, veil)
        })
    }

    /// As [`Readiness::check`], for an object that is never changed: there is only one generation of it, so that one that
    /// does not say which it has observed is not waited for.
    pub(crate) fn check_run(&self, object: &Value, veil: Veil<'_>) -> Result<(), NotDone> {
        self.check_matches(object, veil)?;
        self.completion.as_ref().map_or(Ok(()), |completion| {
            if completion.says_generation(object) {
                completion.check_generation(object)?;
            }
            completion.check(object, veil)
        })
    }

    fn check_matches(&self, object: &Value, veil: Veil<'_>) -> Result<(), NotDone> {
        self.matches
            .iter()
            .try_for_each(|pair| pair.check(object, veil))
    }

    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        let mut paths: Vec<&FieldPath> = self
            .matches
            .iter()
            .flat_map(|pair| [&pair.input, &pair.output])
            .collect();
        if let Some(completion) = &self.completion {
            paths.extend(completion.paths());
        }
        paths
    }
}

impl PathPair {
    fn new(pair: &ObservedMatch) -> Self {
        Self {
            input: FieldPath::new(&pair.input),
            output: FieldPath::new(&pair.output),
        }
    }

    /// Compares deeply: comparing two maps or lists killed the Go controller.
    fn check(&self, object: &Value, veil: Veil<'_>) -> Result<(), NotDone> {
        let side = |name: &str, path: &FieldPath| {
            path.read(object).map_err(|problem| {
                let text = format!(
                    "could not find value on {name} [{}]: {}",
                    path.text(),
                    shown_problem(&problem, veil.hides_all())
                );
                NotDone::unread(&problem, text)
            })
        };
        let input = side("input", &self.input)?;
        let output = side("output", &self.output)?;
        if input == output {
            return Ok(());
        }
        let hidden = veil.hides([&input, &output]);
        Err(NotDone::Condition(format!(
            "input [{}] and output [{}] do not match: {} != {}",
            self.input.text(),
            self.output.text(),
            shown(&input, hidden),
            shown(&output, hidden)
        )))
    }
}

impl NotDone {
    /// A path of the rules has no value.
    fn unread(problem: &PathProblem, text: String) -> Self {
        match problem {
            PathProblem::Absent(_) | PathProblem::EmptyList(_) => Self::Condition(text),
            PathProblem::Broken(_) => Self::Hopeless(text),
        }
    }
}

/// A path that does not fit the data quotes the data.
fn shown_problem(problem: &PathProblem, secret: bool) -> String {
    match problem {
        PathProblem::EmptyList(_) | PathProblem::Broken(_) if secret => REDACTED.to_owned(),
        PathProblem::Absent(text) | PathProblem::EmptyList(text) | PathProblem::Broken(text) => {
            text.clone()
        }
    }
}

fn shown(value: &Value, secret: bool) -> String {
    if secret {
        REDACTED.to_owned()
    } else {
        go_format::display(value)
    }
}

#[cfg(test)]
mod tests;
