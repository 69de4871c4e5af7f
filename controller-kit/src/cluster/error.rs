//! Why a request did not succeed: what of it the API server said, and whether it passes by itself.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use kube::core::Status;
use thiserror::Error;

/// The longest rest that is taken because an answer asks for it: it may come from an admission webhook, and what it asks for
/// must not stop an owner for a day.
pub(crate) const MOST_REST: Duration = Duration::from_mins(1);
/// Why the API server refuses to create anything in a namespace that is being deleted.
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Why a request did not succeed.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The API server answered, and refused.
    #[error("{}", status.message)]
    Refused {
        /// HTTP status code.
        code: StatusCode,
        /// What it said.
        status: Box<Status>,
        /// How long it asked to be left alone.
        retry_after: Option<Duration>,
    },
    /// The API server could not be reached, or its answer not be read.
    #[error("request failed: {0}")]
    Transport(String),
    /// The API server answered with more than what is read. The same request has the same answer until something changes.
    #[error("the answer to [{request}] is longer than {} MiB, and no more is read of one", longest >> 20)]
    TooLong {
        /// Method and path.
        request: String,
        /// In bytes.
        longest: usize,
    },
}

impl RequestError {
    /// HTTP status code, if the server answered.
    pub fn code(&self) -> Option<StatusCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::Transport(_) | Self::TooLong { .. } => None,
        }
    }

    /// Whether the server answered with this code.
    pub fn is(&self, expected: StatusCode) -> bool {
        self.code() == Some(expected)
    }

    /// Whether the machine is in the way, and nothing that was asked for has to be mended: the server is asked too much or
    /// cannot, or there was no answer.
    pub fn passes_by_itself(&self) -> bool {
        match self {
            Self::Refused { code, status, .. } => {
                const PASSING: [StatusCode; 4] = [
                    StatusCode::TOO_MANY_REQUESTS,
                    StatusCode::BAD_GATEWAY,
                    StatusCode::SERVICE_UNAVAILABLE,
                    StatusCode::GATEWAY_TIMEOUT,
                ];
                PASSING.contains(code)
                    || tells_of_etcd(*code, status)
                    || tells_of_a_lost_quota_race(*code, status)
            }
            Self::Transport(_) => true,
            Self::TooLong { .. } => false,
        }
    }

    /// Whether what was to be stored is more than the server or its store takes: the same will be refused again.
    pub fn is_too_large(&self) -> bool {
        match self {
            Self::Refused { code, status, .. } => {
                *code == StatusCode::PAYLOAD_TOO_LARGE || tells_of_a_size(*code, status)
            }
            Self::Transport(_) | Self::TooLong { .. } => false,
        }
    }

    /// How long the server asked to be left alone, which is never longer than [`MOST_REST`].
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Transport(_) | Self::TooLong { .. } => None,
        }
    }

    /// Whether nothing is created any more because the namespace is being deleted.
    pub(crate) fn is_of_a_going_namespace(&self) -> bool {
        match self {
            Self::Refused { code, status, .. } => {
                let causes = status.details.iter().flat_map(|details| &details.causes);
                *code == StatusCode::FORBIDDEN
                    && causes
                        .into_iter()
                        .any(|cause| cause.reason == NAMESPACE_TERMINATING)
            }
            Self::Transport(_) | Self::TooLong { .. } => false,
        }
    }

    /// Whether the server knows the kind but no object of that name. A 404 that names no object means that nothing is served
    /// at the path: a version was withdrawn, or the server is just starting.
    pub fn is_missing_object(&self) -> bool {
        match self {
            Self::Refused { code, status, .. } => {
                let details = status.details.as_ref();
                *code == StatusCode::NOT_FOUND
                    && details.is_some_and(|named| !named.name.is_empty())
            }
            Self::Transport(_) | Self::TooLong { .. } => false,
        }
    }
}

/// Whether the server hands on that its store has no leader, or no time.
pub(crate) fn tells_of_etcd(code: StatusCode, status: &Status) -> bool {
    is_of_etcd(code, status) && !tells_of_a_size(code, status)
}

/// Whether the server hands on that its store does not take so much at once.
fn tells_of_a_size(code: StatusCode, status: &Status) -> bool {
    is_of_etcd(code, status)
        && ["request is too large", "larger than max"]
            .iter()
            .any(|text| status.message.contains(text))
}

/// Whether the server hands on what its store said. It gives this no code and no reason of its own, so here, too, the text
/// decides; nobody else's text stands at the beginning.
fn is_of_etcd(code: StatusCode, status: &Status) -> bool {
    code == StatusCode::INTERNAL_SERVER_ERROR
        && ["etcdserver: ", "rpc error: "]
            .iter()
            .any(|prefix| status.message.starts_with(prefix))
}

/// Whether two creates in a namespace were counted at a time, and this one lost. The object itself is in nobody's way.
fn tells_of_a_lost_quota_race(code: StatusCode, status: &Status) -> bool {
    let details = status.details.as_ref();
    code == StatusCode::CONFLICT && details.is_some_and(|named| named.kind == "resourcequotas")
}

