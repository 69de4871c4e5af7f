//! AdmissionReview, v1 and v1beta1, in and out. Pure.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thiserror::Error;

use super::Verdict;

/// How deep the parser goes.
const DEPTH: u8 = 127;

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
    /// What is created or changed; the text says why it cannot be read.
    pub(super) object: Result<Value, String>,
}

/// The fields that are read. All else is skipped, however deep: an update that repairs an object which nobody can read
/// carries it as `oldObject`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    api_version: Option<&'a RawValue>,
    #[serde(borrow)]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Request<'a> {
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
}

impl Review {
    pub(super) fn parse(body: &[u8]) -> Result<Self, ReviewError> {
        let json = |error: serde_json::Error| ReviewError::Json(error.to_string());
        let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(json)?;
        let api_version = text(envelope.api_version).unwrap_or_else(|| "(nothing)".to_owned());
        let kind = text(envelope.kind).unwrap_or_else(|| "(nothing)".to_owned());
        if kind != "AdmissionReview"
            || !matches!(
                &*api_version,
                "admission.k8s.io/v1" | "admission.k8s.io/v1beta1"
            )
        {
            return Err(ReviewError::Kind { api_version, kind });
        }
        let request = envelope.request.map(RawValue::get);
        let request = request.filter(|request| request.starts_with('{'));
        let request: Request<'_> =
            serde_json::from_str(request.ok_or(ReviewError::NoRequest)?).map_err(json)?;
        let uid = text(request.uid).filter(|uid| !uid.is_empty());
        let uid = uid.ok_or(ReviewError::Missing("uid"))?;
        let operation = text(request.operation).ok_or(ReviewError::Missing("operation"))?;
        let operation = operation_of(&operation)?;
        if request.object.is_none() && matches!(operation, Operation::Create | Operation::Update) {
            return Err(ReviewError::Missing("object"));
        }
        Ok(Self {
            api_version,
            uid,
            operation,
            object: request.object.map_or(Ok(Value::Null), object),
        })
    }

    /// The answer, in the version that was asked in.
    pub(super) fn answer(&self, verdict: &Verdict) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": verdict.error.is_none()});
        if let Some(message) = &verdict.error {
            response["status"] = json!({"code": 403, "reason": "Forbidden", "message": message});
        }
        if !verdict.warnings.is_empty() {
            response["warnings"] = verdict.warnings.iter().map(|text| shown(text)).collect();
        }
        json!({"apiVersion": self.api_version, "kind": "AdmissionReview", "response": response})
    }
}

/// The API server passes a warning on in a header, and drops one with control characters.
fn shown(warning: &str) -> String {
    let mut out = String::with_capacity(warning.len());
    for character in warning.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

fn text(field: Option<&RawValue>) -> Option<String> {
    serde_json::from_str(field?.get()).ok()
}

/// The API server takes objects of any depth. The watches of the controllers read them with the same limit as this one
/// (`raw_object`), so that what is refused here is what none of them could read.
fn object(text: &RawValue) -> Result<Value, String> {
    serde_json::from_str(text.get()).map_err(|error| {
        let text = error.to_string();
        if text.starts_with("recursion limit exceeded") {
            return format!("invalid object: it is nested more than {DEPTH} levels deep");
        }
        format!("invalid object: {text}")
    })
}

fn operation_of(text: &str) -> Result<Operation, ReviewError> {
    match text {
        "CREATE" => Ok(Operation::Create),
        "UPDATE" => Ok(Operation::Update),
        "DELETE" => Ok(Operation::Delete),
        "CONNECT" => Ok(Operation::Connect),
        other => Err(ReviewError::Operation(other.to_owned())),
    }
}
