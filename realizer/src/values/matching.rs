//! Matching an owner against selectors, and fields against requirements
//! (docs/behaviour/selection.md#specificity, docs/behaviour/selection.md#fields).

mod unmet;

use std::borrow::Cow;
use std::collections::BTreeMap;

use api_types::selector::{CompiledSelector, SelectorError};
use api_types::{FieldOperator, FieldRequirement, LabelRequirement, Selector};
use serde_json::Value;

use crate::values::field_path::{FieldPath, PathProblem};

pub use unmet::Unmet;

/// A selector, compiled once: labels and expressions checked, paths parsed.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    labels: Result<CompiledSelector, LabelProblem>,
    fields: Vec<FieldMatcher>,
    specificity: usize,
    /// Whether a label is required to be there; see [`Matcher::is_chosen_by_labels`].
    asks_for_labels: bool,
}

/// A label selector that cannot be built, and the part of it that can.
#[derive(Clone, Debug)]
struct LabelProblem {
    error: SelectorError,
    valid_part: CompiledSelector,
    valid_part_asks_for_labels: bool,
}

/// Why a selector could not be evaluated: a hard error for the whole choice, unlike "does not match".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// Kubernetes does not accept its labels or expressions.
    #[error("selector labels or matchExpressions are not valid: {0}")]
    Labels(SelectorError),
    /// A field cannot be compared.
    #[error("failed to evaluate selector matchFields: {0}")]
    Fields(FieldError),
}

/// A field requirement that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unable to match field requirement with key [{}] operator [{}] values [[{}]]: {cause}",
    requirement.key, requirement.operator, requirement.values.join(" ")
)]
pub struct FieldError {
    /// The requirement.
    pub requirement: FieldRequirement,
    /// Why its path yields no value, or what is wrong with its operator.
    pub cause: String,
}

/// What a selector says of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match<'m> {
    /// It does not select the owner: of all requirements this is the first that is not met.
    No(Unmet<'m>),
    /// It selects the owner, with this score.
    Yes(usize),
}

/// One of several that an owner could get, and what its selector says of the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<'m> {
    /// Its name.
    pub name: &'m str,
    /// How well it fits. Of those that match, the one with the highest score wins.
    pub fit: Result<Match<'m>, MatchError>,
}

/// What selectors are matched against.
pub(crate) trait Matched: Fields {
    fn labels(&self) -> &BTreeMap<String, String>;
}

/// What field requirements are matched against.
pub(crate) trait Fields {
    fn read(&self, path: &FieldPath) -> Result<Cow<'_, Value>, PathProblem>;
}

impl Fields for Value {
    fn read(&self, path: &FieldPath) -> Result<Cow<'_, Value>, PathProblem> {
        path.read(self)
    }
}

impl Matcher {
    pub(crate) fn new(selector: &Selector) -> Self {
        Self {
            labels: CompiledSelector::new(selector)
                .map_err(|error| LabelProblem::new(selector, error)),
            fields: selector
                .match_fields
                .iter()
                .map(FieldMatcher::new)
                .collect(),
            specificity: selector.specificity(),
            asks_for_labels: asks_for_labels(&selector.match_labels, &selector.match_expressions),
        }
    }

    /// Labels first; fields only where labels match.
    pub(crate) fn matches<'m>(&'m self, owner: &'m impl Matched) -> Result<Match<'m>, MatchError> {
        let labels = self
            .labels
            .as_ref()
            .map_err(|problem| MatchError::Labels(problem.error.clone()))?;
        if let Some(requirement) = labels.unmet(owner.labels()) {
            let found = owner.labels().get(&requirement.key).map(String::as_str);
            return Ok(Match::No(Unmet::Label { requirement, found }));
        }
        for field in &self.fields {
            if let Some(unmet) = field.unmet(owner).map_err(MatchError::Fields)? {
                return Ok(Match::No(unmet));
            }
        }
        Ok(Match::Yes(self.specificity))
    }

    /// Whether owners with these labels may match, as far as labels decide it.
    pub(crate) fn could_match(&self, labels: &BTreeMap<String, String>) -> bool {
        match &self.labels {
            Ok(selector) => selector.matches(labels),
            Err(problem) => problem.valid_part.matches(labels),
        }
    }

    /// Whether the labels really speak for this selector: some label that it asks for is there, and nothing about labels
    /// speaks against it.
    ///
    /// A selector that asks for no label, or only for labels not to be there, matches nearly every owner in the cluster as
    /// far as labels go; where it cannot be evaluated it must not stall them all.
    pub(crate) fn is_chosen_by_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        match &self.labels {
            Ok(selector) => self.asks_for_labels && selector.matches(labels),
            Err(problem) => {
                problem.valid_part_asks_for_labels && problem.valid_part.matches(labels)
            }
        }
    }

    /// What makes the selector impossible to evaluate whatever the owner, if anything does.
    pub(crate) fn broken(&self) -> Option<MatchError> {
        if let Err(problem) = &self.labels {
            return Some(MatchError::Labels(problem.error.clone()));
        }
        self.fields
            .iter()
            .find_map(FieldMatcher::broken)
            .map(MatchError::Fields)
    }
}

