//! One stamped object as the shell keeps it: what decides whether it is unchanged, and the paths that
//! templates read, nothing else. A thousand owners with five steps must fit in a few tens of MiB.

use std::collections::BTreeMap;
use std::sync::Arc;

use realizer::{Beside, ObjectRef, Observed};
use serde_json::{Map, Value, json};
use submission::{
    Annotations, Belonging, ControllerRef, OwnedValues, State, ValuesBeside, needs_migration,
    owner_of,
};

use api_types::labels;

use crate::mapper::{Kind, Served};
use crate::object_key::ObjectKey;
use crate::packed_text::PackedText;
use crate::stamped::projection::Projection;

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
    /// Where its owner is: the object's own namespace; of a cluster-scoped object, what its annotation or label says.
    pub owner_namespace: Arc<str>,
    /// What the object says of itself.
    pub annotations: Annotations,
    /// What we applied or created of it and what it holds there; `None` when we own nothing.
    pub values: Option<OwnedValues>,
    /// What it holds beside that; only where a template asks for it.
    pub beside: Option<Box<ValuesBeside>>,
    /// Whether managed fields are to be migrated: the Go controller's, or our own of old.
    pub legacy: bool,
    /// What this process knows of it by the replies to its own requests. Nothing depends on it: status says the same.
    pub memory: Memory,
    /// The projected object; parsed when a reconcile needs it.
    content: PackedText,
}

/// What this process knows of an object by the replies to its own requests.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    /// The mutable object as it was after our last apply.
    pub state: Option<State>,
    /// What it held then in the fields that are ours.
    pub left: Option<OwnedValues>,
    /// Whether status need not know that: the apply changed nothing, and status knows an earlier state.
    pub is_passing: bool,
    /// The immutable object.
    pub run: Option<Box<KnownAs>>,
    /// Whether it was seen with other values in the fields that are ours than it has or had at another time. What came of an
    /// immutable object may be of any of them, however often they are put back.
    pub was_changed: bool,
}

/// An object of an immutable family that a walk made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownAs {
    /// Digest of its rendering, if it is known.
    pub digest: Option<Box<str>>,
    /// Its position; the highest is the newest.
    pub sequence: u64,
    /// What it held when it was made, as [`State`] is written.
    pub state: Option<Box<str>>,
    /// What it held beside the rendering then; only where a template asks for it, and only of one that was not there before.
    pub beside: Option<Vec<String>>,
}

impl PartialEq for Stamped {
    /// Equal in everything a reconcile could see; the version itself is not part of it, nor what we know besides.
    fn eq(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.terminating == other.terminating
            && self.controller == other.controller
            && self.owner_namespace == other.owner_namespace
            && self.annotations == other.annotations
            && self.values == other.values
            && self.beside == other.beside
            && self.legacy == other.legacy
            && self.content == other.content
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
        let key = ObjectKey::new(text("namespace"), text("name"));
        let (controller, owner_namespace) = owner_of(metadata, &key.namespace);
        Self {
            key,
            uid: text("uid").into(),
            resource_version: text("resourceVersion").parse().unwrap_or(0),
            terminating: metadata["deletionTimestamp"].is_string(),
            controller,
            owner_namespace,
            annotations: Annotations::of(metadata),
            values: OwnedValues::held_by(value, field_manager)
                .or_else(|| OwnedValues::created_by(value, field_manager)),
            beside: projection
                .wants_values_beside()
                .then(|| Box::new(ValuesBeside::of(value, field_manager))),
            legacy: needs_migration(value, field_manager),
            memory: Memory::default(),
            content: PackedText::of(&content(value, kind, projection)),
        }
    }

    /// Whether the object says completely and rightly that this owner controls it.
    pub(crate) fn belongs_to(&self, kind: &str, owner: &ObjectKey, uid: &str) -> bool {
        self.belonging()
            .is_of(kind, &owner.namespace, &owner.name, uid)
    }

