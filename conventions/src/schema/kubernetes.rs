//! Schemas of types that Kubernetes defines, generated from its own definitions.
//!
//! The definitions name fields and their types. In a CRD three things are to be added: the [facets](super::facets), that a
//! quantity is a number or a text of a certain form, and that fields of newer versions are kept: a template is made for
//! clusters whose Kubernetes may know more than this one does.

use k8s_openapi::api::admissionregistration::v1::WebhookClientConfig;
use k8s_openapi::api::core::v1::{LocalObjectReference, PodSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use super::facets::{self, Facet};

/// The form of a quantity, as CRDs everywhere have it.
pub(crate) const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// The PodSpec, without descriptions: with them the definition would be too large for some API servers.
pub(crate) fn pod_spec() -> Value {
    part::<PodSpec>()
}

/// A part of a pod, without descriptions.
pub(crate) fn part<T: JsonSchema>() -> Value {
    let mut schema = of::<T>();
    keep_unknown(&mut schema);
    schema
}

/// A reference by name; the name is empty where it is not given.
pub(super) fn local_object_reference() -> Value {
    of::<LocalObjectReference>()
}

/// A selector by labels.
pub(crate) fn label_selector() -> Value {
    of::<LabelSelector>()
}

/// The address of a webhook.
pub(super) fn webhook_client_config() -> Value {
    of::<WebhookClientConfig>()
}

fn of<T: JsonSchema>() -> Value {
    let mut generator: SchemaGenerator = SchemaSettings::draft07().into_generator();
    let root = generator.subschema_for::<T>().to_value();
    // Without the transformations for validators, which move references about.
    let definitions = generator.take_definitions(false);
    inlined(&root, &definitions)
}

/// A schema with what it refers to in its place, since a CRD has no references.
fn inlined(schema: &Value, definitions: &Map<String, Value>) -> Value {
    let Some(schema) = schema.as_object() else {
        return schema.clone();
    };
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let name = name.rsplit('/').next().unwrap_or(name);
        return named(name, definitions.get(name), definitions);
    }
    let mut own: Map<String, Value> = Map::new();
    for (key, value) in schema {
        let value = match (key.as_str(), value) {
            ("description", _) => continue,
            ("properties", Value::Object(fields)) => fields
                .iter()
                .map(|(name, field)| (name.clone(), inlined(field, definitions)))
                .collect(),
            ("items" | "additionalProperties", value) => inlined(value, definitions),
            (_, value) => value.clone(),
        };
        own.insert(key.clone(), value);
    }
    Value::Object(own)
}

/// A definition with what CRDs say beyond it.
fn named(name: &str, definition: Option<&Value>, definitions: &Map<String, Value>) -> Value {
    let kind = name.rsplit('.').next().unwrap_or(name);
    let number_or_text = json!([{"type": "integer"}, {"type": "string"}]);
    match kind {
        "Quantity" => {
            json!({"anyOf": number_or_text, "pattern": QUANTITY, "x-kubernetes-int-or-string": true})
        }
        "IntOrString" => json!({"anyOf": number_or_text, "x-kubernetes-int-or-string": true}),
        // That of a claim in a template: labels and annotations matter there, and the rest is for the server.
        "ObjectMeta" => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        _ => {
            let mut schema = definition.map_or(Value::Null, |it| inlined(it, definitions));
            for (field, facet) in facets::of(kind) {
                add(&mut schema, field, facet);
            }
            require_nothing_that_is_filled_in(&mut schema);
            schema
        }
    }
}

fn add(schema: &mut Value, field: &str, facet: &Facet) {
    let schema = match field {
        "" => schema,
        field => &mut schema["properties"][field],
    };
    match facet {
        Facet::ListBy(keys) => {
            schema["x-kubernetes-list-type"] = json!("map");
            schema["x-kubernetes-list-map-keys"] = json!(keys);
        }
        Facet::Set => schema["x-kubernetes-list-type"] = json!("set"),
        Facet::Atomic => schema["x-kubernetes-map-type"] = json!("atomic"),
        Facet::Default(text) => schema["default"] = json!(text),
        Facet::DefaultFalse => schema["default"] = json!(false),
    }
}

fn require_nothing_that_is_filled_in(schema: &mut Value) {
    let defaulted = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        !schema["properties"][name]["default"].is_null()
    };
    let required = schema["required"].as_array().into_iter().flatten();
    let required: Vec<Value> = required.filter(|it| !defaulted(it)).cloned().collect();
    let Some(schema) = schema.as_object_mut() else {
        return;
    };
    schema.remove("required");
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
}

/// Nothing is dropped from an object, whatever it holds beside the fields that are known.
fn keep_unknown(schema: &mut Value) {
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.values_mut().for_each(keep_unknown);
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    for below in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(below) {
            keep_unknown(below);
        }
    }
}
