//! Why a path has no value.

use thiserror::Error;

/// Why a path has no value. The texts are upstream's (spec 3.3); users compare them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathError {
    /// The expression is empty.
    #[error("empty jsonpath not allowed")]
    Empty,
    /// The expression cannot be parsed.
    #[error("evaluate: failed to parse jsonpath '{wrapped}': {cause}")]
    Parse {
        /// The expression as it was parsed, with the braces that were added.
        wrapped: String,
        /// What is wrong with it.
        cause: String,
    },
    /// The evaluation met something that it cannot go through, such as an index out of range.
    #[error("evaluate: failed to find results: {0}")]
    Find(String),
    /// As [`PathError::Find`], because a list is empty, or null, whose items are asked for. It may get some.
    #[error("evaluate: failed to find results: {0}")]
    EmptyList(String),
    /// The expression holds more than one query, or text outside of it.
    #[error("evaluate: more queries than expected: {0}")]
    MoreQueries(String),
    /// There is nothing at the path.
    #[error("jsonpath returned empty list: {0}")]
    DoesNotExist(String),
    /// There are several values at the path.
    #[error("too many results for the query: {0}")]
    TooMany(String),
}

impl PathError {
    /// Whether the path is simply not there (yet).
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::DoesNotExist(_))
    }
}

/// Why an expression is no path field of a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PathFieldError {
    /// A form that older documents show.
    #[error("`{found}` is not JSONPath; write {instead}")]
    OldForm {
        /// What was found.
        found: String,
        /// What to write.
        instead: String,
    },
    /// It cannot be parsed.
    #[error(transparent)]
    Path(#[from] PathError),
}
