//! Label selectors, checked once and matched often.

use std::collections::BTreeMap;

use super::label_syntax::{label_key_errors, value_errors};
use super::{FieldOperator, LabelRequirement, Selector};
use template_language::go_format;

/// The label part of a [`Selector`], ready to be matched. Field requirements are evaluated elsewhere.
///
/// ```
/// use api_types::selector::{CompiledSelector, Selector};
///
/// let selector: Selector = serde_json::from_str(
///     r#"{"matchLabels": {"type": "web"}, "matchExpressions": [{"key": "legacy", "operator": "DoesNotExist"}]}"#,
/// )?;
/// let compiled = CompiledSelector::new(&selector)?;
/// let labels = |pairs: &[(&str, &str)]| pairs.iter().map(|&(k, v)| (k.into(), v.into())).collect();
/// assert!(compiled.matches(&labels(&[("type", "web"), ("team", "a")])));
/// assert!(!compiled.matches(&labels(&[("type", "web"), ("legacy", "yes")])));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledSelector {
    requirements: Vec<Requirement>,
}

/// One requirement on a label. What stands in `matchLabels` is `In` with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Key of the label.
    pub key: String,
    /// How the value is compared.
    pub operator: FieldOperator,
    /// Values, for `In` and `NotIn`.
    pub values: Vec<String>,
}

/// A label selector Kubernetes does not accept. The text is Kubernetes' own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The operator is none of `In`, `NotIn`, `Exists`, `DoesNotExist`.
    #[error("{} is not a valid pod selector operator", go_format::quoted(.operator))]
    Operator {
        /// The operator as given.
        operator: String,
    },
    /// A key or its values are not allowed.
    #[error("{text}")]
    Requirement {
        /// One message, or several as `[<a>, <b>]`.
        text: String,
    },
}

impl CompiledSelector {
    /// Checks the labels and expressions of a selector.
    ///
    /// # Errors
    ///
    /// The first requirement that Kubernetes does not accept, labels (by key) before expressions; the user must fix it.
    pub fn new(selector: &Selector) -> Result<Self, SelectorError> {
        Self::from_parts(&selector.match_labels, &selector.match_expressions)
    }

    /// As [`CompiledSelector::new`], for labels and expressions that are not in a [`Selector`].
    ///
    /// # Errors
    ///
    /// As [`CompiledSelector::new`].
    pub fn from_parts(
        labels: &BTreeMap<String, String>,
        expressions: &[LabelRequirement],
    ) -> Result<Self, SelectorError> {
        let mut requirements = Vec::with_capacity(labels.len() + expressions.len());
        for (key, value) in labels {
            requirements.push(Requirement::checked(
                key,
                FieldOperator::In,
                std::slice::from_ref(value),
            )?);
        }
        for expression in expressions {
            let operator = expression
                .operator
                .parse()
                .map_err(|_| SelectorError::Operator {
                    operator: expression.operator.clone(),
                })?;
            requirements.push(Requirement::checked(
                &expression.key,
                operator,
                &expression.values,
            )?);
        }
        Ok(Self { requirements })
    }

    /// Whether labels meet all requirements; without requirements all labels do.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.unmet(labels).is_none()
    }

    /// The first requirement that labels do not meet.
    pub fn unmet(&self, labels: &BTreeMap<String, String>) -> Option<&Requirement> {
        let mut requirements = self.requirements.iter();
        requirements.find(|requirement| !requirement.matches(labels))
    }
}

impl Requirement {
    /// What is asked for, and what is there instead, in words.
    ///
    /// ```
    /// use api_types::FieldOperator;
    /// use api_types::selector::Requirement;
    ///
    /// let requirement = Requirement {
    ///     key: "team".to_owned(),
    ///     operator: FieldOperator::In,
    ///     values: vec!["a".to_owned(), "b".to_owned()],
    /// };
    /// assert_eq!(requirement.unmet_by(Some("c")), "[team] must be one of [a, b], but is [c]");
    /// ```
    pub fn unmet_by(&self, found: Option<&str>) -> String {
        let found = found.map(|found| format!("[{found}]"));
        self.operator.unmet_by(&self.key, &self.values, found)
    }

    fn checked(
        key: &str,
        operator: FieldOperator,
        values: &[String],
    ) -> Result<Self, SelectorError> {
        let mut errors = Vec::new();
        let mut refuse = |path: String, value: String, details: &[String]| {
            if !details.is_empty() {
                errors.push(format!(
                    "{path}: Invalid value: {value}: {}",
                    details.join("; ")
                ));
            }
        };
        refuse(
            "key".to_owned(),
            go_format::quoted(key),
            &label_key_errors(key),
        );
        if let Some(detail) = count_error(operator, values) {
            refuse(
                "values".to_owned(),
                go_format::string_slice(values),
                &[detail.to_owned()],
            );
        }
        for (index, value) in values.iter().enumerate() {
            refuse(
                format!("values[{index}][{key}]"),
                go_format::quoted(value),
                &value_errors(value),
            );
        }
        match errors.as_slice() {
            [] => Ok(Self {
                key: key.to_owned(),
                operator,
                values: values.to_vec(),
            }),
            [only] => Err(SelectorError::Requirement { text: only.clone() }),
            several => Err(SelectorError::Requirement {
                text: format!("[{}]", several.join(", ")),
            }),
        }
    }

    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        let listed = || value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            FieldOperator::In => listed(),
            // A label that is not there is not in any set: unlike field requirements
            // (docs/behaviour/selection.md#fields).
            FieldOperator::NotIn => !listed(),
            FieldOperator::Exists => value.is_some(),
            FieldOperator::DoesNotExist => value.is_none(),
        }
    }
}

fn count_error(operator: FieldOperator, values: &[String]) -> Option<&'static str> {
    match (operator, values.is_empty()) {
        (FieldOperator::In | FieldOperator::NotIn, true) => {
            Some("for 'in', 'notin' operators, values set can't be empty")
        }
        (FieldOperator::Exists | FieldOperator::DoesNotExist, false) => {
            Some("values set must be empty for exists and does not exist")
        }
        _ => None,
    }
}
