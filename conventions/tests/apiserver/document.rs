//! The schema of the template is that of PodSpecs in the document of the API server.

use http::Request;
use serde_json::{Map, Value, json};
use test_support::shared_control_plane;

/// The definitions of core/v1, as the API server publishes them.
async fn definitions() -> Map<String, Value> {
    let client = shared_control_plane().await.unwrap().client().unwrap();
    let request = Request::get("/openapi/v3/api/v1").body(Vec::new()).unwrap();
    let document: Value = client.request(request).await.unwrap();
    document["components"]["schemas"]
        .as_object()
        .unwrap()
        .clone()
}

/// Two descriptions of the same type, walked side by side.
struct Comparison<'d> {
    definitions: &'d Map<String, Value>,
    differences: Vec<String>,
    compared: usize,
}

impl Comparison<'_> {
    /// The definition that a schema refers to, or the schema itself; and the name.
    fn resolved(&self, schema: &Value) -> (String, Value) {
        let all_of = schema.pointer("/allOf/0/$ref");
        let reference = schema.get("$ref").or(all_of).and_then(Value::as_str);
        let Some(name) = reference.and_then(|it| it.rsplit('/').next()) else {
            return (String::new(), schema.clone());
        };
        (name.to_owned(), self.definitions[name].clone())
    }

    fn compare(&mut self, path: &str, theirs: &Value, ours: &Value) {
        self.compared += 1;
        let (name, definition) = self.resolved(theirs);
        match name.rsplit('.').next().unwrap_or_default() {
            // Metadata of claims is taken as it is.
            "ObjectMeta" => return,
            "Quantity" | "IntOrString" => {
                let is_either = &ours["x-kubernetes-int-or-string"];
                return self.expect(path, "number or text", &json!(true), is_either);
            }
            _ => {}
        }
        for key in ["type", "format"] {
            self.expect(path, key, &definition[key], &ours[key]);
        }
        self.compare_facets(path, theirs, &definition, ours);
        self.compare_fields(path, &definition, ours);
        for below in ["items", "additionalProperties"] {
            if definition.get(below).is_some() || ours.get(below).is_some() {
                self.compare(&format!("{path}.{below}"), &definition[below], &ours[below]);
            }
        }
    }

    /// What stands at the field counts before what stands at its type. A list without a type is written as a whole, and a
    /// default that is nothing says only that the field is never absent in Go.
    fn compare_facets(&mut self, path: &str, theirs: &Value, definition: &Value, ours: &Value) {
        let of = |key: &str| {
            theirs
                .get(key)
                .or_else(|| definition.get(key))
                .cloned()
                .unwrap_or_default()
        };
        let list = of("x-kubernetes-list-type");
        let list = if list == "atomic" { Value::Null } else { list };
        self.expect(path, "list type", &list, &ours["x-kubernetes-list-type"]);
        for key in ["x-kubernetes-list-map-keys", "x-kubernetes-map-type"] {
            self.expect(path, key, &of(key), &ours[key]);
        }
        let default = theirs.get("default").cloned().unwrap_or_default();
        let nothing = [json!(null), json!(""), json!(0), json!({})];
        if !nothing.contains(&default) || !ours["default"].is_null() {
            self.expect(path, "default", &default, &ours["default"]);
        }
    }

    fn compare_fields(&mut self, path: &str, theirs: &Value, ours: &Value) {
        let fields = |schema: &Value| {
            schema["properties"]
                .as_object()
                .cloned()
                .unwrap_or_default()
        };
        let (their_fields, our_fields) = (fields(theirs), fields(ours));
        let names = |fields: &Map<String, Value>| json!(fields.keys().collect::<Vec<_>>());
        self.expect(path, "fields", &names(&their_fields), &names(&our_fields));
        let required = |schema: &Value| {
            let mut names: Vec<Value> = schema["required"].as_array().cloned().unwrap_or_default();
            names.sort_by_key(ToString::to_string);
            json!(names)
        };
        self.expect(path, "required", &required(theirs), &required(ours));
        for (name, field) in &their_fields {
            let ours = our_fields.get(name).unwrap_or(&Value::Null);
            self.compare(&format!("{path}.{name}"), field, ours);
        }
    }

    fn expect(&mut self, path: &str, what: &str, theirs: &Value, ours: &Value) {
        if theirs != ours {
            self.differences
                .push(format!("{path}: {what}: {theirs} there, {ours} here"));
        }
    }
}

fn our_pod_spec() -> Value {
    let intent = serde_json::to_value(&conventions::crds()[0]).unwrap();
    let root = &intent["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["properties"]["spec"]["properties"]["template"]["properties"]["spec"].clone()
}

#[tokio::test]
async fn the_schema_of_a_template_is_that_of_the_api_server() {
    let definitions = definitions().await;
    let mut comparison = Comparison {
        definitions: &definitions,
        differences: Vec::new(),
        compared: 0,
    };
    let theirs = json!({"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"});
    comparison.compare("spec", &theirs, &our_pod_spec());
    assert_eq!(comparison.differences, Vec::<String>::new());
    assert!(
        comparison.compared > 1000,
        "{} were compared",
        comparison.compared
    );

    let mut altered = our_pod_spec();
    altered["properties"]["containers"]["x-kubernetes-list-map-keys"] = json!(["image"]);
    altered["properties"]
        .as_object_mut()
        .unwrap()
        .remove("hostname");
    comparison.compare("spec", &theirs, &altered);
    assert!(
        comparison.differences.len() >= 2,
        "{:?}",
        comparison.differences
    );
}
