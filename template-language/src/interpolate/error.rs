//! Why a template cannot be rendered, and where.
//!
//! The texts are those of the Go Cartographer: they stand in conditions, and people search for them.
//! A place is written as `spec.list[0].name`, from the root of the template.
//!
//! ```
//! use serde_json::json;
//! use template_language::interpolate::Compiled;
//!
//! let template = Compiled::compile(&json!({"spec": {"list": [{"name": "$(params.name)$"}]}}));
//! let error = template.render_root(&serde_json::Map::new()).unwrap_err();
//! assert_eq!(error.at, "spec.list[0].name");
//! assert_eq!(
//!     error.cause.to_string(),
//!     "evaluate tag $(params.name)$: jsonpath returned empty list: params.name"
//! );
//! ```

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
///
/// One text for the whole walk, which grows and shrinks: a place is needed only when something is
/// wrong there.
#[derive(Default)]
pub(super) struct Location(String);

impl Location {
    /// Visits the entry of a map.
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

    /// Visits an item of a list.
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

    /// The place, as it is told.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// What went wrong here.
    pub(super) fn error(&self, cause: TagError) -> InterpolateError {
        InterpolateError {
            at: self.0.clone(),
            cause,
        }
    }
}
