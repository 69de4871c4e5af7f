//! What can go wrong with a submission, with upstream's texts (docs/behaviour/realizing.md#errors,
//! docs/behaviour/status.md#submitted).

use std::io;
use std::time::Duration;

use http::StatusCode;
use jiff::Timestamp;
use realizer::{Submission, SubmitFailure, SubmitFailureKind};
use serde_json::Value;
use submission::address;
use thiserror::Error;
use tokio::time::Instant;

use crate::cluster::{RequestError, chain};
use crate::mapper::{Kind, MapError, Served};
use crate::stamped::LISTING_PATIENCE;
use crate::tokens::{RefusalKind, TokenError};

/// Ends the whole reconcile, not just one step.
#[derive(Debug, Error)]
pub enum SubmitError {
    /// The owner's service account gives no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The owner has been changed, and this process has not seen that yet.
    #[error("the owner has a newer generation than this process has seen")]
    Behind,
    /// The API server did not carry out what was asked.
    #[error("{}", .0.failure.message)]
    Unavailable(Box<Unavailable>),
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
    fn because(message: String, retry_after: Option<Duration>, hurdle: Hurdle) -> Self {
        Self {
            failure: SubmitFailure {
                kind: SubmitFailureKind::Unavailable,
                message,
            },
            retry_after,
            since: None,
            hurdle,
        }
    }

    /// A request that failed.
    pub(super) fn of(error: &RequestError, message: String) -> Self {
        let hurdle = error.code().map_or(Hurdle::Silence, Hurdle::Answer);
        Self::because(message, error.retry_after(), hurdle)
    }
}

