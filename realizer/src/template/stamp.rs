//! From a rendering to an object that can be submitted
//! (docs/behaviour/stamping.md#namespace-and-owner).

use std::collections::BTreeMap;

use api_types::labels;
use api_types::names::{LabelValue, MOST_LABEL_CHARS, NameError, ResourceName};
use serde_json::{Map, Value, json};

use crate::owner::Identity;
use crate::{Blueprint, Labels, Lifecycle, ObjectRef, Owner, Template};

/// The labels of a stamped object as they are wanted: values come from names, and not every name can be one. Templates see
/// them, and render before anybody is told.
pub(crate) type WantedLabels = BTreeMap<&'static str, String>;

/// Why a rendering is no object to submit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StampError {
    #[error("rendered object is not an object with a kind: found {found}")]
    NoKind { found: &'static str },
    #[error("{field} of the rendered object is not an object")]
    Shape { field: &'static str },
    #[error("cannot set namespace in resource template")]
    Namespace,
}

/// Why an object would be refused by the API server, known without asking it. The texts are upstream's inner errors, with the
/// API server's own words where it is the API server that upstream asks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsubmittable {
    #[error(
        "failed to get unstructured [{namespace}/] from api server: resource name may not be empty"
    )]
    MutableWithoutName { namespace: String },
    #[error(
        "create: {kind} \"\" is invalid: metadata.name: Required value: name or generateName is required"
    )]
    ImmutableWithoutName { kind: String },
    #[error(
        "failed to get unstructured [{object}] from api server: Object 'apiVersion' is missing"
    )]
    NoApiVersion { object: String },
    #[error(
        "label [{key}] would have value [{value}], which is longer than the {MOST_LABEL_CHARS} characters that \
         Kubernetes allows; give {subject} a shorter name"
    )]
    LabelTooLong {
        key: &'static str,
        value: String,
        subject: &'static str,
    },
    #[error(
        "label [{key}] would have value [{}], which {}; rename {subject}", cause.value, cause.rule
    )]
    LabelNotValid {
        key: &'static str,
        cause: NameError,
        subject: &'static str,
    },
}

/// The labels of an object stamped by this step (docs/behaviour/stamping.md#labels).
///
/// `cluster-template-name` is the resolved name; upstream leaves it empty when the step has options.
pub(crate) fn step_labels(
    owner: &Owner,
    blueprint: &Blueprint,
    step: &ResourceName,
    template: &Template,
) -> WantedLabels {
    let family = owner.family;
    [
        (family.owner_name_label(), owner.name.as_str()),
        (family.owner_namespace_label(), owner.namespace.as_str()),
        (family.blueprint_name_label(), blueprint.name.as_str()),
        (labels::RESOURCE_NAME, step.as_str()),
        (labels::TEMPLATE_KIND, template.kind.as_str()),
        (labels::CLUSTER_TEMPLATE_NAME, template.name.as_str()),
        (labels::TEMPLATE_LIFECYCLE, template.lifecycle.as_str()),
    ]
    .into_iter()
    .map(|(key, value)| (key, value.to_owned()))
    .collect()
}

/// Puts namespace, owner reference and labels on a rendering.
pub(crate) fn decorate(
    rendering: Value,
    owner: Identity<'_>,
    labels: &WantedLabels,
) -> Result<Value, StampError> {
    let mut object = match rendering {
        Value::Object(object) => object,
        other @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)) => {
            return Err(StampError::NoKind {
                found: type_word(&other),
            });
        }
    };
    if object
        .get("kind")
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return Err(StampError::NoKind {
            found: "an object without kind",
        });
    }
    if object.get("metadata").is_some_and(Value::is_null) {
        // Go sets nothing in a null that is written down: there is no namespace either in what is said about the missing name.
        return Ok(Value::Object(object));
    }
    let metadata = object_at(&mut object, "metadata", "metadata")?;
    match metadata.get("namespace") {
        None | Some(Value::Null) => {}
        Some(Value::String(namespace))
            if namespace.is_empty() || *owner.namespace == **namespace => {}
        Some(_) => return Err(StampError::Namespace),
    }
    metadata.insert("namespace".to_owned(), json!(owner.namespace));
    metadata.insert("ownerReferences".to_owned(), json!([owner.reference()]));
    let merged = object_at(metadata, "labels", "metadata.labels")?;
    for (key, value) in labels {
        merged.insert((*key).to_owned(), json!(value));
    }
    Ok(Value::Object(object))
}

