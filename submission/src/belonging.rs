//! What a stamped object says of itself: who controls it, where that owner is, and what it is.

use std::sync::Arc;

use api_types::labels;
use serde_json::Value;

use crate::kind::Kind;

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

/// The owner that controls the object with this metadata in this namespace, or in none, and the namespace of that owner.
///
/// An owner reference to an object in a namespace means nothing on a cluster-scoped object: the garbage collector cannot
/// resolve it. An annotation says whose it is.
pub fn owner_of(metadata: &Value, namespace: &Arc<str>) -> (Option<ControllerRef>, Arc<str>) {
    if !namespace.is_empty() {
        return (controller_of(metadata), namespace.clone());
    }
    let text = metadata["annotations"][labels::OWNER].as_str();
    if let Some((namespace, controller)) = text.and_then(owner_mark) {
        return (Some(controller), namespace.into());
    }
    let label = |key: &str| metadata["labels"][key].as_str();
    let owned = [labels::WORKLOAD_NAMESPACE, labels::DELIVERABLE_NAMESPACE]
        .iter()
        .find_map(|key| label(key));
    let owned = owned.map_or_else(|| namespace.clone(), Arc::from);
    (controller_of(metadata), owned)
}

/// Reads `<Kind>/<namespace>/<name>/<uid>`, as [`crate::owner_mark`] writes it.
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

/// Who controls an object, as it says.
#[derive(Debug, Clone, Copy)]
pub struct Belonging<'o> {
    /// Its namespace, empty for a cluster-scoped object.
    pub namespace: &'o str,
    /// The namespace of its owner.
    pub owner_namespace: &'o str,
    /// Its controller owner.
    pub controller: Option<&'o ControllerRef>,
}

impl Belonging<'_> {
    /// Whether the object says completely and rightly that this owner controls it. A uid alone would not do: it can be read
    /// on every object of the owner, and a reference with another kind or in another namespace is never cleaned up.
    ///
    /// A cluster-scoped object belongs to whichever owner has the name: nothing deletes it with its owner, so the next one of
    /// that name goes on with it.
    pub fn is_of(self, kind: &str, namespace: &str, name: &str, uid: &str) -> bool {
        let is_cluster_scoped = self.namespace.is_empty();
        let is_here = is_cluster_scoped || self.namespace == namespace;
        is_here
            && self.owner_namespace == namespace
            && self.controller.is_some_and(|controller| {
                controller.is_ours(kind)
                    && *controller.name == *name
                    && (is_cluster_scoped || *controller.uid == *uid)
            })
    }
}

/// What an object says of itself. Whoever may edit the object may write this, so it decides nothing alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    /// Annotation `carto.run/rendered-digest`.
    pub digest: Option<Box<str>>,
    /// Annotation `carto.run/submission`; 0 when absent.
    pub sequence: u64,
    /// Annotation `carto.run/owner-generation`; 0 when absent.
    pub owner_generation: i64,
    /// Annotation `carto.run/adopt`.
    pub adopt: bool,
    /// Annotation `carto.run/service-account`; of cluster-scoped objects only.
    pub account: Option<Box<str>>,
}

impl Annotations {
    /// Of an object with this metadata.
    pub fn of(metadata: &Value) -> Self {
        let annotation = |key: &str| metadata["annotations"][key].as_str();
        Self {
            digest: annotation(labels::RENDERED_DIGEST).map(Box::from),
            sequence: annotation(labels::SUBMISSION)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            owner_generation: annotation(labels::OWNER_GENERATION)
                .and_then(|text| text.parse().ok())
                .unwrap_or(0),
            adopt: annotation(labels::ADOPT) == Some("true"),
            account: annotation(labels::SERVICE_ACCOUNT)
                .filter(|_| metadata["namespace"].is_null())
                .map(Box::from),
        }
    }
}
