//! The owner: a Workload or a Deliverable as the API server holds it.
//!
//! [`Owner`] is the object parsed. What Workload and Deliverable have different names for is on [`family::Family`].
//! [`owner_status`] is the owner's status, which is all that is remembered from one walk to the next; [`repeated`] leaves out
//! of it what it would say twice. [`typed_view`] shows the object as a Go client with the types of upstream would: selectors
//! and templates see it so. [`lineage`] says which owners led to one that was itself stamped.

pub(crate) mod family;
pub mod lineage;
pub(crate) mod owner_status;
mod repeated;
pub(crate) mod typed_view;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use api_types::names::{NameError, NamespaceName, ObjectName};
use api_types::{ConditionStatus, ConditionType, OutputStatus, OwnerParam};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::owner::owner_status::OwnerStatus;
use crate::owner::typed_view::Views;
use crate::values::field_path::{FieldPath, PathProblem};
use crate::values::matching::{Fields, Matched};
use crate::values::redaction::REDACTED;
use crate::{Family, ObjectRef, kept_in};

/// An owner, parsed once per resourceVersion.
#[derive(Clone, Debug)]
pub struct Owner {
    /// Workload or Deliverable.
    pub family: Family,
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: ObjectName,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`; 0 when absent.
    pub generation: i64,
    /// `metadata.labels`.
    pub labels: BTreeMap<String, String>,
    /// `spec.serviceAccountName`, unless empty.
    pub service_account_name: Option<String>,
    /// The owners that led to this one, the first one first. Whoever knows those may find more than it says of itself.
    pub stamped_for: Vec<String>,
    pub(crate) params: Vec<OwnerParam>,
    pub(crate) status: OwnerStatus,
    object: Arc<Value>,
    views: OnceLock<Views>,
}

/// An object that cannot be an owner; the API server holds no such object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnerError {
    /// A field every stored object has is not there.
    #[error("object has no {field}")]
    Missing {
        /// Path of the field.
        field: &'static str,
    },
    /// A field does not have the type the schema asks for.
    #[error("{field} cannot be read: {cause}")]
    Shape {
        /// Path of the field.
        field: &'static str,
        /// What does not fit.
        cause: String,
    },
    /// A name is none.
    #[error("{field}: {cause}")]
    Name {
        /// Path of the field.
        field: &'static str,
        /// What is wrong with it.
        cause: NameError,
    },
}

impl Owner {
    /// Reads an owner.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use realizer::{Family, Owner};
    ///
    /// let object = serde_json::json!({
    ///     "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
    ///     "metadata": {"namespace": "dev", "name": "app", "uid": "u-1", "generation": 3},
    ///     "spec": {"serviceAccountName": "builder"},
    /// });
    /// let owner = Owner::parse(Family::SupplyChain, Arc::new(object))?;
    /// assert_eq!((owner.name.as_str(), owner.generation), ("app", 3));
    /// # Ok::<(), realizer::OwnerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OwnerError`] when the object is not one an API server would hold. A status that cannot be read is no error:
    /// it counts as empty and is written anew.
    pub fn parse(family: Family, object: Arc<Value>) -> Result<Self, OwnerError> {
        let head = Head::of(&object)?;
        Ok(Self {
            family,
            namespace: head.namespace,
            name: head.name,
            uid: head.uid,
            generation: head.generation,
            labels: optional(&object, "/metadata/labels", "metadata.labels")?,
            service_account_name: text(&object, "/spec/serviceAccountName")
                .filter(|name| !name.is_empty()),
            params: optional(&object, "/spec/params", "spec.params")?,
            stamped_for: lineage::stamped_for(&object),
            status: OwnerStatus::read(family, object.get("status")),
            views: OnceLock::new(),
            object,
        })
    }

    /// The object as the API server holds it.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Whether its status names Artifacts, or tells of outputs that an Artifact could hold and it does not.
    pub fn has_artifacts(&self) -> bool {
        let mut entries = self.status.resources.iter();
        let is_elsewhere = |output: &OutputStatus| {
            output.provenance.is_some() && output.value.is_none() && output.preview != REDACTED
        };
        entries.any(|entry| !entry.artifacts.is_empty() || entry.outputs.iter().any(is_elsewhere))
    }

    /// Names of the Artifacts that hold the last good outputs of steps, where status does not.
    pub fn artifacts_to_read(&self) -> impl Iterator<Item = &str> {
        let entries = self.status.resources.iter();
        let kept = entries.filter_map(|entry| kept_in(&entry.artifacts, &entry.outputs));
        kept.map(|kept| kept.name.as_str())
    }

    /// The objects `status.resources[].stampedRef` and `status.pendingRemovals[]` name, without repetition.
    pub fn previous_refs(&self) -> Vec<ObjectRef> {
        let mut refs: Vec<ObjectRef> = Vec::new();
        for object in self
            .status
            .stamped_refs()
            .map(|(_, object)| object)
            .chain(self.status.pending_refs())
        {
            if !refs.contains(&object) {
                refs.push(object);
            }
        }
        refs
    }

    /// Whether it is being deleted. Nothing should be realized for it any more: what is stamped now would be stamped
    /// against the garbage collector, for ever in a foreground deletion.
    pub fn is_terminating(&self) -> bool {
        is_terminating(&self.object)
    }

    /// Status of condition `Ready` in the present status; `Unknown` when there is none.
    pub fn status_ready(&self) -> ConditionStatus {
        let mut conditions = self.status.conditions.iter();
        let ready = conditions.find(|condition| condition.is(ConditionType::Ready));
        ready.map_or(ConditionStatus::Unknown, |ready| ready.status)
    }

    pub(crate) fn identity(&self) -> Identity<'_> {
        Identity {
            kind: self.family.owner_kind(),
            namespace: &self.namespace,
            name: &self.name,
            uid: &self.uid,
        }
    }

    /// How templates see it; built on first use.
    pub(crate) fn views(&self) -> &Views {
        self.views
            .get_or_init(|| Views::of_owner(self.family, &self.object))
    }
}

