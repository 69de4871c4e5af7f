//! The status of an owner, read leniently and written completely.

use api_types::names::{ObjectName, ResourceName};
use api_types::{
    BlueprintRef, Condition, EnvironmentStatus, OwnerSummary, ResourceStatus, StampedRef,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::owner::repeated;
use crate::{Family, ObjectRef};

/// Field of a Deliverable's status.
pub(crate) const ENVIRONMENTS: &str = "environments";

/// What WorkloadStatus and DeliverableStatus have in common: all but the name of one field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OwnerStatus {
    pub(crate) observed_generation: Option<i64>,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) blueprint_ref: BlueprintRef,
    pub(crate) resources: Vec<ResourceStatus>,
    /// Deliverables only.
    pub(crate) environments: Vec<EnvironmentStatus>,
    pub(crate) pending_removals: Vec<StampedRef>,
    /// The owners that led to this one.
    pub(crate) stamped_for: Vec<String>,
    /// While it is not Ready.
    pub(crate) summary: Option<OwnerSummary>,
}

impl OwnerStatus {
    /// Reads a status; a part that does not have its shape counts as empty, so that it is written anew.
    pub(crate) fn read(family: Family, status: Option<&Value>) -> Self {
        let Some(status) = status else {
            return Self::default();
        };
        Self {
            observed_generation: status.get("observedGeneration").and_then(Value::as_i64),
            conditions: part(status, "conditions"),
            blueprint_ref: part(status, family.status_ref_field()),
            resources: resources(status),
            environments: part(status, ENVIRONMENTS),
            pending_removals: part(status, "pendingRemovals"),
            stamped_for: part(status, "stampedFor"),
            summary: part(status, "summary"),
        }
    }

    pub(crate) fn write(&self, family: Family) -> Value {
        let mut status = Map::new();
        if let Some(generation) = self.observed_generation {
            status.insert("observedGeneration".to_owned(), generation.into());
        }
        let mut insert = |name: &str, value: Value| status.insert(name.to_owned(), value);
        insert("conditions", json(&self.conditions));
        insert(family.status_ref_field(), json(&self.blueprint_ref));
        if !self.resources.is_empty() {
            let entries: Vec<_> = self.resources.iter().map(repeated::said_once).collect();
            insert("resources", json(&entries));
        }
        if !self.environments.is_empty() {
            insert(ENVIRONMENTS, json(&self.environments));
        }
        if !self.pending_removals.is_empty() {
            insert("pendingRemovals", json(&self.pending_removals));
        }
        if !self.stamped_for.is_empty() {
            insert("stampedFor", json(&self.stamped_for));
        }
        if let Some(summary) = &self.summary {
            insert("summary", json(summary));
        }
        Value::Object(status)
    }

    /// Whether it speaks of this blueprint.
    pub(crate) fn is_of(&self, blueprint: &ObjectName) -> bool {
        self.blueprint_ref.name.as_deref() == Some(blueprint.as_str())
    }

    pub(crate) fn resource(&self, name: &ResourceName) -> Option<&ResourceStatus> {
        self.resources
            .iter()
            .find(|resource| *name == *resource.name)
    }

    /// What is known of the environment of this step.
    pub(crate) fn environment(&self, step: &ResourceName) -> Option<&EnvironmentStatus> {
        self.environments
            .iter()
            .find(|environment| *step == *environment.resource)
    }

    /// Entries that stamped an object, with the object.
    pub(crate) fn stamped_refs(&self) -> impl Iterator<Item = (&ResourceStatus, ObjectRef)> {
        self.resources
            .iter()
            .filter_map(|resource| Some((resource, object_ref(resource.stamped_ref.as_ref()?)?)))
    }

    pub(crate) fn pending_refs(&self) -> impl Iterator<Item = ObjectRef> {
        self.pending_removals.iter().filter_map(object_ref)
    }
}

fn resources(status: &Value) -> Vec<ResourceStatus> {
    let mut resources: Vec<ResourceStatus> = part(status, "resources");
    resources.iter_mut().for_each(repeated::put_back);
    resources
}

pub(crate) fn part<'s, T: Deserialize<'s> + Default>(status: &'s Value, field: &str) -> T {
    status
        .get(field)
        .and_then(|part| T::deserialize(part).ok())
        .unwrap_or_default()
}

/// These types have string keys and no failing serializer, so the fallback is never taken.
fn json<T: serde::Serialize>(part: &T) -> Value {
    serde_json::to_value(part).unwrap_or_default()
}

/// The reference in the engine's own shape; `None` when it names nothing.
pub(crate) fn object_ref(stamped: &StampedRef) -> Option<ObjectRef> {
    Some(ObjectRef {
        api_version: stamped.api_version.clone()?,
        kind: stamped.kind.clone()?,
        namespace: stamped.namespace.clone().unwrap_or_default(),
        name: stamped.name.clone().filter(|name| !name.is_empty())?,
        qualified_resource: stamped
            .resource
            .clone()
            .filter(|resource| resource != api_types::status::UNKNOWN_RESOURCE),
        uid: stamped.uid.clone(),
    })
}

/// The reference in the shape of the status; with the uid, which only pending removals carry.
pub(crate) fn stamped_ref(object: &ObjectRef) -> StampedRef {
    let unless_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    StampedRef {
        api_version: Some(object.api_version.clone()),
        kind: Some(object.kind.clone()),
        namespace: unless_empty(&object.namespace),
        name: Some(object.name.clone()),
        resource: Some(
            object
                .qualified_resource
                .clone()
                .unwrap_or_else(|| api_types::status::UNKNOWN_RESOURCE.to_owned()),
        ),
        uid: object.uid.clone(),
        ..StampedRef::default()
    }
}
