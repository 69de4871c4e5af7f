//! Why a convention could not be applied.

use std::error::Error;
use std::fmt;

/// Why a convention could not be applied. Its text reaches the condition of the PodIntent, where
/// its author reads it; so it says what to do, and holds no secret.
///
/// Any other error becomes one by `?`. Its causes are told behind it.
///
/// ```
/// use convention_webhook_sdk::ConventionError;
///
/// fn port(text: &str) -> Result<u16, ConventionError> {
///     if text.is_empty() {
///         return Err(ConventionError::new("set the label example.com/port"));
///     }
///     text.parse().map_err(|error| ConventionError::from(error).context("label example.com/port"))
/// }
///
/// assert_eq!(port("").unwrap_err().to_string(), "set the label example.com/port");
/// assert_eq!(port("x").unwrap_err().to_string(), "label example.com/port: invalid digit found in string");
/// ```
pub struct ConventionError(String);

impl ConventionError {
    /// The longest text that is told. Conditions hold little more, and other conventions' errors
    /// stand there as well.
    pub const MOST_BYTES: usize = 2048;

    /// An error with this text. What is too long is cut off.
    pub fn new(text: impl Into<String>) -> Self {
        Self(shortened(text.into()))
    }

    /// The same error, with what was tried before its text.
    #[must_use]
    pub fn context(self, tried: impl fmt::Display) -> Self {
        Self::new(format!("{tried}: {}", self.0))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }
}

fn shortened(mut text: String) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() > ConventionError::MOST_BYTES {
        let mut end = ConventionError::MOST_BYTES - ELLIPSIS.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(ELLIPSIS);
    }
    text
}

impl fmt::Display for ConventionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ConventionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConventionError({:?})", self.0)
    }
}

/// This type is no [`Error`] itself, or it could not be made of all of them.
impl<E: Error> From<E> for ConventionError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(next) = cause {
            let told = next.to_string();
            if !text.ends_with(&told) {
                text = format!("{text}: {told}");
            }
            cause = next.source();
        }
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("read the catalogue")]
    struct Outer(#[source] std::num::ParseIntError);

    #[test]
    fn the_causes_are_told_behind_the_error() {
        let cause = "x".parse::<u8>().unwrap_err();
        let error = ConventionError::from(Outer(cause));
        assert_eq!(
            error.text(),
            "read the catalogue: invalid digit found in string"
        );
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let error = ConventionError::new("ä".repeat(5000));
        assert!(error.text().len() <= ConventionError::MOST_BYTES);
        assert!(error.text().ends_with("ä…"));
    }
}
