//! A path into an object, parsed once; a path that cannot be parsed is reported where it is read.

use std::borrow::Cow;

use serde_json::Value;

/// A path as it stands in a template or blueprint.
#[derive(Clone, Debug)]
pub(crate) struct FieldPath {
    text: String,
}

/// Why a path yields no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathProblem {
    /// Nothing is there.
    #[error("{0}")]
    Absent(String),
    /// The path cannot be parsed, does not fit the data, or yields several values.
    #[error("{0}")]
    Broken(String),
}

impl FieldPath {
    pub(crate) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn unparsable(&self) -> Option<&str> {
        None
    }

    pub(crate) fn prefix(&self) -> Vec<String> {
        self.text
            .trim_start_matches('.')
            .split('.')
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn read<'v>(&self, object: &'v Value) -> Result<Cow<'v, Value>, PathProblem> {
        crate::standin::read(&self.text, object).map_err(|(absent, text)| {
            if absent {
                PathProblem::Absent(text)
            } else {
                PathProblem::Broken(text)
            }
        })
    }
}
