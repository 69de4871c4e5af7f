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
        let (key, operator, values, found) = match self {
            Self::Label { requirement, found } => {
                write!(f, "label ")?;
                let found = found.map(|found| format!("[{found}]"));
                let Requirement {
                    key,
                    operator,
                    values,
                } = requirement;
                (key, *operator, values, found)
            }
            Self::Field {
                requirement,
                operator,
                found,
            } => {
                write!(f, "field ")?;
                let found = found.as_deref().map(|found| shown(found, *operator));
                (&requirement.key, *operator, &requirement.values, found)
            }
        };
        let found = match found {
            Some(found) => format!("is {found}"),
            None => "is not there".to_owned(),
        };
        let values = values.join(", ");
        match operator {
            FieldOperator::In => write!(f, "[{key}] must be one of [{values}], but {found}"),
            FieldOperator::NotIn => write!(f, "[{key}] must be none of [{values}], but {found}"),
            FieldOperator::Exists => write!(f, "[{key}] must be there, but {found}"),
            FieldOperator::DoesNotExist => write!(f, "[{key}] must not be there, but {found}"),
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
