//! What an owner does not have that a selector asks for.

use std::borrow::Cow;
use std::fmt;

use api_types::selector::Requirement;
use api_types::{FieldOperator, FieldRequirement};
use serde_json::Value;

/// A requirement that an owner does not meet, and what it has instead. Display is the one place where it becomes text.
///
/// ```
/// use api_types::FieldOperator;
/// use api_types::selector::Requirement;
/// use realizer::explanation::Unmet;
///
/// let requirement = Requirement {
///     key: "team".to_owned(),
///     operator: FieldOperator::In,
///     values: vec!["a".to_owned(), "b".to_owned()],
/// };
/// let unmet = Unmet::Label { requirement: &requirement, found: Some("c") };
/// assert_eq!(unmet.to_string(), "label [team] must be one of [a, b], but is [c]");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet<'m> {
    /// A requirement on a label.
    Label {
        /// What is asked for.
        requirement: &'m Requirement,
        /// The value of the label, if it is there.
        found: Option<&'m str>,
    },
    /// A requirement on a field.
    Field {
        /// What is asked for.
        requirement: &'m FieldRequirement,
        /// Its operator.
        operator: FieldOperator,
        /// The value of the field, if it is there.
        found: Option<Cow<'m, Value>>,
    },
}

impl fmt::Display for Unmet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Label { requirement, found } => {
                write!(f, "label {}", requirement.unmet_by(*found))
            }
            Self::Field {
                requirement,
                operator,
                found,
            } => {
                let found = found.as_deref().map(|found| shown(found, *operator));
                let (key, values) = (&requirement.key, &requirement.values);
                write!(f, "field {}", operator.unmet_by(key, values, found))
            }
        }
    }
}

/// Only a text can be one of those that are listed, so a number that looks like one is said to be none.
fn shown(found: &Value, operator: FieldOperator) -> String {
    match (found.as_str(), operator) {
        (Some(text), _) => format!("[{text}]"),
        (None, FieldOperator::In) => format!("[{found}], which is no text"),
        (None, _) => format!("[{found}]"),
    }
}
