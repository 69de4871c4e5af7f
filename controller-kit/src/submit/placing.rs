//! What a rendering becomes so that it can be where its kind is: in the owner's namespace, or in none.

use api_types::labels;
use realizer::{Submission, lineage};
use serde_json::{Value, json};

use super::Applicant;
use crate::mapper::Served;
use crate::stamped::{ObjectKey, owner_mark_text};

/// The object to send. A cluster-scoped object gets no owner reference: the garbage collector cannot resolve one to an owner
/// in a namespace and keeps the object for ever. Annotations say whose it is and with whose rights it is deleted.
pub(super) fn placed(applicant: &Applicant<'_>, rendered: &Value, served: &Served) -> Value {
    let mut object = rendered.clone();
    if served.namespaced {
        return object;
    }
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return object;
    };
    metadata.remove("namespace");
    metadata.remove("ownerReferences");
    let annotations = metadata.entry("annotations").or_insert(Value::Null);
    if !annotations.is_object() {
        *annotations = json!({});
    }
    let (namespace, name) = (applicant.namespace.as_str(), applicant.name.as_str());
    annotations[labels::OWNER] = Value::from(owner_mark_text(
        applicant.kind,
        namespace,
        name,
        applicant.uid,
    ));
    let account = &applicant.account;
    annotations[labels::SERVICE_ACCOUNT] =
        Value::from(format!("{}/{}", account.namespace, account.name));
    object
}

/// Tells an owner that is stamped for an owner that was stamped itself how it came to be. Not part of the rendering: an
/// object that was made before this was told is as rendered without it.
pub(super) fn tell_lineage(applicant: &Applicant<'_>, object: &mut Value) {
    if applicant.stamped_for.is_empty() || !lineage::is_owner(object) {
        return;
    }
    annotate(
        object,
        labels::STAMPED_FOR,
        lineage::annotation(applicant.stamped_for),
    );
}

/// Puts an annotation on an object.
pub(super) fn annotate(object: &mut Value, key: &str, value: impl Into<Value>) {
    let metadata = &mut object["metadata"];
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][key] = value.into();
}

/// Where the object of a submission is.
pub(super) fn key_of(
    applicant: &Applicant<'_>,
    submission: &Submission,
    served: &Served,
) -> ObjectKey {
    let namespace = if served.namespaced {
        applicant.namespace.as_str()
    } else {
        ""
    };
    let name = &submission.object["metadata"]["name"];
    ObjectKey::new(namespace, name.as_str().unwrap_or_default())
}
