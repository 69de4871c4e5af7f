//! Nothing that a user may put into a pod template is lost on its way.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::LazyLock;

use convention_protocol::{PodConventionContext, PodTemplate};
use conventions::answer;
use conventions::chain::Chain;
use k8s_openapi::api::core::v1::PodSpec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Decides what a sample holds.
struct Choices<'b> {
    bytes: std::slice::Iter<'b, u8>,
    unknown: bool,
}

impl Choices<'_> {
    fn next(&mut self) -> usize {
        self.bytes.next().map_or(0, |byte| usize::from(*byte))
    }

    /// Something with a form that the schema allows. When the choices are used up, only what is required is given.
    fn sample(&mut self, schema: &Value) -> Value {
        if schema["x-kubernetes-int-or-string"] == true {
            let of = match schema.get("pattern") {
                Some(_) => [
                    json!("0.5"),
                    json!(2),
                    json!("1500m"),
                    json!("1.0Gi"),
                    json!("1e3"),
                ],
                None => [json!("http"), json!(80), json!("25%"), json!(0), json!("")],
            };
            return of[self.next() % of.len()].clone();
        }
        match schema["type"].as_str().unwrap_or("any") {
            "string" => json!(format!("text-{}", self.next())),
            "boolean" => json!(self.next().is_multiple_of(2)),
            "integer" => json!(self.next()),
            "array" => self.list(schema),
            "object" => match schema.get("additionalProperties") {
                Some(value) => {
                    let count = self.next() % 3;
                    (0..count)
                        .map(|at| (format!("key-{at}"), self.sample(value)))
                        .collect()
                }
                None => self.object(schema),
            },
            other => panic!("no sample for {other}"),
        }
    }

    fn list(&mut self, schema: &Value) -> Value {
        let keys = schema["x-kubernetes-list-map-keys"].as_array();
        let keys = keys.cloned().unwrap_or_default();
        let count = self.next() % 3;
        let items = (0..count).map(|at| {
            let mut item = self.sample(&schema["items"]);
            // What must differ does.
            for key in keys.iter().filter_map(Value::as_str) {
                let is_number = schema["items"]["properties"][key]["type"] == "integer";
                item[key] = if is_number {
                    json!(at)
                } else {
                    json!(format!("{key}-{at}"))
                };
            }
            if schema["x-kubernetes-list-type"] == "set" {
                item = json!(at);
            }
            item
        });
        items.collect()
    }

    fn object(&mut self, schema: &Value) -> Value {
        let mut fields = Map::new();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            // Kubernetes's own types fill a name in.
            let filled_in = field["default"] == "";
            if filled_in || required.contains(&json!(name)) || self.next() % 4 == 1 {
                fields.insert(name.clone(), self.sample(field));
            }
        }
        if self.unknown && self.next() % 4 == 1 {
            let newer =
                json!({"a": [1, 2.5, "0.5", {"b": {}}], "c": true, "e": [], "n": self.next()});
            fields.insert("fieldOfANewerKubernetes".to_owned(), newer);
        }
        Value::Object(fields)
    }
}

static POD_SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let intent = serde_json::to_value(&conventions::crds()[0]).unwrap();
    let root = &intent["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["properties"]["spec"]["properties"]["template"]["properties"]["spec"].clone()
});

fn pod(bytes: &[u8], unknown: bool) -> Value {
    let bytes = bytes.iter();
    Choices { bytes, unknown }.sample(&POD_SCHEMA)
}

fn template(bytes: &[u8]) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"note": "a\nb"}, "name": "n"},
        "spec": pod(bytes, true),
    })
}

fn choices() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..3000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_template_comes_back_from_a_webhook_as_it_was_sent(bytes in choices()) {
        let given = template(&bytes);
        let template: PodTemplate = serde_json::from_value(given.clone()).unwrap();
        let mut chain = Chain::start(template);
        let sent = serde_json::to_vec(&chain.request("app", "echo", Vec::new())).unwrap();
        let received: PodConventionContext = serde_json::from_slice(&sent).unwrap();
        let answered = serde_json::to_vec(&received.answer(received.spec.template.clone(), Vec::new())).unwrap();
        chain.record("echo", answer::read(&answered).unwrap()).unwrap();
        prop_assert_eq!(serde_json::to_value(chain.finish().unwrap()).unwrap(), given);
    }

    #[test]
    fn what_the_schema_allows_is_what_kubernetes_knows(bytes in choices()) {
        let given = pod(&bytes, false);
        let known: PodSpec = serde_json::from_value(given.clone()).unwrap();
        let mut known = serde_json::to_value(known).unwrap();
        without_metadata_of_claims(&mut known);
        let mut given = given;
        without_metadata_of_claims(&mut given);
        // Kubernetes holds quantities as texts.
        prop_assert_eq!(texts(known), texts(given));
    }

    #[test]
    fn what_go_leaves_of_a_template_is_put_back_but_for_nothing(bytes in choices()) {
        let given = template(&bytes);
        let mut chain = Chain::start(serde_json::from_value(given.clone()).unwrap());
        let mut written = given.clone();
        canonical(&mut written["spec"], &POD_SCHEMA);
        let body = json!({"status": {"template": written}});
        chain.record("go", answer::read(&serde_json::to_vec(&body).unwrap()).unwrap()).unwrap();
        prop_assert_eq!(serde_json::to_value(chain.finish().unwrap()).unwrap(), given);
    }
}

/// The schema takes any metadata there, and a sample has none or unknown ones.
fn without_metadata_of_claims(pod: &mut Value) {
    for volume in pod["volumes"].as_array_mut().into_iter().flatten() {
        if let Some(claim) = volume.pointer_mut("/ephemeral/volumeClaimTemplate") {
            claim.as_object_mut().unwrap().remove("metadata");
        }
    }
}

fn texts(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, texts(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(texts).collect(),
        Value::Number(number) => json!(number.to_string()),
        other => other,
    }
}

/// Writes quantities as a webhook in Go does.
fn canonical(value: &mut Value, schema: &Value) {
    if schema["x-kubernetes-int-or-string"] == true && schema.get("pattern").is_some() {
        for (theirs, ours) in [
            ("500m", json!("0.5")),
            ("2", json!(2)),
            ("1Gi", json!("1.0Gi")),
            ("1k", json!("1e3")),
        ] {
            if *value == ours {
                *value = json!(theirs);
            }
        }
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let below = match schema.get("additionalProperties") {
                    Some(below) => below,
                    None => &schema["properties"][name.as_str()],
                };
                canonical(field, below);
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| canonical(item, &schema["items"])),
        _ => {}
    }
}
