//! A path field: parsed once, and reported where it is read when it cannot be parsed.

use std::borrow::Cow;

use serde_json::Value;

use template_language::jsonpath::{Path, PathError};
use template_language::numbers;

/// A path as it stands in a field of a template or blueprint.
#[derive(Clone, Debug)]
pub(crate) struct FieldPath {
    text: String,
    path: Result<Path, String>,
}

/// Why a path yields no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathProblem {
    /// Nothing is there.
    #[error("{0}")]
    Absent(String),
    /// A list that has no items has none at the place that is asked for.
    #[error("{0}")]
    EmptyList(String),
    /// The path cannot be parsed, does not fit the data, or yields several values.
    #[error("{0}")]
    Broken(String),
}

impl FieldPath {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            path: Path::compile_field(text).map_err(|error| error.to_string()),
        }
    }

    /// The path as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Why it can never be read, if it cannot.
    pub(crate) fn unparsable(&self) -> Option<&str> {
        self.path.as_ref().err().map(String::as_str)
    }

    /// The leading field names; an empty list means the whole object. `None` when nothing is ever read.
    pub(crate) fn prefix(&self) -> Option<Vec<String>> {
        self.path.as_ref().ok().map(Path::static_prefix)
    }

    /// The one value at the path, integral doubles as integers.
    pub(crate) fn read<'v>(&self, object: &'v Value) -> Result<Cow<'v, Value>, PathProblem> {
        let path = self
            .path
            .as_ref()
            .map_err(|cause| PathProblem::Broken(cause.clone()))?;
        path.evaluate(object)
            .map(numbers::plain)
            .map_err(|error: PathError| {
                let text = error.to_string();
                match error {
                    PathError::DoesNotExist(_) => PathProblem::Absent(text),
                    PathError::EmptyList(_) => PathProblem::EmptyList(text),
                    PathError::Empty
                    | PathError::Parse { .. }
                    | PathError::Find(_)
                    | PathError::MoreQueries(_)
                    | PathError::TooMany(_) => PathProblem::Broken(text),
                }
            })
    }
}
