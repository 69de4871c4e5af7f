//! Conditions, and conditions made of them: all of, one of, not.
//!
//! A condition holds, does not hold, or is not known yet, because nothing is at its path. What is made of conditions follows
//! Kleene: one that does not hold decides `allOf`, one that holds decides `anyOf`, and `not` of what is not known is not known.

use std::fmt;

use api_types::templates::{CompletionCondition, OtherObject};
use serde_json::Value;
use template_language::go_format;

use super::{Evidence, Unknown, position, shown, shown_problem};
use crate::template::others::as_written;
use crate::values::field_path::{FieldPath, PathProblem};

/// The most parts of a condition that a message tells of.
const MOST_TOLD: usize = 4;

/// A condition with its paths parsed.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    Value(Expected),
    /// As `Value`, of another object: which of those that the template reads, and how it is written there.
    OfOther(usize, String, Expected),
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
    NotKnown { why: String, unknown: Unknown },
}

/// Whether something can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Possible {
    /// It is.
    Yes,
    /// It is not, before something changes.
    No,
    /// It depends on what cannot be read.
    Depends { why: String, unknown: Unknown },
}

impl Possible {
    fn of(truth: Truth, holding: bool) -> Self {
        match truth {
            Truth::NotKnown {
                why,
                unknown:
                    unknown @ (Unknown::Refused
                    | Unknown::Unavailable
                    | Unknown::Several
                    | Unknown::Unasked),
            } => Self::Depends { why, unknown },
            Truth::Holds if holding => Self::Yes,
            Truth::HoldsNot(_) if !holding => Self::Yes,
            Truth::Holds | Truth::HoldsNot(_) | Truth::NotKnown { .. } => Self::No,
        }
    }

    /// What parts come to, of which each that is `deciding` decides; without any they are `neutral`.
    fn together(parts: impl Iterator<Item = Self>, neutral: Self, deciding: &Self) -> Self {
        let mut dependent = None;
        for part in parts {
            if part == *deciding {
                return part;
            }
            if matches!(part, Self::Depends { .. }) {
                dependent = dependent.or(Some(part));
            }
        }
        dependent.unwrap_or(neutral)
    }
}

impl Condition {
    /// `others` are the objects that the template reads beside the stamped one.
    pub(crate) fn new(
        condition: &CompletionCondition,
        reads_scalars: bool,
        others: &[&OtherObject],
    ) -> Self {
        let all = |parts: &[CompletionCondition]| {
            let parts = parts.iter();
            parts
                .map(|part| Self::new(part, reads_scalars, others))
                .collect()
        };
        if let Some(not) = &condition.not {
            return Self::Not(Box::new(Self::new(not, reads_scalars, others)));
        }
        if !condition.any_of.is_empty() {
            return Self::AnyOf(all(&condition.any_of));
        }
        if !condition.all_of.is_empty() {
            return Self::AllOf(all(&condition.all_of));
        }
        let expected = Expected {
            path: FieldPath::new(&condition.key),
            value: condition.value.clone(),
            reads_scalars,
        };
        match &condition.object {
            Some(object) => Self::OfOther(position(others, object), as_written(object), expected),
            None => Self::Value(expected),
        }
    }

    /// Whether it holds. What is told shows no values under the veil.
    pub(crate) fn of(&self, evidence: Evidence<'_>) -> Truth {
        match self {
            Self::Value(expected) => expected.of(evidence),
            Self::OfOther(other, _, expected) => expected.of_other(*other, evidence),
            Self::AllOf(parts) => all(parts.iter().map(|part| part.of(evidence))),
            Self::AnyOf(parts) => any(parts.iter().map(|part| part.of(evidence))),
            Self::Not(part) => match part.of(evidence) {
                Truth::Holds => Truth::HoldsNot(part.to_string()),
                Truth::HoldsNot(_) => Truth::Holds,
                unknown @ Truth::NotKnown { .. } => unknown,
            },
        }
    }

    /// Whether anything is read on another object.
    pub(crate) fn reads_others(&self) -> bool {
        match self {
            Self::Value(_) => false,
            Self::OfOther(..) => true,
            Self::AllOf(parts) | Self::AnyOf(parts) => parts.iter().any(Self::reads_others),
            Self::Not(part) => part.reads_others(),
        }
    }

