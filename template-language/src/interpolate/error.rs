//! Why a template cannot be rendered, and where.

use std::fmt::Write as _;

use thiserror::Error;

use crate::jsonpath::PathError;

/// Why a template cannot be rendered; the author of the template or of its inputs must act.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "failed to recursively evaluate template: failed to interpolate template at path [{at}]: {cause}"
)]
pub struct InterpolateError {
    /// Where in the template, such as `spec.list[0].name`.
    pub at: String,
    /// What went wrong there.
    pub cause: TagError,
}

impl InterpolateError {
    /// Whether the only thing wrong is that a path has no value (yet).
    pub fn is_absent(&self) -> bool {
        match &self.cause {
            TagError::Single { cause, .. } | TagError::InText(cause) => cause.is_absent(),
            TagError::Nil(_) => false,
        }
    }
}

/// Why a tag has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TagError {
    /// The string is one tag.
    #[error("evaluate tag {tag}: {cause}")]
    Single {
        /// The whole string.
        tag: String,
        /// Why its path has no value.
        cause: PathError,
    },
    /// The tag is part of a text.
    #[error("interpolate tag: evaluate jsonpath: {0}")]
    InText(PathError),
    /// A null cannot be written into a text.
    #[error("interpolate tag: tag must not point to nil value: {0}")]
    Nil(String),
}

/// Where in a template rendering stands.
#[derive(Default)]
pub(super) struct Location(String);

impl Location {
    pub(super) fn inside<T>(&mut self, key: &str, visit: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.0.len();
        if length > 0 {
            self.0.push('.');
        }
        self.0.push_str(key);
        let result = visit(self);
        self.0.truncate(length);
        result
    }

    pub(super) fn inside_index<T>(
        &mut self,
        index: usize,
        visit: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let length = self.0.len();
        // Writing to a String cannot fail.
        let _ = write!(self.0, "[{index}]");
        let result = visit(self);
        self.0.truncate(length);
        result
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn error(&self, cause: TagError) -> InterpolateError {
        InterpolateError {
            at: self.0.clone(),
            cause,
        }
    }
}
