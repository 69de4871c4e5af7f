//! Why there is no answer.

use std::error::Error;

use conventions::told::in_a_line;

/// The most bytes that are shown of an error.
const ERROR_BYTES: usize = 500;
/// The most bytes that are shown of a name.
const NAME_BYTES: usize = 100;

/// An error and its causes, without the address: it may have a signature in it.
pub(crate) fn text_of(error: reqwest::Error) -> String {
    chain_of(&error.without_url())
}

/// An error and its causes. Registries choose words in them, as the names in a certificate.
fn chain_of(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    in_a_line(&text, ERROR_BYTES)
}

/// What is shown of a name that others chose.
pub(crate) fn clip(text: &str) -> String {
    in_a_line(text, NAME_BYTES)
}

/// Whether the other side could not show who it is. It will not be able to in a moment either.
pub(crate) fn has_bad_certificate(error: &(dyn Error + 'static)) -> bool {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return matches!(error, rustls::Error::InvalidCertificate(_));
        }
        let inner = error
            .downcast_ref::<std::io::Error>()
            .and_then(|error| error.get_ref());
        if let Some(inner) = inner
            && has_bad_certificate(inner)
        {
            return true;
        }
        current = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no\nanswer")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn what_registries_say_in_errors_stays_one_line_that_ends() {
        let error = Outer(std::io::Error::other("\u{1b}[31mred\u{202e}"));
        assert_eq!(chain_of(&error), r"no\nanswer: \u{1b}[31mred\u{202e}");
        let error = Outer(std::io::Error::other("x".repeat(100_000)));
        assert!(chain_of(&error).len() <= ERROR_BYTES + 3);
    }
}