/// A decorated object without what [`decorate`] puts on it again.
pub(crate) fn undecorated(object: &Value, labels: &WantedLabels) -> Value {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
        metadata.remove("ownerReferences");
        if let Some(present) = metadata.get_mut("labels").and_then(Value::as_object_mut) {
            present.retain(|key, _| !labels.contains_key(key.as_str()));
        }
    }
    object
}

/// The object in a field; an absent or null one is created.
fn object_at<'o>(
    parent: &'o mut Map<String, Value>,
    key: &str,
    field: &'static str,
) -> Result<&'o mut Map<String, Value>, StampError> {
    let value = parent.entry(key).or_insert(Value::Null);
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().ok_or(StampError::Shape { field })
}

fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Whether the API server could take the decorated object at all; if so, its labels, checked.
pub(crate) fn check_submittable(
    object: &Value,
    lifecycle: Lifecycle,
    labels: &WantedLabels,
) -> Result<Labels, Unsubmittable> {
    let has_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    let metadata = &object["metadata"];
    if !has_text(&object["apiVersion"]) {
        return Err(Unsubmittable::NoApiVersion {
            object: display_name(object),
        });
    }
    let has_name = has_text(&metadata["name"]);
    if lifecycle.is_immutable() {
        if !has_name && !has_text(&metadata["generateName"]) {
            return Err(Unsubmittable::ImmutableWithoutName {
                kind: qualified_kind(object),
            });
        }
    } else if !has_name {
        return Err(Unsubmittable::MutableWithoutName {
            namespace: namespace(object).to_owned(),
        });
    }
    checked(labels)
}

/// The labels, if each value can be one.
pub(crate) fn checked(labels: &WantedLabels) -> Result<Labels, Unsubmittable> {
    labels
        .iter()
        .map(|(&key, value)| match LabelValue::try_from(value.as_str()) {
            Ok(value) => Ok((key, value)),
            Err(cause) => Err(not_a_label(key, cause)),
        })
        .collect()
}

fn not_a_label(key: &'static str, cause: NameError) -> Unsubmittable {
    let subject = label_subject(key);
    if cause.value.len() > MOST_LABEL_CHARS {
        return Unsubmittable::LabelTooLong {
            key,
            value: cause.value,
            subject,
        };
    }
    Unsubmittable::LabelNotValid {
        key,
        cause,
        subject,
    }
}

fn label_subject(key: &str) -> &'static str {
    match key {
        labels::RESOURCE_NAME => "the resource of the blueprint",
        labels::CLUSTER_TEMPLATE_NAME | labels::RUN_TEMPLATE_NAME => "the template",
        labels::SUPPLY_CHAIN_NAME | labels::DELIVERY_NAME => "the blueprint",
        labels::WORKLOAD_NAME => "the workload",
        labels::DELIVERABLE_NAME => "the deliverable",
        labels::RUNNABLE_NAME => "the runnable",
        _ => "the namespace",
    }
}

/// The object that a rendering is written to; `None` when its name is generated.
pub(crate) fn reference(object: &Value) -> Option<ObjectRef> {
    let name = object["metadata"]["name"].as_str();
    Some(ObjectRef {
        api_version: object["apiVersion"].as_str()?.to_owned(),
        kind: object["kind"].as_str()?.to_owned(),
        namespace: namespace(object).to_owned(),
        name: name.filter(|name| !name.is_empty())?.to_owned(),
        qualified_resource: None,
        uid: None,
    })
}

/// `<ns>/<name>`, the name empty for objects whose name is generated.
pub(crate) fn display_name(object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{}/{name}", namespace(object))
}

/// `<Kind>[.<group>]`, as the API server names a kind.
fn qualified_kind(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or_default();
    let api_version = object["apiVersion"].as_str();
    match api_version.and_then(|it| it.split_once('/')) {
        Some((group, _version)) => format!("{kind}.{group}"),
        None => kind.to_owned(),
    }
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
