//! One stamped object as the shell keeps it: what decides whether it is unchanged, and the paths that
//! templates read, nothing else. A thousand owners with five steps must fit in a few tens of MiB.

use std::collections::BTreeMap;

use realizer::{ObjectRef, Observed};
use serde_json::{Map, Value, json};

use api_types::{NamespaceName, ObjectName, labels};

use crate::mapper::{Kind, Served};
use crate::stamped::managed::{is_legacy, is_ours};
use crate::stamped::projection::Projection;

/// Namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
}

impl ObjectKey {
    /// A key from its two parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an owner.
    pub fn of_owner(namespace: &NamespaceName, name: &ObjectName) -> Self {
        Self::new(namespace.as_str(), name.as_str())
    }
}

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

/// A stamped object, projected.
#[derive(Debug, Clone)]
pub struct Stamped {
    /// Where it is.
    pub key: ObjectKey,
    /// Its uid.
    pub uid: Box<str>,
    /// Its version; only to tell which of two observations is newer.
    pub resource_version: u64,
    /// Whether a deletion is under way.
    pub terminating: bool,
    /// Its controller owner.
    pub controller: Option<ControllerRef>,
    /// Annotation `carto.run/rendered-digest`.
    pub digest: Option<Box<str>>,
    /// Annotation `carto.run/unowned`.
    pub unowned: Option<Box<str>>,
    /// Annotation `carto.run/submission`; 0 when absent.
    pub sequence: u64,
    /// Annotation `carto.run/owner-generation`; 0 when absent.
    pub owner_generation: i64,
    /// `fieldsV1` of our Apply entry, and the apiVersion it was applied with.
    pub managed: Option<(Box<str>, Box<str>)>,
    /// Whether the Go controller's entry is still there.
    pub legacy: bool,
    /// The projected object as JSON text; parsed when a reconcile needs it.
    content: Box<str>,
}

impl PartialEq for Stamped {
    /// Equal in everything a reconcile could see; the version itself is not part of it.
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.terminating == other.terminating
            && self.controller == other.controller
            && self.digest == other.digest
            && self.unowned == other.unowned
            && self.sequence == other.sequence
            && self.owner_generation == other.owner_generation
            && self.managed == other.managed
            && self.legacy == other.legacy
            && self.content == other.content
    }
}

impl ControllerRef {
    /// Whether the owner is of this kind of ours. Other groups have kinds of these names, too.
    pub fn is_ours(&self, kind: &str) -> bool {
        *self.group == *api_types::GROUP && *self.kind == *kind
    }
}

