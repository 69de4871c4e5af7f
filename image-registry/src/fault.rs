//! Why there is no answer.

use std::error::Error;

/// An error and its causes, without the address: it may have a signature in it.
pub(crate) fn text_of(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text.chars().take(500).collect()
}

/// What is shown of a text that others chose.
pub(crate) fn clip(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(100).collect()
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
