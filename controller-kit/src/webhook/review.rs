//! AdmissionReview, v1 and v1beta1, in and out. Pure.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;

use super::Answer;

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
pub enum ReviewError {
    /// It cannot be read at all.
    #[error("the body is not JSON: {0}")]
    Json(String),
    /// It is something else.
    #[error(
        "expected kind AdmissionReview of admission.k8s.io/v1 or admission.k8s.io/v1beta1, found {kind} of {api_version}"
    )]
    Kind {
        /// Its apiVersion.
        api_version: String,
        /// Its kind.
        kind: String,
    },
    /// Nothing is asked.
    #[error("the admission review has no request")]
    NoRequest,
    /// A field is not there without which nothing can be said.
    #[error("the admission review's request has no {0}")]
    Missing(&'static str),
    /// Nothing of that sort happens to objects.
    #[error("operation {0:?} is none of CREATE, UPDATE, DELETE, CONNECT")]
    Operation(String),
}

/// A request to decide about an object.
#[derive(Debug)]
pub struct Review {
    api_version: String,
    uid: String,
    /// The kind, as the route says.
    pub kind: &'static str,
    /// What is about to happen.
    pub operation: Operation,
    /// The object's namespace; empty if it is cluster-scoped.
    pub namespace: String,
    /// The object's name; empty in a create that has the API server choose one.
    pub name: String,
    /// The part of the object that is meant, such as `status`; empty if it is the whole.
    pub sub_resource: String,
    /// Who asks.
    pub user: User,
    /// Whether nothing is stored, so that nothing may be done beside the answer.
    pub is_dry_run: bool,
    /// What is created or changed; the text says why it cannot be read.
    pub object: Result<Value, String>,
    old_object: Option<Box<str>>,
    /// The room that its body takes, for as long as anybody works on it.
    _room: Option<OwnedSemaphorePermit>,
}

/// Who asks for something.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct User {
    /// Name.
    pub username: String,
    /// uid, if the authenticator gives one.
    pub uid: String,
    /// Groups.
    pub groups: Vec<String>,
    /// What else the authenticator says.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The fields that are read. All else is skipped, however deep: an update that repairs an object which nobody can read
/// carries it as `oldObject`, which is read when somebody asks for it.
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
#[serde(default, rename_all = "camelCase")]
struct Request<'a> {
    #[serde(borrow)]
    uid: Option<&'a RawValue>,
    #[serde(borrow)]
    operation: Option<&'a RawValue>,
    #[serde(borrow)]
    namespace: Option<&'a RawValue>,
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    sub_resource: Option<&'a RawValue>,
    #[serde(borrow)]
    user_info: Option<&'a RawValue>,
    #[serde(borrow)]
    dry_run: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    old_object: Option<&'a RawValue>,
}

impl Review {
    /// Reads the body of a request to the path of this kind.
    ///
    /// # Errors
    /// When it is no admission review; whoever sent it must correct it.
    pub fn parse(kind: &'static str, body: &[u8]) -> Result<Self, ReviewError> {
        let json = |error: serde_json::Error| ReviewError::Json(error.to_string());
        let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(json)?;
        let api_version = text(envelope.api_version).unwrap_or_else(|| "(nothing)".to_owned());
        let found = text(envelope.kind).unwrap_or_else(|| "(nothing)".to_owned());
        if found != "AdmissionReview"
            || !matches!(
                &*api_version,
                "admission.k8s.io/v1" | "admission.k8s.io/v1beta1"
            )
        {
            return Err(ReviewError::Kind {
                api_version,
                kind: found,
            });
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
            kind,
            operation,
            namespace: read(request.namespace),
            name: read(request.name),
            sub_resource: read(request.sub_resource),
            user: read(request.user_info),
            is_dry_run: read(request.dry_run),
            object: request
                .object
                .map_or(Ok(Value::Null), |text| parsed(text.get())),
            old_object: request.old_object.map(|text| text.get().into()),
            _room: None,
        })
    }

    pub(super) fn taking(self, room: Option<OwnedSemaphorePermit>) -> Self {
        Self {
            _room: room,
            ..self
        }
    }

    /// What is changed or deleted, as it is stored.
    ///
    /// # Errors
    /// Why it cannot be read. Whoever may have stored it may repair it.
    pub fn old_object(&self) -> Result<Value, String> {
        self.old_object.as_deref().map_or(Ok(Value::Null), parsed)
    }

    /// The answer, in the version that was asked in.
    pub(super) fn answer(&self, answer: &Answer) -> Value {
        let mut response = json!({"uid": self.uid, "allowed": answer.error.is_none()});
        if let Some(message) = &answer.error {
            response["status"] = json!({"code": 403, "reason": "Forbidden", "message": message});
        } else if !answer.patch.is_empty() {
            let operations = json!(answer.patch).to_string();
            response["patchType"] = "JSONPatch".into();
            response["patch"] = json!(ByteString(operations.into_bytes()));
        }
        if !answer.warnings.is_empty() {
            response["warnings"] = answer.warnings.iter().map(|text| shown(text)).collect();
        }
        if !answer.audit_annotations.is_empty() {
            response["auditAnnotations"] = json!(answer.audit_annotations);
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

/// A field that is not what it should be says nothing.
fn read<T: Default + serde::de::DeserializeOwned>(field: Option<&RawValue>) -> T {
    let field = field.and_then(|field| serde_json::from_str(field.get()).ok());
    field.unwrap_or_default()
}

/// The API server takes objects of any depth. The watches of the controllers read them with the same limit as this one
/// (`raw_object`), so that what is refused here is what none of them could read.
fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| {
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
