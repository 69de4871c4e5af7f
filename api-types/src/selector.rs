//! Requirements on the labels and fields of an owner.

mod compiled;
pub(crate) mod label_syntax;

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::texts::text_enum;

pub use compiled::{CompiledSelector, Requirement, SelectorError};
pub use label_syntax::{label_key_errors, subdomain_errors};

/// Labels, label requirements and field requirements; all must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Selector {
    /// Labels with these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
    /// Requirements on fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_fields: Vec<FieldRequirement>,
}

impl Selector {
    /// How specific the selector is: the number of its requirements, whatever their kind.
    pub fn specificity(&self) -> usize {
        self.match_labels.len() + self.match_expressions.len() + self.match_fields.len()
    }

    /// Whether nothing is required.
    pub fn is_empty(&self) -> bool {
        self.specificity() == 0
    }
}

/// Labels and label requirements, as in Kubernetes; all must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels with these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelRequirement>,
}

impl LabelSelector {
    /// Whether nothing is required, so that everything matches.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Ready to be matched.
    ///
    /// # Errors
    ///
    /// As [`CompiledSelector::new`].
    pub fn compile(&self) -> Result<CompiledSelector, SelectorError> {
        CompiledSelector::from_parts(&self.match_labels, &self.match_expressions)
    }
}

/// A requirement on one label, as in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelRequirement {
    /// Key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`; any string is stored.
    pub operator: String,
    /// Values, for `In` and `NotIn`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// A requirement on the value at a path of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FieldRequirement {
    /// JSONPath of the value, relative to the object itself.
    pub key: String,
    /// See [`FieldRequirement::field_operator`].
    pub operator: String,
    /// Values, for `In` and `NotIn`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

impl FieldRequirement {
    /// The operator, if it is a known one; the schema admits no other.
    ///
    /// ```
    /// use api_types::{FieldOperator, FieldRequirement};
    ///
    /// let requirement = FieldRequirement { operator: "Exists".into(), ..Default::default() };
    /// assert_eq!(requirement.field_operator(), Some(FieldOperator::Exists));
    /// ```
    pub fn field_operator(&self) -> Option<FieldOperator> {
        self.operator.parse().ok()
    }
}

text_enum! {
    /// How a value is compared.
    pub enum FieldOperator {
        /// The value is one of the given.
        In,
        /// The value is none of the given.
        NotIn,
        /// There is a value.
        Exists,
        /// There is no value.
        DoesNotExist,
    }
}

/// A text that is not an operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid operator {operator} for field selector")]
pub struct UnknownOperator {
    /// The text as given.
    pub operator: String,
}

impl FromStr for FieldOperator {
    type Err = UnknownOperator;

    fn from_str(operator: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str() == operator)
            .ok_or_else(|| UnknownOperator {
                operator: operator.to_owned(),
            })
    }
}

impl FieldOperator {
    /// What is asked for of a key, and what is there instead (in brackets), in words.
    ///
    /// ```
    /// use api_types::FieldOperator;
    ///
    /// let text = FieldOperator::Exists.unmet_by("team", &[], None);
    /// assert_eq!(text, "[team] must be there, but is not there");
    /// ```
    pub fn unmet_by(self, key: &str, values: &[String], found: Option<String>) -> String {
        let found = match found {
            Some(found) => format!("is {found}"),
            None => "is not there".to_owned(),
        };
        let values = values.join(", ");
        match self {
            Self::In => format!("[{key}] must be one of [{values}], but {found}"),
            Self::NotIn => format!("[{key}] must be none of [{values}], but {found}"),
            Self::Exists => format!("[{key}] must be there, but {found}"),
            Self::DoesNotExist => format!("[{key}] must not be there, but {found}"),
        }
    }
}

#[cfg(test)]
mod tests;
