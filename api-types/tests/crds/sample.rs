//! Objects made from a schema: one that gives every field, and for each rule one that breaks it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};

/// A value that gives every field of the schema, lists and maps with as many items as needed.
pub(crate) fn full(schema: &JSONSchemaProps) -> Value {
    if let Some(texts) = &schema.enum_ {
        return texts[0].0.clone();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return json!("250m");
    }
    match schema.type_.as_deref() {
        None => json!({"any": [1, null, {"deep": true}]}),
        Some("object") if schema.x_kubernetes_preserve_unknown_fields == Some(true) => {
            json!({"any": {"deep": "x"}})
        }
        Some("object") => full_object(schema),
        Some("array") => {
            let items = usize::try_from(schema.min_items.unwrap_or(1)).unwrap();
            Value::Array(vec![full(item_schema(schema)); items])
        }
        Some("integer") => json!(7),
        Some("boolean") => json!(true),
        Some("string") if schema.format.as_deref() == Some("date-time") => {
            json!("2024-01-02T03:04:05Z")
        }
        Some("string") => json!("text"),
        other => panic!("no sample for {other:?}"),
    }
}

fn full_object(schema: &JSONSchemaProps) -> Value {
    if let Some(value) = value_schema(schema) {
        return json!({"key": full(value)});
    }
    let fields: Map<String, Value> = schema
        .properties
        .iter()
        .flatten()
        .map(|(name, field)| (name.clone(), full(field)))
        .collect();
    Value::Object(fields)
}

fn item_schema(schema: &JSONSchemaProps) -> &JSONSchemaProps {
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => item,
        other => panic!("a list without a schema of its items: {other:?}"),
    }
}

fn value_schema(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(value)) => Some(value),
        _ => None,
    }
}