    /// Who controls it, as it says.
    pub(crate) fn belonging(&self) -> Belonging<'_> {
        Belonging {
            namespace: &self.key.namespace,
            owner_namespace: &self.owner_namespace,
            controller: self.controller.as_ref(),
        }
    }

    /// By what the objects of an owner are found: its uid or, of a cluster-scoped object, its namespace and name.
    pub(crate) fn owner_index(&self) -> Option<Box<str>> {
        let controller = self.controller.as_ref()?;
        if self.key.namespace.is_empty() {
            Some(name_index(&self.owner_namespace, &controller.name))
        } else {
            Some(controller.uid.clone())
        }
    }

    /// Where the owner of an object is, as [`Self::owner_namespace`] has it.
    pub(crate) fn owner_namespace_in(value: &Value) -> Arc<str> {
        let metadata = &value["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        owner_of(metadata, &Arc::from(namespace)).1
    }

    /// The projected object.
    pub fn content(&self) -> Value {
        self.content.value()
    }

    /// Its labels.
    pub fn labels(&self) -> BTreeMap<String, String> {
        string_map(&self.content()["metadata"]["labels"])
    }

    /// Whether its labels say that it is one of an immutable family.
    pub(crate) fn is_of_family(&self) -> bool {
        let labels = self.labels();
        let lifecycle = labels.get(labels::TEMPLATE_LIFECYCLE).map(String::as_str);
        let mutable = Some(api_types::Lifecycle::Mutable.as_str());
        labels.contains_key(labels::RUNNABLE_NAME) || (lifecycle.is_some() && lifecycle != mutable)
    }

    /// What the engine reads.
    pub fn observed(&self, served: &Served) -> Observed {
        Observed {
            object: self.content(),
            qualified_resource: Some(served.qualified()),
            namespaced: served.namespaced,
            sequence: 0,
            is_known: false,
            digest: None,
            unchanged: true,
            state: None,
            values: None,
            is_as_left: false,
            beside: self.beside.as_deref().map(|beside| Beside {
                values: beside.digests().collect(),
                named: beside.named().iter().map(ToString::to_string).collect(),
                expected: None,
            }),
            is_gone: false,
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

    /// Takes over what was known of the object when it was `before`, and is not known anew.
    pub(crate) fn remember(&mut self, before: &Self) {
        // What a write of ours changes is no change by others.
        let is_written = self.memory.run.is_some();
        let is_changed = !is_written && self.values != before.values;
        let memory = &mut self.memory;
        memory.was_changed |= is_changed || before.memory.was_changed;
        if memory.state.is_none() {
            memory.state = before.memory.state;
            memory.left = before.memory.left;
            memory.is_passing = before.memory.is_passing;
        }
        if memory.run.is_none() {
            memory.run.clone_from(&before.memory.run);
        }
    }

    /// Takes over what the reply to a write of ours said, though the watch has told of this later version before.
    pub(crate) fn hear_of(&mut self, mut reply: Self) {
        let is_changed = self.values != reply.values;
        reply.remember(self);
        reply.memory.was_changed |= is_changed;
        self.memory = reply.memory;
    }
}

/// As [`Stamped::owner_index`] of a cluster-scoped object.
pub(crate) fn name_index(namespace: &str, name: &str) -> Box<str> {
    format!("{namespace}/{name}").into()
}

/// The texts of a map, such as labels.
pub(crate) fn string_map(value: &Value) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
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

    /// A run of ours that holds this.
    fn run(value: &str) -> Stamped {
        let entry = json!({
            "manager": "m", "operation": "Update", "apiVersion": "test.run/v1", "time": "2026-01-01T00:00:00Z",
            "fieldsV1": {"f:spec": {"f:value": {}}},
        });
        let metadata = json!({"name": "a", "managedFields": [entry]});
        projected(
            &json!({"metadata": metadata, "spec": {"value": value}}),
            &[],
        )
    }

    /// As the reply to our create tells of it.
    fn created(value: &str) -> Stamped {
        let mut created = run(value);
        created.memory.run = Some(Box::new(KnownAs {
            digest: None,
            sequence: 1,
            state: None,
            beside: None,
        }));
        created
    }

    #[test]
    fn what_others_have_changed_stays_changed_when_they_change_it_back() {
        let (before, mut changed, mut back) = (created("1"), run("2"), run("1"));
        changed.remember(&before);
        assert!(changed.memory.was_changed);
        back.remember(&changed);
        assert!(back.memory.was_changed && back.memory.run.is_some());
    }

    #[test]
    fn a_change_that_the_watch_tells_of_before_the_reply_to_the_creation_is_one() {
        let mut held = run("2");
        held.hear_of(created("1"));
        assert!(held.memory.was_changed && held.memory.run.is_some());
        let mut back = run("1");
        back.remember(&run("2"));
        back.hear_of(created("1"));
        assert!(back.memory.was_changed);
        let mut echo = run("1");
        echo.hear_of(created("1"));
        assert!(!echo.memory.was_changed);
    }

    #[test]
    fn what_a_write_of_ours_has_changed_was_not_changed_by_others() {
        let mut written = created("2");
        written.remember(&run("1"));
        assert!(!written.memory.was_changed);
    }

    #[test]
    fn a_cluster_scoped_object_says_by_label_where_its_owner_is() {
        let object =
            json!({"metadata": {"name": "a", "labels": {labels::WORKLOAD_NAMESPACE: "dev"}}});
        assert_eq!(&*projected(&object, &[]).owner_namespace, "dev");
        let object = json!({"metadata": {"name": "a", "namespace": "n", "labels": {labels::WORKLOAD_NAMESPACE: "dev"}}});
        assert_eq!(&*projected(&object, &[]).owner_namespace, "n");
    }

    #[test]
    fn an_annotation_says_who_owns_a_cluster_scoped_object_and_nothing_of_others() {
        let mark = submission::owner_mark("Workload", "dev", "app", "u-1");
        let annotated = |namespace: &str| {
            let metadata =
                json!({"name": "a", "namespace": namespace, "annotations": {labels::OWNER: mark}});
            projected(&json!({"metadata": metadata}), &[])
        };
        let owner = ObjectKey::new("dev", "app");
        assert!(annotated("").belongs_to("Workload", &owner, "u-1"));
        assert!(
            annotated("").belongs_to("Workload", &owner, "u-2"),
            "the next one of that name goes on with it"
        );
        assert!(!annotated("dev").belongs_to("Workload", &owner, "u-1"));
    }

    #[test]
    fn an_object_belongs_to_an_owner_only_by_a_complete_reference_in_its_namespace() {
        let object = |namespace: &str, api_version: &str, kind: &str, name: &str| {
            let reference = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "u-1", "controller": true});
            projected(
                &json!({"metadata": {"name": "x", "namespace": namespace, "ownerReferences": [reference]}}),
                &[],
            )
        };
        let owner = ObjectKey::new("dev", "app");
        let belongs = |object: Stamped| object.belongs_to("Workload", &owner, "u-1");
        assert!(belongs(object(
            "dev",
            "carto.run/v1alpha1",
            "Workload",
            "app"
        )));
        assert!(!belongs(object(
            "evil",
            "carto.run/v1alpha1",
            "Workload",
            "app"
        )));
        assert!(!belongs(object(
            "dev",
            "nope.example.com/v1",
            "Workload",
            "app"
        )));
        assert!(!belongs(object("dev", "carto.run/v1alpha1", "Nope", "app")));
        assert!(!belongs(object(
            "dev",
            "carto.run/v1alpha1",
            "Workload",
            "other"
        )));
    }
}