impl SubmitError {
    /// What kept a kind from being looked up, if that was the machine.
    pub fn of_lookup(error: &MapError) -> Option<Self> {
        match error {
            MapError::Discovery { error: cause, .. } if cause.passes_by_itself() => {
                let unavailable = Unavailable::of(cause, error.to_string());
                Some(Self::Unavailable(unavailable.into()))
            }
            MapError::Discovery { .. } | MapError::NotServed { .. } => None,
        }
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

/// Inside this module: ends the step or the reconcile.
pub(super) enum Failure {
    Step(SubmitFailure),
    /// As `Step`: the API server refused the object for what it is, and would again.
    Refused(SubmitFailure, For),
    /// As `Step`; after this time it may be tried again.
    Braked(SubmitFailure, Duration),
    /// As `Step`; the path itself may be gone, with the definition of the kind.
    Unserved(SubmitFailure),
    Token(TokenError),
    /// As [`SubmitError::Behind`].
    Behind,
    /// As [`SubmitError::Unavailable`].
    Unavailable(Box<Unavailable>),
}

/// What the API server refused an object for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// What is in it; that may be right as soon as something else is gone: a port or a host that another object has.
    Content,
    /// How large it is.
    Size,
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

impl OwnerRequestError {
    /// As [`RequestError::passes_by_itself`].
    pub(super) fn passes_by_itself(&self) -> bool {
        match self {
            Self::Token(error) => error.kind() == RefusalKind::Infrastructure,
            Self::Request(error) => error.passes_by_itself(),
        }
    }
}

/// What came of a request that is only tried: `None` when it was refused. What the machine prevented is no refusal.
pub(super) fn tried<T>(
    outcome: Result<T, OwnerRequestError>,
) -> Result<Option<T>, OwnerRequestError> {
    match outcome {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.passes_by_itself() => Err(error),
        Err(_) => Ok(None),
    }
}

/// The step fails with `<operation>: <what the server said>`.
pub(super) fn during(operation: &str, error: OwnerRequestError) -> Failure {
    match error {
        OwnerRequestError::Token(error) => Failure::Token(error),
        OwnerRequestError::Request(error)
            if error.passes_by_itself() && refused_for(&error).is_none() =>
        {
            let message = format!("{operation}: {error}");
            Failure::Unavailable(Unavailable::of(&error, message).into())
        }
        OwnerRequestError::Request(error) => {
            let failure = SubmitFailure {
                kind: kind_of(&error),
                message: format!("{operation}: {error}"),
            };
            match refused_for(&error) {
                Some(why) => Failure::Refused(failure, why),
                None => step(&error, failure),
            }
        }
    }
}

/// Whether the API server refused an object because of what is in it, or how large it is.
fn refused_for(error: &RequestError) -> Option<For> {
    match error.code()? {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Some(For::Content),
        StatusCode::PAYLOAD_TOO_LARGE => Some(For::Size),
        _ => is_too_large_for_etcd(error).then_some(For::Size),
    }
}

/// etcd takes less than the API server does, and then this is an internal error whose text alone tells what it is.
fn is_too_large_for_etcd(error: &RequestError) -> bool {
    error.is(StatusCode::INTERNAL_SERVER_ERROR)
        && error
            .to_string()
            .contains("etcdserver: request is too large")
}

/// More than `longest` bytes are not sent.
pub(super) fn check_size(object: &Value, longest: usize) -> Result<(), Failure> {
    let size = size_of(object);
    if size <= longest {
        return Ok(());
    }
    Err(Failure::Step(SubmitFailure {
        kind: SubmitFailureKind::TooLarge,
        message: format!(
            "the rendering has {} KiB, and {} KiB are allowed; make it smaller, or split it",
            size.div_ceil(1024),
            longest / 1024
        ),
    }))
}

/// How many bytes it is as it is sent; it is not held in memory for that.
fn size_of(object: &Value) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A JSON value can be written as JSON, and counting does not fail.
    let _ = serde_json::to_writer(&mut count, object);
    count.0
}

/// Listing the siblings of an immutable object failed.
pub(super) fn listing(error: OwnerRequestError) -> Failure {
    match error {
        OwnerRequestError::Token(error) => Failure::Token(error),
        OwnerRequestError::Request(error) if error.passes_by_itself() => {
            let message = format!("unable to list from api server: {error}");
            Failure::Unavailable(Unavailable::of(&error, message).into())
        }
        OwnerRequestError::Request(error) => step(
            &error,
            SubmitFailure {
                kind: match kind_of(&error) {
                    SubmitFailureKind::Rejected => SubmitFailureKind::List,
                    other => other,
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

/// What the answer of the API server means for the step.
///
/// RBAC, quota and admission all answer 403, and only their texts differ, which a webhook may write as it likes. So they are one
/// kind: something outside must change.
pub(super) fn kind_of(error: &RequestError) -> SubmitFailureKind {
    if matches!(error, RequestError::TooLong { .. }) {
        SubmitFailureKind::AnswerTooLarge
    } else if error.is(StatusCode::FORBIDDEN) {
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
    let message = if submission.lifecycle.is_immutable() {
        format!("unable to list from api server: {error}")
    } else {
        let address = address(submission);
        format!("failed to get unstructured [{address}] from api server: {error}")
    };
    match error {
        MapError::Discovery { error: cause, .. } if cause.passes_by_itself() => {
            Failure::Unavailable(Unavailable::of(cause, message).into())
        }
        _ => rejected(message),
    }
}

/// The kind's watch does not come about; why, and since when.
pub(super) fn not_listed(kind: &Kind, why: &str, since: Instant) -> Failure {
    let message = format!("the objects of {kind} cannot be listed: {why}");
    let mut unavailable = Unavailable::because(message, None, Hurdle::Listing);
    unavailable.since = Some(since);
    Failure::Unavailable(unavailable.into())
}

/// The kind was listed, and is not any more; why, and since when.
pub(super) fn not_listed_any_more(
    served: &Served,
    why: &str,
    since: Instant,
    at: Timestamp,
) -> Failure {
    let (kind, resource) = (&served.kind, served.qualified());
    let at = at.strftime("%Y-%m-%dT%H:%M:%SZ");
    let message = format!(
        "the objects of {kind} cannot be listed since {at}, and what was known of them is not believed any more: {why}; \
         see what `kubectl get {resource} --all-namespaces` answers: mostly the conversion webhook or the APIService of \
         the kind has to be mended"
    );
    let mut unavailable = Unavailable::because(message, None, Hurdle::Listing);
    unavailable.since = Some(since);
    Failure::Unavailable(unavailable.into())
}

/// The kind is still being listed.
pub(super) fn not_listed_yet(kind: &Kind) -> Failure {
    let message = format!(
        "the objects of {kind} were not listed within {} s; trying again",
        LISTING_PATIENCE.as_secs()
    );
    Failure::Unavailable(Unavailable::because(message, None, Hurdle::LongListing).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_is_not_listed_any_more_says_since_when_and_why_and_what_to_do() {
        let served = Served {
            kind: Kind::new("test.run/v1", "Test"),
            plural: "tests".to_owned(),
            namespaced: true,
            status_subresource: true,
        };
        let at = Timestamp::from_millisecond(1_700_000_000_900).unwrap();
        let failure = not_listed_any_more(&served, "webhook failed", Instant::now(), at);
        let Failure::Unavailable(unavailable) = failure else {
            panic!("something else fails");
        };
        let message = &unavailable.failure.message;
        for part in [
            "test.run/v1 Test",
            "since 2023-11-14T22:13:20Z",
            "webhook failed",
            "`kubectl get tests.test.run --all-namespaces`",
        ] {
            assert!(message.contains(part), "{message}");
        }
        assert_eq!(unavailable.hurdle, Hurdle::Listing);
        assert!(unavailable.since.is_some());
    }

    /// It is no outage, which would be told after half a minute as one, and no refusal.
    #[test]
    fn an_answer_that_is_too_long_is_told_as_what_it_is() {
        let long = || {
            OwnerRequestError::Request(RequestError::TooLong {
                request: "GET /apis/test.run/v1/namespaces/n/tests?labelSelector=a".to_owned(),
                longest: 32 << 20,
            })
        };
        for failure in [listing(long()), during("patch", long())] {
            let Failure::Step(failure) = failure else {
                panic!("something else than the step fails");
            };
            assert_eq!(failure.kind, SubmitFailureKind::AnswerTooLarge);
            assert!(
                failure.message.contains("longer than 32 MiB"),
                "{}",
                failure.message
            );
            assert!(
                failure.message.contains("/namespaces/n/tests"),
                "{}",
                failure.message
            );
        }
    }
}