impl LabelProblem {
    fn new(selector: &Selector, error: SelectorError) -> Self {
        let label = |(key, value): (&String, &String)| {
            CompiledSelector::from_parts(&BTreeMap::from([(key.clone(), value.clone())]), &[])
                .is_ok()
        };
        let labels: BTreeMap<String, String> = selector
            .match_labels
            .iter()
            .filter(|pair| label(*pair))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let expressions: Vec<_> = selector
            .match_expressions
            .iter()
            .filter(|expression| {
                CompiledSelector::from_parts(&BTreeMap::new(), std::slice::from_ref(expression))
                    .is_ok()
            })
            .cloned()
            .collect();
        Self {
            error,
            valid_part_asks_for_labels: asks_for_labels(&labels, &expressions),
            // Every part was accepted alone, so they are accepted together; the default requires nothing.
            valid_part: CompiledSelector::from_parts(&labels, &expressions).unwrap_or_default(),
        }
    }
}

/// Whether a label has to be there. That one is not there is true of most owners, and says nothing of whom a selector is for.
fn asks_for_labels(labels: &BTreeMap<String, String>, expressions: &[LabelRequirement]) -> bool {
    let asks = |expression: &LabelRequirement| match expression.operator.parse() {
        Ok(FieldOperator::In | FieldOperator::Exists) => true,
        Ok(FieldOperator::NotIn | FieldOperator::DoesNotExist) | Err(_) => false,
    };
    !labels.is_empty() || expressions.iter().any(asks)
}

/// One field requirement with its path parsed.
#[derive(Clone, Debug)]
pub(crate) struct FieldMatcher {
    requirement: FieldRequirement,
    path: FieldPath,
}

impl FieldMatcher {
    pub(crate) fn new(requirement: &FieldRequirement) -> Self {
        Self {
            requirement: requirement.clone(),
            path: FieldPath::new(&requirement.key),
        }
    }

    pub(crate) fn path(&self) -> &FieldPath {
        &self.path
    }

    pub(crate) fn matches(&self, object: &impl Fields) -> Result<bool, FieldError> {
        Ok(self.unmet(object)?.is_none())
    }

    /// Compares typed: a number 5 or a `true` never equals the text "5" or "true"
    /// (docs/behaviour/selection.md#fields).
    fn unmet<'m>(&'m self, object: &'m impl Fields) -> Result<Option<Unmet<'m>>, FieldError> {
        let found = match object.read(&self.path) {
            Ok(value) => Some(value),
            Err(PathProblem::Absent(_)) => None,
            Err(PathProblem::EmptyList(cause) | PathProblem::Broken(cause)) => {
                return Err(self.error(cause));
            }
        };
        let operator: FieldOperator = self
            .requirement
            .operator
            .parse()
            .map_err(|error| self.error(format!("{error}")))?;
        let listed = |value: &Value| {
            value
                .as_str()
                .is_some_and(|text| self.requirement.values.iter().any(|listed| listed == text))
        };
        let is_met = match (operator, found.as_deref()) {
            (FieldOperator::In, found) => found.is_some_and(listed),
            // Unlike a label, a field that is not there is not "not in" a set.
            (FieldOperator::NotIn, found) => found.is_some_and(|value| !listed(value)),
            (FieldOperator::Exists, found) => found.is_some_and(|value| !value.is_null()),
            (FieldOperator::DoesNotExist, found) => found.is_none_or(Value::is_null),
        };
        Ok((!is_met).then_some(Unmet::Field {
            requirement: &self.requirement,
            operator,
            found,
        }))
    }

    fn broken(&self) -> Option<FieldError> {
        if let Some(cause) = self.path.unparsable() {
            return Some(self.error(cause.to_owned()));
        }
        self.requirement.field_operator().is_none().then(|| {
            self.error(format!(
                "invalid operator {} for field selector",
                self.requirement.operator
            ))
        })
    }

    fn error(&self, cause: String) -> FieldError {
        FieldError {
            requirement: self.requirement.clone(),
            cause,
        }
    }
}

/// The selectors that match best, as indexes in list order; all of them when several are equally specific.
///
/// An entirely empty selector scores nothing and never wins.
///
/// # Errors
///
/// The first selector that cannot be evaluated, with its index.
pub(crate) fn best_matches<'m>(
    matchers: impl IntoIterator<Item = &'m Matcher>,
    owner: &impl Matched,
) -> Result<Vec<usize>, (usize, MatchError)> {
    let mut best = Best::default();
    for (index, matcher) in matchers.into_iter().enumerate() {
        best.consider(
            index,
            &matcher.matches(owner).map_err(|error| (index, error))?,
        );
    }
    Ok(best.indexes)
}

/// The running maximum of [`best_matches`].
#[derive(Debug, Default)]
pub(crate) struct Best {
    score: usize,
    pub(crate) indexes: Vec<usize>,
}

impl Best {
    pub(crate) fn consider(&mut self, index: usize, matched: &Match<'_>) {
        match *matched {
            Match::Yes(score) if score > self.score => {
                self.score = score;
                self.indexes = vec![index];
            }
            Match::Yes(score) if score == self.score && score > 0 => self.indexes.push(index),
            Match::Yes(_) | Match::No(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
