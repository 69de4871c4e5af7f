//! Why a webhook did not answer.

use std::time::Duration;

use crate::text::told;

/// Why there is no answer. Its text is what stands in a condition behind
/// `failed to apply convention with name X: `.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// It was not reached, or the connection ended before the answer did.
    #[error("calling {url}: {cause}")]
    Connection {
        /// Who was called.
        url: String,
        /// What happened.
        cause: String,
    },
    /// It is not trusted, or it does not speak TLS.
    #[error("calling {url}: {cause}")]
    Untrusted {
        /// Who was called.
        url: String,
        /// Why, and what to do.
        cause: String,
    },
    /// It took too long.
    #[error("calling {url}: {cause}")]
    TimedOut {
        /// Who was called.
        url: String,
        /// How long it was waited for what.
        cause: String,
    },
    /// It answered with a status that is no answer.
    #[error("calling {url}: it answered with status {code}{}", behind_colon(.said))]
    Status {
        /// Who was called.
        url: String,
        /// The status.
        code: u16,
        /// What it said about it, if anything.
        said: String,
        /// When it wants to be called again.
        retry_after: Option<Duration>,
    },
    /// It named another place that is not called.
    #[error("calling {url}: it answered with status {code}, {problem}")]
    Redirect {
        /// Who was called.
        url: String,
        /// The status.
        code: u16,
        /// Why it is not followed.
        problem: String,
    },
    /// It answered what is no answer of a convention.
    #[error("calling {url}: {cause}")]
    Answer {
        /// Who was called.
        url: String,
        /// What is wrong with the answer.
        cause: String,
    },
    /// The request could not be read where it lies. The webhook has nothing to do with it.
    #[error("calling {url}: {cause}")]
    Request {
        /// Who was to be called.
        url: String,
        /// What happened.
        cause: String,
    },
}

/// For whom a failed call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallErrorKind {
    /// Whoever wrote the convention or runs its webhook must correct it. Another call fails as well.
    Webhook,
    /// Trouble on the way, or more than the webhook can do at the moment. It may be over at any time.
    Connection,
    /// What was to be sent is not where it was put: it must be put there again.
    Request,
}

impl CallError {
    /// For whom it is.
    pub fn kind(&self) -> CallErrorKind {
        match self {
            Self::Connection { .. }
            | Self::TimedOut { .. }
            | Self::Status {
                code: 408 | 429 | 502 | 503 | 504,
                ..
            } => CallErrorKind::Connection,
            Self::Untrusted { .. }
            | Self::Status { .. }
            | Self::Redirect { .. }
            | Self::Answer { .. } => CallErrorKind::Webhook,
            Self::Request { .. } => CallErrorKind::Request,
        }
    }

    /// When the webhook wants to be called again, if it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            Self::Connection { .. }
            | Self::Untrusted { .. }
            | Self::TimedOut { .. }
            | Self::Redirect { .. }
            | Self::Answer { .. }
            | Self::Request { .. } => None,
        }
    }

    pub(crate) fn connection(url: &str, cause: &str) -> Self {
        let (url, cause) = (url.to_owned(), told(cause));
        Self::Connection { url, cause }
    }

    pub(crate) fn untrusted(url: &str, cause: &str) -> Self {
        let (url, cause) = (url.to_owned(), told(cause));
        Self::Untrusted { url, cause }
    }

    pub(crate) fn answer(url: &str, cause: &str) -> Self {
        let (url, cause) = (url.to_owned(), told(cause));
        Self::Answer { url, cause }
    }

    pub(crate) fn request(url: &str, cause: &str) -> Self {
        let (url, cause) = (url.to_owned(), told(cause));
        Self::Request { url, cause }
    }
}

fn behind_colon(said: &str) -> String {
    if said.is_empty() {
        return String::new();
    }
    format!(": {said}")
}
