//! Conditions, and conditions made of them: all of, one of, not.
//!
//! A condition holds, does not hold, or is not known yet, because nothing is at its path. What is made of conditions follows
//! Kleene: one that does not hold decides `allOf`, one that holds decides `anyOf`, and `not` of what is not known is not known.

use std::fmt;

use api_types::templates::CompletionCondition;
use serde_json::Value;
use template_language::go_format;

use super::{shown, shown_problem};
use crate::values::field_path::{FieldPath, PathProblem};
use crate::values::redaction::Veil;

/// The most parts of a condition that a message tells of.
const MOST_TOLD: usize = 4;

/// A condition with its paths parsed.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Value(Expected),
    AllOf(Vec<Self>),
    AnyOf(Vec<Self>),
    Not(Box<Self>),
}

/// A path and the text expected there.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(super) path: FieldPath,
    pub(super) value: String,
    /// Whether a number or a boolean is read as its text: the count of a Job is a number. The Go controller compares texts
    /// only.
    reads_scalars: bool,
}

/// Whether a condition holds, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Truth {
    Holds,
    HoldsNot(String),
    NotKnown {
        why: String,
        /// Whether only somebody who corrects a path can help.
        is_hopeless: bool,
    },
}

impl Condition {
    pub(crate) fn new(condition: &CompletionCondition, reads_scalars: bool) -> Self {
        let all = |parts: &[CompletionCondition]| {
            let parts = parts.iter().map(|part| Self::new(part, reads_scalars));
            parts.collect()
        };
        if let Some(not) = &condition.not {
            return Self::Not(Box::new(Self::new(not, reads_scalars)));
        }
        if !condition.any_of.is_empty() {
            return Self::AnyOf(all(&condition.any_of));
        }
        if !condition.all_of.is_empty() {
            return Self::AllOf(all(&condition.all_of));
        }
        Self::Value(Expected {
            path: FieldPath::new(&condition.key),
            value: condition.value.clone(),
            reads_scalars,
        })
    }

    /// Whether it holds of the object. What is told shows no values under the veil.
    pub(crate) fn of(&self, object: &Value, veil: Veil<'_>) -> Truth {
        match self {
            Self::Value(expected) => expected.of(object, veil),
            Self::AllOf(parts) => all(parts.iter().map(|part| part.of(object, veil))),
            Self::AnyOf(parts) => any(parts.iter().map(|part| part.of(object, veil))),
            Self::Not(part) => match part.of(object, veil) {
                Truth::Holds => Truth::HoldsNot(part.to_string()),
                Truth::HoldsNot(_) => Truth::Holds,
                unknown @ Truth::NotKnown { .. } => unknown,
            },
        }
    }

    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        match self {
            Self::Value(expected) => vec![&expected.path],
            Self::AllOf(parts) | Self::AnyOf(parts) => parts.iter().flat_map(Self::paths).collect(),
            Self::Not(part) => part.paths(),
        }
    }
}

/// As the template gives it, which is no secret.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |parts: &[Self], by: &str| {
            let told: Vec<String> = parts.iter().take(MOST_TOLD).map(Self::to_string).collect();
            let more = if parts.len() > MOST_TOLD {
                by.to_owned() + "…"
            } else {
                String::new()
            };
            format!("({}{more})", told.join(by))
        };
        match self {
            Self::Value(expected) => {
                write!(f, "[{}] is {}", expected.path.text(), expected.value)
            }
            Self::AllOf(parts) => f.write_str(&joined(parts, " and ")),
            Self::AnyOf(parts) => f.write_str(&joined(parts, " or ")),
            Self::Not(part) => write!(f, "not {part}"),
        }
    }
}

fn all(parts: impl Iterator<Item = Truth>) -> Truth {
    let mut truth = Truth::Holds;
    for part in parts {
        match (&truth, part) {
            (_, fails @ Truth::HoldsNot(_)) => return fails,
            (Truth::Holds, unknown @ Truth::NotKnown { .. }) => truth = unknown,
            _ => {}
        }
    }
    truth
}

fn any(parts: impl Iterator<Item = Truth>) -> Truth {
    let mut unknown = None;
    let mut reasons = Vec::new();
    for part in parts {
        match part {
            Truth::Holds => return Truth::Holds,
            Truth::HoldsNot(why) => reasons.push(why),
            Truth::NotKnown { .. } => unknown = unknown.or(Some(part)),
        }
    }
    reasons.truncate(MOST_TOLD);
    unknown.unwrap_or_else(|| Truth::HoldsNot(reasons.join("; ")))
}

impl Expected {
    /// Whether this is what is expected.
    pub(super) fn is(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => *text == self.value,
            Value::Bool(_) | Value::Number(_) => {
                self.reads_scalars && go_format::display(value) == self.value
            }
            Value::Null | Value::Array(_) | Value::Object(_) => false,
        }
    }

    fn of(&self, object: &Value, veil: Veil<'_>) -> Truth {
        let path = self.path.text();
        let unknown = |problem: &PathProblem, is_hopeless| Truth::NotKnown {
            why: format!("[{path}]: {}", shown_problem(problem, veil.hides_all())),
            is_hopeless,
        };
        match self.path.read(object) {
            Ok(value) if self.is(&value) => Truth::Holds,
            Ok(value) => Truth::HoldsNot(format!(
                "[{path}] was: {}, expected: {}",
                shown(&value, veil.hides_all()),
                self.value
            )),
            Err(problem @ (PathProblem::Absent(_) | PathProblem::EmptyList(_))) => {
                unknown(&problem, false)
            }
            Err(problem @ PathProblem::Broken(_)) => unknown(&problem, true),
        }
    }
}

#[cfg(test)]
mod tests;