/// What an answer that is no success says.
pub(super) fn refusal(
    code: StatusCode,
    retry_after: Option<&http::HeaderValue>,
    bytes: &Bytes,
) -> RequestError {
    let status = serde_json::from_slice::<Status>(bytes).unwrap_or_else(|_| {
        // Proxies and 401 answers are plain text.
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim();
        let message = if text.is_empty() {
            code.to_string()
        } else {
            text.to_owned()
        };
        Status::failure(&message, code.canonical_reason().unwrap_or_default())
    });
    let retry_after = retry_after
        .and_then(|seconds| seconds.to_str().ok()?.trim().parse().ok())
        .or_else(|| asked_rest(&status))
        .filter(|seconds| *seconds > 0);
    RequestError::Refused {
        code,
        status: Box::new(status),
        retry_after: retry_after.map(|seconds| Duration::from_secs(seconds).min(MOST_REST)),
    }
}

/// The seconds that a `Status` asks to be waited.
fn asked_rest(status: &Status) -> Option<u64> {
    let details = status.details.as_ref()?;
    Some(details.retry_after_seconds.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_text_refusal_keeps_its_text() {
        let error = refusal(
            StatusCode::UNAUTHORIZED,
            None,
            &Bytes::from_static(b"Unauthorized\n"),
        );
        assert_eq!(error.to_string(), "Unauthorized");
        assert!(error.is(StatusCode::UNAUTHORIZED));
    }

    fn answered(code: u16, text: &str) -> RequestError {
        let body = serde_json::json!({"kind": "Status", "status": "Failure", "message": text, "code": code});
        let code = StatusCode::from_u16(code).unwrap();
        refusal(code, None, &Bytes::from(body.to_string()))
    }

    #[test]
    fn what_the_machine_prevented_is_told_from_what_a_user_has_to_mend() {
        for (code, text, passes) in [
            (429, "too many requests", true),
            (429, "storage is (re)initializing", true),
            (502, "bad gateway", true),
            (
                503,
                "the server is currently unable to handle the request",
                true,
            ),
            (
                504,
                "request did not complete within the allotted timeout",
                true,
            ),
            (500, "etcdserver: leader changed", true),
            (500, "etcdserver: request timed out", true),
            (
                500,
                "rpc error: code = Unavailable desc = transport is closing",
                true,
            ),
            (500, "etcdserver: request is too large", false),
            (
                500,
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097153 vs. 2097152)",
                false,
            ),
            // Of the object, or of somebody's webhook.
            (500, "failed to create typed patch object", false),
            (
                500,
                "admission webhook \"x\" denied the request: etcdserver: no",
                false,
            ),
            (
                500,
                "Internal error occurred: failed calling webhook",
                false,
            ),
            (400, "etcdserver: no", false),
            (401, "Unauthorized", false),
            (403, "forbidden", false),
            (404, "not found", false),
            (409, "conflict", false),
            (422, "invalid", false),
        ] {
            assert_eq!(
                answered(code, text).passes_by_itself(),
                passes,
                "{code} {text}"
            );
        }
        assert!(RequestError::Transport("reset".into()).passes_by_itself());
    }

    #[test]
    fn that_an_object_is_too_large_is_told_from_all_else() {
        for (code, text, is_too_large) in [
            (413, "Request entity too large: limit is 3145728", true),
            (500, "etcdserver: request is too large", true),
            (
                500,
                "rpc error: code = ResourceExhausted desc = trying to send message larger than max (3 vs. 2)",
                true,
            ),
            (500, "etcdserver: leader changed", false),
            (
                500,
                "admission webhook \"x\" says: request is too large",
                false,
            ),
            (422, "etcdserver: request is too large", false),
        ] {
            let told = answered(code, text).is_too_large();
            assert_eq!(told, is_too_large, "{code} {text}");
        }
        assert!(!RequestError::Transport("larger than max".into()).is_too_large());
    }

    #[test]
    fn a_quota_that_two_creates_were_counted_against_at_a_time_is_nobodys_object() {
        let refused = |kind: &str| {
            let body = format!(
                r#"{{"kind": "Status", "message": "Operation cannot be fulfilled", "reason": "Conflict", "code": 409,
                    "details": {{"name": "x", "kind": "{kind}"}}}}"#
            );
            refusal(StatusCode::CONFLICT, None, &Bytes::from(body))
        };
        assert!(refused("resourcequotas").passes_by_itself());
        assert!(!refused("configmaps").passes_by_itself());
    }

    #[test]
    fn the_rest_that_the_server_asks_for_is_read_from_head_or_body() {
        let asked = |header: Option<&str>, body: &str| {
            let header = header.map(|text| http::HeaderValue::from_str(text).unwrap());
            refusal(
                StatusCode::TOO_MANY_REQUESTS,
                header.as_ref(),
                &Bytes::from(body.to_owned()),
            )
            .retry_after()
        };
        // Priority and fairness answers in plain text.
        let plain = "Too many requests, please try again later.\n";
        assert_eq!(asked(Some("2"), plain), Some(Duration::from_secs(2)));
        assert_eq!(asked(None, plain), None);
        assert_eq!(asked(Some("soon"), plain), None);
        assert_eq!(asked(Some("86400"), plain), Some(MOST_REST));
        let status = r#"{"kind": "Status", "message": "x", "code": 429, "details": {"retryAfterSeconds": 3}}"#;
        assert_eq!(asked(None, status), Some(Duration::from_secs(3)));
    }
}
