//! Objects made from a schema: one that gives every field, and for each rule one that breaks it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::{Map, Value, json};

/// The schema of the one version of a definition.
pub(crate) fn schema_of(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    crd.spec.versions[0]
        .schema
        .as_ref()
        .and_then(|schema| schema.open_api_v3_schema.as_ref())
        .unwrap()
}

/// A value that gives every field of the schema, lists and maps with as many items as needed.
pub(crate) fn full(schema: &JSONSchemaProps) -> Value {
    if let Some(texts) = &schema.enum_ {
        return texts[0].0.clone();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return json!("250m");
    }
    match schema.type_.as_deref() {
        None if schema.properties.is_some() => full_condition(schema),
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
        Some("string") if is_duration(schema) => json!("1h30m"),
        Some("string") => json!("text"),
        other => panic!("no sample for {other:?}"),
    }
}

/// The pattern of durations allows no letter that is not a unit.
fn is_duration(schema: &JSONSchemaProps) -> bool {
    schema
        .pattern
        .as_deref()
        .is_some_and(|pattern| pattern.contains("(ms|s|m|h)"))
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

/// One that has others in it, which the schema does not describe.
fn full_condition(schema: &JSONSchemaProps) -> Value {
    let mut condition = full_object(schema);
    let leaf = condition.clone();
    condition["allOf"] = json!([leaf]);
    condition["anyOf"] = json!([leaf]);
    condition["not"] = leaf;
    condition
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

/// A value that breaks one rule of a schema, and which.
pub(crate) struct Violation {
    pub(crate) rule: String,
    pub(crate) value: Value,
}

/// For each rule of the schema a value that breaks only this rule.
pub(crate) fn violations(schema: &JSONSchemaProps) -> Vec<Violation> {
    let mut found = own_violations(schema);
    let sample = full(schema);
    for (name, field) in schema.properties.iter().flatten() {
        found.extend(violations(field).into_iter().map(|inner| {
            let mut value = sample.clone();
            value[name] = inner.value;
            Violation {
                rule: format!(".{name}{}", inner.rule),
                value,
            }
        }));
    }
    if let Some(inner) = value_schema(schema) {
        found.extend(violations(inner).into_iter().map(|inner| Violation {
            rule: format!("{{}}{}", inner.rule),
            value: json!({"key": inner.value}),
        }));
    }
    if schema.items.is_some() {
        found.extend(violations(item_schema(schema)).into_iter().map(|inner| {
            let mut value = sample.clone();
            value[0] = inner.value;
            Violation {
                rule: format!("[]{}", inner.rule),
                value,
            }
        }));
    }
    found
}

/// A number as users write it: `21.0` might be refused for its point.
fn whole(number: f64) -> Value {
    json!(format!("{number:.0}").parse::<i64>().unwrap())
}

/// The rules about the value itself, not about what is in it.
fn own_violations(schema: &JSONSchemaProps) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut break_rule = |rule: &str, value: Value| {
        found.push(Violation {
            rule: format!(" {rule}"),
            value,
        });
    };
    if schema.x_kubernetes_int_or_string == Some(true) {
        break_rule("int or string", json!(true));
        break_rule("quantity pattern", json!("much"));
        return found;
    }
    match schema.type_.as_deref() {
        None => return found,
        Some("string") => break_rule("type", json!(5)),
        Some(_) => break_rule("type", json!("text")),
    }
    if schema.format.as_deref() == Some("date-time") {
        break_rule("format", json!("yesterday"));
    }
    if schema.enum_.is_some() {
        break_rule("enum", json!("other"));
    }
    if schema.min_length.is_some() {
        break_rule("minLength", json!(""));
    }
    if let Some(length) = schema.max_length {
        break_rule(
            "maxLength",
            json!("x".repeat(usize::try_from(length).unwrap() + 1)),
        );
    }
    if schema.pattern.is_some() {
        break_rule("pattern", json!("no, not this!"));
    }
    if let Some(minimum) = schema.minimum {
        break_rule("minimum", whole(minimum - 1.0));
    }
    if let Some(maximum) = schema.maximum {
        break_rule("maximum", whole(maximum + 1.0));
    }
    if let Some(least) = schema.min_items {
        let fewer = usize::try_from(least).unwrap() - 1;
        break_rule(
            "minItems",
            Value::Array(vec![full(item_schema(schema)); fewer]),
        );
    }
    if schema.x_kubernetes_list_map_keys.is_some() {
        break_rule(
            "list map keys",
            Value::Array(vec![full(item_schema(schema)); 2]),
        );
    }
    for name in schema.required.iter().flatten() {
        let mut value = full(schema);
        value.as_object_mut().unwrap().remove(name);
        break_rule(&format!("required {name}"), value);
    }
    found
}

/// Adds a field that no schema has to every object with fixed fields, and says how many were added.
pub(crate) fn add_unknown_fields(schema: &JSONSchemaProps, value: &mut Value) -> usize {
    let mut added = 0;
    match value {
        Value::Object(fields) if schema.x_kubernetes_preserve_unknown_fields != Some(true) => {
            for (name, field) in fields.iter_mut() {
                let inner = schema
                    .properties
                    .as_ref()
                    .and_then(|properties| properties.get(name));
                if let Some(inner) = inner.or_else(|| value_schema(schema)) {
                    added += add_unknown_fields(inner, field);
                }
            }
            if schema.properties.is_some() {
                fields.insert("fieldOfAnotherTime".to_owned(), json!({"a": [1]}));
                added += 1;
            }
        }
        Value::Array(items) if schema.items.is_some() => {
            added += items
                .iter_mut()
                .map(|item| add_unknown_fields(item_schema(schema), item))
                .sum::<usize>();
        }
        _ => {}
    }
    added
}