    /// Whether it holds, or could with something else in the other objects that are not known: unread, refused, one of
    /// several. What is not there is known to be so.
    pub(super) fn can_hold(&self, evidence: Evidence<'_>) -> Possible {
        self.can_be(true, evidence)
    }

    /// Whether it holds, or fails if that is asked for.
    fn can_be(&self, holding: bool, evidence: Evidence<'_>) -> Possible {
        match self {
            Self::Value(expected) => Possible::of(expected.of(evidence), holding),
            Self::OfOther(other, _, expected) => {
                Possible::of(expected.of_other(*other, evidence), holding)
            }
            Self::AllOf(parts) | Self::AnyOf(parts) => {
                let parts = parts.iter().map(|part| part.can_be(holding, evidence));
                let (neutral, deciding) = if matches!(self, Self::AllOf(_)) == holding {
                    (Possible::Yes, Possible::No)
                } else {
                    (Possible::No, Possible::Yes)
                };
                Possible::together(parts, neutral, &deciding)
            }
            Self::Not(part) => part.can_be(!holding, evidence),
        }
    }

    /// What is read on the stamped object, or on one of the others.
    pub(crate) fn paths(&self, on: Option<usize>) -> Vec<&FieldPath> {
        let own = |of: Option<usize>, expected| (of == on).then_some(expected);
        match self {
            Self::Value(expected) => own(None, &expected.path).into_iter().collect(),
            Self::OfOther(other, _, expected) => {
                own(Some(*other), &expected.path).into_iter().collect()
            }
            Self::AllOf(parts) | Self::AnyOf(parts) => {
                parts.iter().flat_map(|part| part.paths(on)).collect()
            }
            Self::Not(part) => part.paths(on),
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
            Self::OfOther(_, object, expected) => {
                let (path, value) = (expected.path.text(), &expected.value);
                write!(f, "[{path}] of object [{object}] is {value}")
            }
            Self::AllOf(parts) => f.write_str(&joined(parts, " and ")),
            Self::AnyOf(parts) => f.write_str(&joined(parts, " or ")),
            Self::Not(part) => write!(f, "not {part}"),
        }
    }
}

impl Truth {
    /// Whether it is something else that is to be told.
    fn is_unasked(&self) -> bool {
        matches!(
            self,
            Self::NotKnown {
                unknown: Unknown::Unasked,
                ..
            }
        )
    }
}

fn all(parts: impl Iterator<Item = Truth>) -> Truth {
    let mut truth = Truth::Holds;
    for part in parts {
        match (&truth, part) {
            (_, fails @ Truth::HoldsNot(_)) => return fails,
            (Truth::Holds, unknown @ Truth::NotKnown { .. }) => truth = unknown,
            (before, unknown @ Truth::NotKnown { .. }) if before.is_unasked() => truth = unknown,
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
            Truth::NotKnown { .. } => {
                unknown = unknown.filter(|it: &Truth| !it.is_unasked()).or(Some(part));
            }
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

    /// What another object holds is not shown.
    fn of_other(&self, other: usize, evidence: Evidence<'_>) -> Truth {
        match evidence.of_other(other, &self.path) {
            Ok(value) if self.is(&value) => Truth::Holds,
            Ok(_) => Truth::HoldsNot(format!(
                "[{}] of object [{}] is not {}",
                self.path.text(),
                evidence.shown_other(other),
                self.value
            )),
            Err((why, unknown)) => Truth::NotKnown { why, unknown },
        }
    }

    fn of(&self, evidence: Evidence<'_>) -> Truth {
        let Evidence { object, veil, .. } = evidence;
        let path = self.path.text();
        let unknown = |problem: &PathProblem, unknown| Truth::NotKnown {
            why: format!("[{path}]: {}", shown_problem(problem, veil.hides_all())),
            unknown,
        };
        match self.path.read(object) {
            Ok(value) if self.is(&value) => Truth::Holds,
            Ok(value) => Truth::HoldsNot(format!(
                "[{path}] was: {}, expected: {}",
                shown(&value, veil.hides_all()),
                self.value
            )),
            Err(problem @ (PathProblem::Absent(_) | PathProblem::EmptyList(_))) => {
                unknown(&problem, Unknown::Awaited)
            }
            Err(problem @ PathProblem::Broken(_)) => unknown(&problem, Unknown::Hopeless),
        }
    }
}

#[cfg(test)]
mod tests;
