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

use super::error::{Hurdle, SubmitError, Unavailable};
use crate::cluster::RequestError;
use crate::mapper::{Kind, MapError, Served};
use crate::stamped::LISTING_PATIENCE;
use crate::tokens::{RefusalKind, TokenError};

/// Inside this module: ends the step or the reconcile.
pub(super) enum Failure {
    Step(SubmitFailure),
    /// As `Step`: the API server refused the object for what it is, and would again.
    Refused(SubmitFailure, For),
    /// As `Step`; after this time it may be tried again.
    Braked(SubmitFailure, Duration),
    /// As `Step`; the path itself may be gone, with the definition of the kind.
    Unserved(SubmitFailure),
    Reconcile(SubmitError),
}

impl Failure {
    /// What the step says; an error if there is more to it than that.
    pub(super) fn of_step(self) -> Result<SubmitFailure, SubmitError> {
        match self {
            Self::Step(step)
            | Self::Refused(step, _)
            | Self::Braked(step, _)
            | Self::Unserved(step) => Ok(step),
            Self::Reconcile(error) => Err(error),
        }
    }
}

/// What the API server refused an object for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    /// What is in it; that may be right as soon as something else is gone: a port or a host that another object has.
    Content,
    /// How large it is.
    Size,
}

/// A request that an owner's token was needed for.
#[derive(Debug, Error)]
pub(super) enum OwnerRequestError {
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl OwnerRequestError {
    /// As [`RequestError::passes_by_itself`].
    pub(super) fn passes_by_itself(&self) -> bool {
        match self {
            Self::Token(error) => error.kind() == RefusalKind::Infrastructure,
            Self::Request(error) => error.passes_by_itself(),
        }
    }

    /// What the API server refused, and would again. Anything else ends the reconcile, in these words if it passes by itself.
    pub(super) fn refusal(
        self,
        words: impl FnOnce(&RequestError) -> String,
    ) -> Result<RequestError, SubmitError> {
        match self {
            Self::Token(error) => Err(error.into()),
            Self::Request(error) if error.passes_by_itself() => {
                Err(Unavailable::of(&error, words(&error)).into())
            }
            Self::Request(error) => Ok(error),
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
    let words = |error: &RequestError| format!("{operation}: {error}");
    if let OwnerRequestError::Request(error) = &error
        && let Some(why) = refused_for(error)
    {
        return Failure::Refused(failed(kind_of(error), words(error)), why);
    }
    match error.refusal(words) {
        Ok(refusal) => step(&refusal, failed(kind_of(&refusal), words(&refusal))),
        Err(error) => Failure::Reconcile(error),
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
    let message = format!(
        "the rendering has {} KiB, and {} KiB are allowed; make it smaller, or split it",
        size.div_ceil(1024),
        longest / 1024
    );
    Err(Failure::Step(failed(SubmitFailureKind::TooLarge, message)))
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

/// Listing objects failed.
pub(super) fn unlistable(error: &RequestError) -> String {
    format!("unable to list from api server: {error}")
}

/// Listing the siblings of an immutable object failed.
pub(super) fn listing(error: OwnerRequestError) -> Failure {
    match error.refusal(unlistable) {
        Ok(refusal) => {
            let kind = match kind_of(&refusal) {
                SubmitFailureKind::Rejected => SubmitFailureKind::List,
                other => other,
            };
            step(&refusal, failed(kind, unlistable(&refusal)))
        }
        Err(error) => Failure::Reconcile(error),
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
fn kind_of(error: &RequestError) -> SubmitFailureKind {
    if matches!(error, RequestError::TooLong { .. }) {
        SubmitFailureKind::AnswerTooLarge
    } else if error.is(StatusCode::FORBIDDEN) {
        SubmitFailureKind::Forbidden
    } else {
        SubmitFailureKind::Rejected
    }
}

/// What the API server refused, in its own words.
pub(super) fn refused(refusal: &RequestError) -> SubmitFailure {
    failed(kind_of(refusal), refusal.to_string())
}

pub(super) fn failed(kind: SubmitFailureKind, message: impl Into<String>) -> SubmitFailure {
    let message = message.into();
    SubmitFailure { kind, message }
}

pub(super) fn rejected(message: impl Into<String>) -> Failure {
    Failure::Step(failed(SubmitFailureKind::Rejected, message))
}

pub(super) fn contested(message: impl Into<String>) -> Failure {
    Failure::Step(failed(SubmitFailureKind::Contested, message))
}

/// What a write was bound to is not there any more.
pub(super) fn stale(error: &RequestError) -> Failure {
    Failure::Step(failed(SubmitFailureKind::Stale, format!("patch: {error}")))
}

pub(super) fn unmapped(submission: &Submission, error: &MapError) -> Failure {
    let message = if submission.lifecycle.is_immutable() {
        format!("unable to list from api server: {error}")
    } else {
        let address = address(submission);
        format!("failed to get unstructured [{address}] from api server: {error}")
    };
    match Unavailable::of_lookup(error, message.clone()) {
        Some(unavailable) => Failure::Reconcile(unavailable.into()),
        None => rejected(message),
    }
}

/// The kind's watch does not come about; why, and since when.
pub(super) fn not_listed(kind: &Kind, why: &str, since: Instant) -> Failure {
    let message = format!("the objects of {kind} cannot be listed: {why}");
    unlisted(message, Hurdle::Listing, Some(since))
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
    unlisted(message, Hurdle::Listing, Some(since))
}

/// The kind is still being listed.
pub(super) fn not_listed_yet(kind: &Kind) -> Failure {
    let seconds = LISTING_PATIENCE.as_secs();
    let message = format!("the objects of {kind} were not listed within {seconds} s; trying again");
    unlisted(message, Hurdle::LongListing, None)
}

fn unlisted(message: String, hurdle: Hurdle, since: Option<Instant>) -> Failure {
    let mut unavailable = Unavailable::because(message, None, hurdle);
    unavailable.since = since;
    Failure::Reconcile(unavailable.into())
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
        let Failure::Reconcile(SubmitError::Unavailable(unavailable)) = failure else {
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
