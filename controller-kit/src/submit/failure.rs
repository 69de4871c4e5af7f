//! What can go wrong with a submission, with upstream's texts (spec 3.7, 3.8, 4.4).

use std::time::Duration;

use http::StatusCode;
use realizer::{Submission, SubmitFailure, SubmitFailureKind};
use thiserror::Error;

use crate::cluster::RequestError;
use crate::mapper::{Kind, MapError};
use crate::tokens::TokenError;

/// Ends the whole reconcile, not just one step.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// The owner's service account gives no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The owner has been changed, and this process has not seen that yet.
    #[error("the owner has a newer generation than this process has seen")]
    Behind,
}

/// Inside this module: ends the step or the reconcile.
pub(super) enum Failure {
    Step(SubmitFailure),
    /// As `Step`; the path itself may be gone, with the definition of the kind.
    Unserved(SubmitFailure),
    Token(TokenError),
    /// As [`SubmitError::Behind`].
    Behind,
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        Self::Token(error)
    }
}

/// A request that an owner's token was needed for.
pub(super) enum OwnerRequestError {
    Token(TokenError),
    Request(RequestError),
}

impl From<TokenError> for OwnerRequestError {
    fn from(error: TokenError) -> Self {
        Self::Token(error)
    }
}

impl From<RequestError> for OwnerRequestError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

/// The step fails with `<operation>: <what the server said>`.
pub(super) fn during(operation: &str, error: OwnerRequestError) -> Failure {
    match error {
        OwnerRequestError::Token(error) => Failure::Token(error),
        OwnerRequestError::Request(error) => step(
            &error,
            SubmitFailure {
                kind: kind_of(&error),
                message: format!("{operation}: {error}"),
            },
        ),
    }
}

/// Listing the siblings of an immutable object failed.
pub(super) fn listing(error: OwnerRequestError) -> Failure {
    match error {
        OwnerRequestError::Token(error) => Failure::Token(error),
        OwnerRequestError::Request(error) => step(
            &error,
            SubmitFailure {
                kind: if kind_of(&error) == SubmitFailureKind::Forbidden {
                    SubmitFailureKind::Forbidden
                } else {
                    SubmitFailureKind::List
                },
                message: format!("unable to list from api server: {error}"),
            },
        ),
    }
}

fn step(error: &RequestError, failure: SubmitFailure) -> Failure {
    if error.is(StatusCode::NOT_FOUND) {
        Failure::Unserved(failure)
    } else {
        Failure::Step(failure)
    }
}

/// RBAC, quota and admission all answer 403; which it was does not matter, something outside must change.
pub(super) fn kind_of(error: &RequestError) -> SubmitFailureKind {
    if error.is(StatusCode::FORBIDDEN) {
        SubmitFailureKind::Forbidden
    } else {
        SubmitFailureKind::Rejected
    }
}

pub(super) fn rejected(message: impl Into<String>) -> Failure {
    Failure::Step(SubmitFailure {
        kind: SubmitFailureKind::Rejected,
        message: message.into(),
    })
}

pub(super) fn contested(message: String) -> Failure {
    Failure::Step(SubmitFailure {
        kind: SubmitFailureKind::Contested,
        message,
    })
}

/// What a write was bound to is not there any more.
pub(super) fn stale(error: &RequestError) -> Failure {
    Failure::Step(SubmitFailure {
        kind: SubmitFailureKind::Stale,
        message: format!("patch: {error}"),
    })
}

pub(super) fn unmapped(submission: &Submission, error: &MapError) -> Failure {
    if submission.lifecycle.is_immutable() {
        return rejected(format!("unable to list from api server: {error}"));
    }
    rejected(format!(
        "failed to get unstructured [{}] from api server: {error}",
        address(submission)
    ))
}

pub(super) fn not_listed(kind: &Kind, patience: Duration) -> Failure {
    rejected(format!(
        "the objects of {kind} could not be listed within {} s; trying again",
        patience.as_secs()
    ))
}

/// `<namespace>/<name>` of the rendered object.
pub(super) fn address(submission: &Submission) -> String {
    let metadata = &submission.object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    format!("{}/{}", text("namespace"), text("name"))
}