/// Whose object it is: what its owner reference says, and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity<'o> {
    pub(crate) kind: &'static str,
    pub(crate) namespace: &'o NamespaceName,
    pub(crate) name: &'o ObjectName,
    pub(crate) uid: &'o str,
}

impl Identity<'_> {
    pub(crate) fn reference(&self) -> Value {
        json!({
            "apiVersion": api_types::API_VERSION,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}

/// What every stored object has.
pub(crate) struct Head {
    pub(crate) namespace: NamespaceName,
    pub(crate) name: ObjectName,
    pub(crate) uid: String,
    pub(crate) generation: i64,
}

impl Head {
    pub(crate) fn of(object: &Value) -> Result<Self, OwnerError> {
        let required = |pointer: &str, field| {
            text(object, pointer)
                .filter(|text| !text.is_empty())
                .ok_or(OwnerError::Missing { field })
        };
        Ok(Self {
            namespace: name(
                "metadata.namespace",
                required("/metadata/namespace", "metadata.namespace")?,
            )?,
            name: name(
                "metadata.name",
                required("/metadata/name", "metadata.name")?,
            )?,
            uid: required("/metadata/uid", "metadata.uid")?,
            generation: object["metadata"]["generation"].as_i64().unwrap_or(0),
        })
    }
}

fn name<N: TryFrom<String, Error = NameError>>(
    field: &'static str,
    text: String,
) -> Result<N, OwnerError> {
    N::try_from(text).map_err(|cause| OwnerError::Name { field, cause })
}

/// Whether an object is being deleted.
pub(crate) fn is_terminating(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

impl Matched for Owner {
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

impl Fields for Owner {
    fn read(&self, path: &FieldPath) -> Result<Cow<'_, Value>, PathProblem> {
        let views = self.views();
        Ok(views.settled(path.read(&views.typed)?, || path.read(&views.json)))
    }
}

pub(crate) fn text(object: &Value, pointer: &str) -> Option<String> {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .map(str::to_owned)
}

pub(crate) fn optional<'o, T: Deserialize<'o> + Default>(
    object: &'o Value,
    pointer: &str,
    field: &'static str,
) -> Result<T, OwnerError> {
    match object.pointer(pointer) {
        None | Some(Value::Null) => Ok(T::default()),
        Some(value) => T::deserialize(value).map_err(|error| OwnerError::Shape {
            field,
            cause: error.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests;
