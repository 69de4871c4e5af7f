//! AdmissionReview, v1 and v1beta1, in and out. Pure.

use serde_json::{Value, json};
use thiserror::Error;

use super::Verdict;

/// What is about to happen to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It is created.
    Create,
    /// It is changed.
    Update,
    /// It is deleted.
    Delete,
    /// Something is connected to it.
    Connect,
}

/// Why a request is no admission review. The text goes back to the caller.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum ReviewError {
    #[error("the body is not JSON: {0}")]
    Json(String),
    #[error(
        "expected kind AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1, found {kind} of {api_version}"
    )]
    Kind { api_version: String, kind: String },
    #[error("the admission review has no request")]
    NoRequest,
    #[error("the admission review's request has no {0}")]
    Missing(&'static str),
    #[error("operation {0:?} is none of CREATE, UPDATE, DELETE, CONNECT")]
    Operation(String),
}

/// A request to decide about an object.
#[derive(Debug, PartialEq)]
pub(super) struct Review {
    api_version: String,
    uid: String,
    pub(super) operation: Operation,
    pub(super) object: Value,
}

impl Review {
    pub(super) fn parse(body: &[u8]) -> Result<Self, ReviewError> {
        let mut review: Value =
            serde_json::from_slice(body).map_err(|error| ReviewError::Json(error.to_string()))?;
        let text = |field: &str| {
            review
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or("(nothing)")
                .to_owned()
        };
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if kind != "AdmissionReview"
            || !matches!(
                &*api_version,
                "admission.k8s.io/v1" | "admission.k8s.io/v1beta1"
            )
        {
            return Err(ReviewError::Kind { api_version, kind });
        }
        let Some(request) = review
            .get_mut("request")
            .filter(|request| request.is_object())
        else {
            return Err(ReviewError::NoRequest);
        };
        let uid = request
            .get("uid")
            .and_then(Value::as_str)
            .filter(|uid| !uid.is_empty());
        let uid = uid.ok_or(ReviewError::Missing("uid"))?.to_owned();
        let operation = operation(
            request
                .get("operation")
                .and_then(Value::as_str)
                .ok_or(ReviewError::Missing("operation"))?,
        )?;
        let object = request
            .get_mut("object")
            .map(Value::take)
            .unwrap_or_default();
        if object.is_null() && matches!(operation, Operation::Create | Operation::Update) {
            return Err(ReviewError::Missing("object"));
        }
        Ok(Self {
            api_version,
            uid,
            operation,
            object,
        })
    }

    /// The answer, in the version that was asked in.
    pub(super) fn answer(&self, verdict: &Verdict) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": verdict.error.is_none()});
        if let Some(message) = &verdict.error {
            response["status"] = json!({"code": 403, "reason": "Forbidden", "message": message});
        }
        if !verdict.warnings.is_empty() {
            response["warnings"] = json!(verdict.warnings);
        }
        json!({"apiVersion": self.api_version, "kind": "AdmissionReview", "response": response})
    }
}

fn operation(text: &str) -> Result<Operation, ReviewError> {
    match text {
        "CREATE" => Ok(Operation::Create),
        "UPDATE" => Ok(Operation::Update),
        "DELETE" => Ok(Operation::Delete),
        "CONNECT" => Ok(Operation::Connect),
        other => Err(ReviewError::Operation(other.to_owned())),
    }
}
