//! That `docs/conventions-webhook-openapi.yaml` describes the types.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]

use std::collections::BTreeSet;

use convention_webhook_sdk::protocol::{
    API_VERSION, Bom, ImageConfig, KIND, PodConventionContext, PodTemplate,
};
use convention_webhook_sdk::{Applied, ConventionError, Images, Template, answer};
use serde_json::{Value, json};

fn document() -> Value {
    let folder = env!("CARGO_MANIFEST_DIR");
    let file = format!("{folder}/../docs/conventions-webhook-openapi.yaml");
    serde_saphyr::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// A request in which nothing is left out.
fn request() -> PodConventionContext {
    let template = json!({
        "metadata": {"name": "a", "generateName": "a-", "namespace": "b", "labels": {"a": "b"}, "annotations": {"a": "b"}},
        "spec": {"containers": [{"name": "web"}]},
    });
    let template: PodTemplate = serde_json::from_value(template).unwrap();
    let bom = Bom {
        name: "a".to_owned(),
        raw: b"{}".to_vec(),
    };
    let image = ImageConfig {
        image: "web".to_owned(),
        boms: vec![bom],
        config: json!({}),
    };
    PodConventionContext::request("a-b".to_owned(), template, vec![image])
}

/// The schema that a schema refers to, by itself or as the only one of several.
fn resolved<'d>(document: &'d Value, schema: &'d Value) -> &'d Value {
    let reference = schema
        .get("$ref")
        .or_else(|| schema.get("allOf")?[0].get("$ref"));
    match reference.and_then(Value::as_str) {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// Where a value is not what its schema says, in types, names and what is required.
fn violations(document: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    if value.is_null() && schema["nullable"] == true {
        return Vec::new();
    }
    let schema = resolved(document, schema);
    let mut found = Vec::new();
    let is_type = match schema["type"].as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        other => panic!("{path}: type {other}"),
    };
    if !is_type {
        return vec![format!("{path} is {value}")];
    }
    if schema["enum"]
        .as_array()
        .is_some_and(|known| !known.contains(value))
    {
        found.push(format!("{path} is {value}"));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required.filter(|key| value.get(key.as_str().unwrap()).is_none());
    found.extend(missing.map(|key| format!("{path} has no {key}")));
    for entry in value.as_array().into_iter().flatten() {
        found.extend(violations(
            document,
            &schema["items"],
            entry,
            &format!("{path}[]"),
        ));
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        let below = format!("{path}.{key}");
        match (&schema["properties"][key], &schema["additionalProperties"]) {
            (Value::Null, Value::Bool(true)) => {}
            (Value::Null, Value::Null) if schema["properties"].is_null() => {}
            (Value::Null, Value::Null) => found.push(format!("{below} is not described")),
            (Value::Null, schema) | (schema, _) => {
                found.extend(violations(document, schema, value, &below));
            }
        }
    }
    found
}

/// Every property that a schema describes and the value does not have.
fn unused(document: &Value, schema: &Value, value: &Value, path: &str) -> BTreeSet<String> {
    let schema = resolved(document, schema);
    let mut found = BTreeSet::new();
    for (key, schema) in schema["properties"].as_object().into_iter().flatten() {
        let below = format!("{path}.{key}");
        match value.get(key) {
            None => drop(found.insert(below)),
            Some(value) => found.extend(unused(document, schema, value, &below)),
        }
    }
    if let Some(first) = value.as_array().and_then(|entries| entries.first()) {
        found.extend(unused(
            document,
            &schema["items"],
            first,
            &format!("{path}[]"),
        ));
    }
    found
}

fn schema<'d>(document: &'d Value, name: &str) -> &'d Value {
    &document["components"]["schemas"][name]
}

#[test]
fn a_request_is_what_the_document_says_and_the_document_says_no_more() {
    let document = document();
    let context = schema(&document, "PodConventionContext");
    let request = serde_json::to_value(request()).unwrap();
    assert_eq!(
        violations(&document, context, &request, ""),
        Vec::<String>::new()
    );
    let unused = unused(&document, context, &request, "");
    let of_status = |path: &String| path.starts_with(".status.template.metadata.");
    assert!(unused.iter().all(of_status), "{unused:?}");
    assert_eq!(
        context["properties"]["apiVersion"]["enum"],
        json!([API_VERSION])
    );
    assert_eq!(context["properties"]["kind"]["enum"], json!([KIND]));
}

async fn does(template: &mut Template, images: &Images) -> Result<Applied, ConventionError> {
    if template.labels().is_empty() {
        return Err(ConventionError::new("no label"));
    }
    Ok(images.iter().map(|image| image.name().to_owned()).collect())
}

#[tokio::test]
async fn every_answer_is_what_the_document_says() {
    let document = document();
    let request = serde_json::to_vec(&request()).unwrap();
    let responses = &document["paths"]["/webhook"]["post"]["responses"];
    for body in [request.as_slice(), b"{}", b"<html>"] {
        let answered = answer(&does, body).await;
        let content = &responses[answered.status.to_string()]["content"];
        let kind = answered.content_type.split(';').next().unwrap();
        let schema = &content[kind]["schema"];
        assert!(
            schema.is_object(),
            "{} of {} is not described",
            kind,
            answered.status
        );
        let body = serde_json::from_slice(&answered.body)
            .unwrap_or_else(|_| Value::String(String::from_utf8(answered.body.clone()).unwrap()));
        assert_eq!(
            violations(&document, schema, &body, ""),
            Vec::<String>::new()
        );
    }
}

#[test]
fn what_is_not_described_is_noticed() {
    let document = document();
    let context = schema(&document, "PodConventionContext");
    let planted = json!({"metadata": {"name": 5}, "more": 1, "kind": "Pod"});
    assert_eq!(
        violations(&document, context, &planted, ""),
        [
            " has no \"spec\"",
            ".kind is \"Pod\"",
            ".metadata.name is 5",
            ".more is not described",
        ]
    );
}