impl Stamped {
    /// Projects an object as the API server returned it.
    pub fn from_value(
        value: &Value,
        kind: &Kind,
        projection: &Projection,
        field_manager: &str,
    ) -> Self {
        let metadata = &value["metadata"];
        let text = |field: &str| metadata[field].as_str().unwrap_or_default();
        let annotation = |key: &str| metadata["annotations"][key].as_str().map(Box::from);
        let sequence = annotation(labels::SUBMISSION)
            .and_then(|text: Box<str>| text.parse().ok())
            .unwrap_or(0);
        let owner_generation = annotation(labels::OWNER_GENERATION)
            .and_then(|text: Box<str>| text.parse().ok())
            .unwrap_or(0);
        let managed = metadata["managedFields"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        Self {
            key: ObjectKey::new(text("namespace"), text("name")),
            uid: text("uid").into(),
            resource_version: text("resourceVersion").parse().unwrap_or(0),
            terminating: metadata["deletionTimestamp"].is_string(),
            controller: controller_of(metadata),
            digest: annotation(labels::RENDERED_DIGEST),
            unowned: annotation(labels::UNOWNED),
            sequence,
            owner_generation,
            managed: managed
                .iter()
                .find(|entry| is_ours(entry, field_manager))
                .map(|entry| {
                    (
                        entry["apiVersion"].as_str().unwrap_or_default().into(),
                        entry["fieldsV1"].to_string().into(),
                    )
                }),
            legacy: managed.iter().any(is_legacy),
            content: content(value, kind, projection).to_string().into(),
        }
    }

    /// The projected object.
    pub fn content(&self) -> Value {
        serde_json::from_str(&self.content).unwrap_or_default()
    }

    /// Its labels.
    pub fn labels(&self) -> BTreeMap<String, String> {
        let content = self.content();
        content["metadata"]["labels"]
            .as_object()
            .map(|labels| {
                labels
                    .iter()
                    .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Namespace of the owner: the object's own, or what its label says where the object is cluster-scoped.
    pub(crate) fn owner_namespace(&self) -> Box<str> {
        if !self.key.namespace.is_empty() {
            return self.key.namespace.clone();
        }
        let labels = self.labels();
        [labels::WORKLOAD_NAMESPACE, labels::DELIVERABLE_NAMESPACE]
            .iter()
            .find_map(|label| labels.get(*label))
            .map(|namespace| namespace.as_str().into())
            .unwrap_or_default()
    }

    /// What the engine reads.
    pub fn observed(&self, served: &Served) -> Observed {
        Observed {
            object: self.content(),
            qualified_resource: Some(served.qualified()),
            namespaced: served.namespaced,
            sequence: self.sequence,
            owner_generation: self.owner_generation,
            digest: self.digest.as_deref().map(str::to_owned),
            version: self.resource_version,
            terminating: self.terminating,
        }
    }

    /// A reference to it.
    pub fn reference(&self, served: &Served) -> ObjectRef {
        ObjectRef {
            api_version: served.kind.api_version.clone(),
            kind: served.kind.kind.clone(),
            namespace: self.key.namespace.to_string(),
            name: self.key.name.to_string(),
            qualified_resource: Some(served.qualified()),
            uid: Some(self.uid.to_string()),
        }
    }
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

fn content(value: &Value, kind: &Kind, projection: &Projection) -> Value {
    let metadata = &value["metadata"];
    let mut kept = Map::new();
    for field in [
        "name",
        "namespace",
        "uid",
        "generation",
        "creationTimestamp",
        "labels",
    ] {
        if let Some(present) = metadata.get(field) {
            kept.insert(field.to_owned(), present.clone());
        }
    }
    let mut content = json!({"metadata": kept});
    projection.copy(value, &mut content);
    // Not what the text says: a metadata-only watch delivers every object as PartialObjectMetadata.
    if let Some(content) = content.as_object_mut() {
        content.insert("apiVersion".to_owned(), kind.api_version.as_str().into());
        content.insert("kind".to_owned(), kind.kind.as_str().into());
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projected(value: &Value, paths: &[&str]) -> Stamped {
        let paths = paths.iter().map(|path| vec![(*path).to_owned()]);
        let kind = Kind::new("test.run/v1", "Test");
        Stamped::from_value(value, &kind, &Projection::new(paths), "m")
    }

    #[test]
    fn the_kind_is_the_watched_one_however_the_object_was_asked_for() {
        let partial = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": {"name": "a"}});
        let content = projected(&partial, &["kind", "apiVersion"]).content();
        assert_eq!(content["apiVersion"], "test.run/v1");
        assert_eq!(content["kind"], "Test");
    }

    #[test]
    fn a_cluster_scoped_object_says_by_label_where_its_owner_is() {
        let object =
            json!({"metadata": {"name": "a", "labels": {labels::WORKLOAD_NAMESPACE: "dev"}}});
        assert_eq!(&*projected(&object, &[]).owner_namespace(), "dev");
        let object = json!({"metadata": {"name": "a", "namespace": "n", "labels": {labels::WORKLOAD_NAMESPACE: "dev"}}});
        assert_eq!(&*projected(&object, &[]).owner_namespace(), "n");
    }
}
