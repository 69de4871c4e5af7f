//! Why nothing more can be submitted for an owner now.

use std::time::Duration;

use http::StatusCode;
use realizer::{SubmitFailure, SubmitFailureKind};
use thiserror::Error;
use tokio::time::Instant;

use super::failure::failed;
use crate::cluster::{RequestError, chain};
use crate::mapper::MapError;
use crate::tokens::{RefusalKind, TokenError};

/// Ends the whole reconcile, not just one step.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// The owner's service account gives no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The owner has been changed, or given to another shard, and this process has not seen that yet.
    #[error("the owner has a newer generation than this process has seen")]
    Behind,
    /// The API server did not carry out what was asked.
    #[error("{}", .0.failure.message)]
    Unavailable(Box<Unavailable>),
}

impl From<Unavailable> for SubmitError {
    fn from(unavailable: Unavailable) -> Self {
        Self::Unavailable(unavailable.into())
    }
}

/// What the API server did not carry out, and not because of what was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Unavailable {
    /// For the engine, should it last.
    pub failure: SubmitFailure,
    /// How long the server asked to be left alone.
    pub retry_after: Option<Duration>,
    /// Since when it is so, where others found that out before.
    pub since: Option<Instant>,
    /// What was in the way.
    pub hurdle: Hurdle,
}

/// What was in the way, as far as it makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hurdle {
    /// The API server answered so.
    Answer(StatusCode),
    /// There was no answer.
    Silence,
    /// No token was issued.
    Token,
    /// The objects of a kind cannot be listed.
    Listing,
    /// They are being listed, and nothing has failed: there are many.
    LongListing,
}

impl Unavailable {
    pub(super) fn because(message: String, retry_after: Option<Duration>, hurdle: Hurdle) -> Self {
        Self {
            failure: failed(SubmitFailureKind::Unavailable, message),
            retry_after,
            since: None,
            hurdle,
        }
    }

    /// What a watch is to tell is not listed, and has been asked for since then.
    pub(crate) fn unlisted(message: &str, since: Instant) -> Self {
        Self {
            since: Some(since),
            ..Self::because(message.to_owned(), None, Hurdle::Listing)
        }
    }

    /// A request that failed.
    pub(crate) fn of(error: &RequestError, message: String) -> Self {
        let hurdle = error.code().map_or(Hurdle::Silence, Hurdle::Answer);
        Self::because(message, error.retry_after(), hurdle)
    }

    /// What kept a kind from being looked up, if that was the machine.
    pub(super) fn of_lookup(error: &MapError, message: String) -> Option<Self> {
        match error {
            MapError::Discovery { error: cause, .. } if cause.passes_by_itself() => {
                Some(Self::of(cause, message))
            }
            MapError::Discovery { .. } | MapError::NotServed { .. } => None,
        }
    }
}

impl SubmitError {
    /// What kept a kind from being looked up, if that was the machine.
    pub fn of_lookup(error: &MapError) -> Option<Self> {
        Unavailable::of_lookup(error, error.to_string()).map(Self::from)
    }

    /// What the API server did not carry out, a token or a request; any other error is given back.
    ///
    /// # Errors
    /// The error, if it is another one.
    pub fn unavailable(self) -> Result<Box<Unavailable>, Self> {
        match self {
            Self::Unavailable(unavailable) => Ok(unavailable),
            Self::Token(error) if error.kind() == RefusalKind::Infrastructure => {
                let why = Unavailable::because(chain(&error), error.retry_after(), Hurdle::Token);
                Ok(why.into())
            }
            other => Err(other),
        }
    }
}
