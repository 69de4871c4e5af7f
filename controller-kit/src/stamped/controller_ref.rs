//! Who controls a stamped object, and where that owner is.

use std::sync::Arc;

use api_types::labels;
use serde_json::Value;

use crate::mapper::Kind;
use crate::object_key::ObjectKey;

/// The controller owner reference of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerRef {
    /// API group of the owner; any version of it.
    pub group: Box<str>,
    /// Kind of the owner.
    pub kind: Box<str>,
    /// Name of the owner.
    pub name: Box<str>,
    /// uid of the owner.
    pub uid: Box<str>,
}

impl ControllerRef {
    /// Whether the owner is of this kind of ours. Other groups have kinds of these names, too.
    pub fn is_ours(&self, kind: &str) -> bool {
        *self.group == *api_types::GROUP && *self.kind == *kind
    }
}

/// The owner that controls the object with this metadata at this place, and its namespace.
///
/// An owner reference to an object in a namespace means nothing on a cluster-scoped object: the garbage collector cannot
/// resolve it. An annotation says whose it is.
pub(super) fn owner_of(metadata: &Value, key: &ObjectKey) -> (Option<ControllerRef>, Arc<str>) {
    if !key.namespace.is_empty() {
        return (controller_of(metadata), key.namespace.clone());
    }
    let text = metadata["annotations"][labels::OWNER].as_str();
    if let Some((namespace, controller)) = text.and_then(owner_mark) {
        return (Some(controller), namespace.into());
    }
    let label = |key: &str| metadata["labels"][key].as_str();
    let namespace = [labels::WORKLOAD_NAMESPACE, labels::DELIVERABLE_NAMESPACE]
        .iter()
        .find_map(|key| label(key));
    let namespace = namespace.map_or_else(|| key.namespace.clone(), Arc::from);
    (controller_of(metadata), namespace)
}

/// Reads `<Kind>/<namespace>/<name>/<uid>`, as [`submission::owner_mark`] writes it.
fn owner_mark(text: &str) -> Option<(&str, ControllerRef)> {
    let mut parts = text.split('/');
    let mut part = || parts.next().filter(|part| !part.is_empty());
    let (kind, namespace, name, uid) = (part()?, part()?, part()?, part()?);
    let controller = ControllerRef {
        group: api_types::GROUP.into(),
        kind: kind.into(),
        name: name.into(),
        uid: uid.into(),
    };
    Some((namespace, controller))
}

fn controller_of(metadata: &Value) -> Option<ControllerRef> {
    let references = metadata["ownerReferences"].as_array()?;
    let reference = references
        .iter()
        .find(|reference| reference["controller"] == Value::Bool(true))?;
    let api_version = reference["apiVersion"].as_str().unwrap_or_default();
    Some(ControllerRef {
        group: Kind::new(api_version, "").group().into(),
        kind: reference["kind"].as_str()?.into(),
        name: reference["name"].as_str()?.into(),
        uid: reference["uid"].as_str()?.into(),
    })
}
