//! An error at a field.

use std::fmt;

use serde_json::Value;

/// What is wrong at a field, as Kubernetes words it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// The field, as `spec.env[0].name`.
    pub field: String,
    /// What is wrong there.
    pub problem: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl std::error::Error for FieldError {}

/// Characters of a value that are told.
const MOST_VALUE: usize = 300;

impl FieldError {
    /// Several errors as one text.
    ///
    /// ```
    /// use pod_presets::FieldError;
    ///
    /// let error = |field: &str| FieldError { field: field.to_owned(), problem: "Required value".to_owned() };
    /// assert_eq!(FieldError::all(&[error("a")]), "a: Required value");
    /// assert_eq!(FieldError::all(&[error("a"), error("b")]), "[a: Required value, b: Required value]");
    /// ```
    pub fn all(errors: &[Self]) -> String {
        let texts: Vec<String> = errors.iter().map(Self::to_string).collect();
        match &texts[..] {
            [one] => one.clone(),
            _ => format!("[{}]", texts.join(", ")),
        }
    }

    pub(crate) fn of(field: &str, problem: &str) -> Self {
        Self {
            field: field.to_owned(),
            problem: problem.to_owned(),
        }
    }

    pub(crate) fn required(field: &str, detail: &str) -> Self {
        Self::detailed(field, "Required value", detail)
    }

    pub(crate) fn invalid(field: &str, value: &Value, detail: &str) -> Self {
        Self::detailed(field, &format!("Invalid value: {}", cut(value)), detail)
    }

    pub(crate) fn duplicate(field: &str, value: &str) -> Self {
        let value = cut(&Value::from(value));
        Self::of(field, &format!("Duplicate value: {value}"))
    }

    pub(crate) fn not_found(field: &str, value: &str) -> Self {
        let value = cut(&Value::from(value));
        Self::of(field, &format!("Not found: {value}"))
    }

    pub(crate) fn forbidden(field: &str, detail: &str) -> Self {
        Self::detailed(field, "Forbidden", detail)
    }

    pub(crate) fn unsupported(field: &str, value: &Value, known: &[&str]) -> Self {
        let known: Vec<String> = known.iter().map(|it| format!("{it:?}")).collect();
        let detail = format!("supported values: {}", known.join(", "));
        Self::detailed(
            field,
            &format!("Unsupported value: {}", cut(value)),
            &detail,
        )
    }

    fn detailed(field: &str, problem: &str, detail: &str) -> Self {
        match detail {
            "" => Self::of(field, problem),
            detail => Self::of(field, &format!("{problem}: {detail}")),
        }
    }
}

fn cut(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MOST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
