//! Why a path has no value.
//!
//! The texts are those of the Go Cartographer and of `k8s.io/client-go/util/jsonpath`. They stand in
//! conditions, users compare them, and tools search for them: none is to be bettered. What can be said
//! better is said beside them, at admission ([`crate::tags`]) or in an event.

use thiserror::Error;

/// Why a path has no value. The texts are upstream's; users compare them.
///
/// | variant | who acts |
/// |---|---|
/// | `DoesNotExist`, `EmptyList` | nobody yet: the value may come |
/// | `Empty`, `Parse`, `MoreQueries`, `TooMany` | the author of the path |
/// | `Find` | the author of the path, or of the object that has another shape |
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
    ///
    /// An empty list says so in [`PathError::EmptyList`], which callers treat as they see fit: upstream
    /// makes no difference between it and an index out of range.
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
