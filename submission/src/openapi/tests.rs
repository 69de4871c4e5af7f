use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// The shapes that real documents have, small.
fn document() -> Value {
    json!({"openapi": "3.0.0", "components": {"schemas": {
        "run.carto.v1.App": {
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "test.run", "version": "v1", "kind": "App"}],
            "properties": {
                "apiVersion": {"type": "string"}, "kind": {"type": "string"},
                "metadata": {"allOf": [{"$ref": "#/components/schemas/ObjectMeta"}], "default": {}},
                "spec": {"type": "object", "properties": {
                    "replicas": {"type": "integer", "default": 1},
                    "env": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                            "items": {"allOf": [{"$ref": "#/components/schemas/EnvVar"}], "default": {}}},
                    "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"],
                              "items": {"type": "object", "properties": {
                                  "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}}},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "args": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}},
                    "labels": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/EnvVar"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "partly": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
                        "known": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                    "maybe": {"type": "string", "nullable": true},
                    "maybes": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
                    "limit": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "schema": {"$ref": "#/components/schemas/Recursive"},
                }},
            },
        },
        "ObjectMeta": {"type": "object", "properties": {
            "name": {"type": "string"}, "labels": {"type": "object", "additionalProperties": {"type": "string", "default": ""}}}},
        "EnvVar": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}}},
        "Recursive": {"type": "object", "properties": {
            "title": {"type": "string"}, "not": {"$ref": "#/components/schemas/Recursive"},
            "all": {"type": "array", "items": {"$ref": "#/components/schemas/Recursive"}}}},
        "Shared": {"x-kubernetes-group-version-kind": [
            {"group": "test.run", "version": "v1", "kind": "App"}, {"group": "", "version": "v1", "kind": "DeleteOptions"}]},
    }}})
}

fn schema() -> KindSchema {
    KindSchema::compile(document().to_string().as_bytes(), "test.run", "v1", "App")
        .unwrap()
        .unwrap()
}

fn check(spec: &Value, expected: &Value, changed: &[&str]) {
    let mut object = json!({"apiVersion": "test.run/v1", "kind": "App", "metadata": {"name": "a"}, "spec": spec});
    let paths = conform(&mut object, &schema());
    assert_eq!(&object["spec"], expected);
    assert_eq!(paths, changed);
    assert_eq!(
        conform(&mut object, &schema()),
        Vec::<String>::new(),
        "what fits is left alone"
    );
}

#[test]
fn an_object_that_fits_is_left_alone() {
    let spec = json!({"replicas": 2, "env": [{"name": "A", "value": "1"}], "limit": "50%", "free": {"x": {"y": [1, 1]}}, "args": ["a", "a"]});
    check(&spec, &spec, &[]);
}

#[test]
fn undeclared_fields_are_dropped_at_every_depth() {
    check(
        &json!({"bogus": 1, "env": [{"name": "A", "extra": true}], "labels": {"k": {"value": "1", "no": 2}}}),
        &json!({"env": [{"name": "A"}], "labels": {"k": {"value": "1"}}}),
        &["spec.bogus", "spec.env[0].extra", "spec.labels.k.no"],
    );
}

#[test]
fn undeclared_metadata_is_dropped_and_labels_are_kept() {
    let mut object =
        json!({"metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}, "bogus": 1}});
    assert_eq!(conform(&mut object, &schema()), ["metadata.bogus"]);
    assert_eq!(object["metadata"]["labels"]["app.kubernetes.io/name"], "x");
}

#[test]
fn a_repeated_key_keeps_the_last_value_in_the_first_place() {
    check(
        &json!({"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}),
        &json!({"env": [{"name": "A", "value": "3"}, {"name": "B", "value": "2"}]}),
        &["spec.env[name=A]"],
    );
}

#[test]
fn an_absent_key_takes_its_default_when_items_are_compared() {
    check(
        &json!({"ports": [{"port": 80}, {"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP", "name": "web"}]}),
        &json!({"ports": [{"port": 80, "protocol": "TCP", "name": "web"}, {"port": 80, "protocol": "UDP"}]}),
        &["spec.ports[port=80,protocol=TCP]"],
    );
}

#[test]
fn nothing_of_the_item_that_comes_first_is_left() {
    check(
        &json!({"ports": [{"port": 80, "name": "web"}, {"port": 81}, {"port": 80}]}),
        &json!({"ports": [{"port": 80}, {"port": 81}]}),
        &["spec.ports[port=80,protocol=TCP]"],
    );
}

#[test]
fn items_without_their_key_are_not_merged() {
    let spec = json!({"env": [{"value": "1"}, {"value": "2"}, {"name": null}, {"name": null}]});
    check(&spec, &spec, &[]);
}

#[test]
fn a_number_and_the_same_text_are_different_keys() {
    let spec = json!({"tags": ["1", 1, "a"]});
    check(&spec, &spec, &[]);
}

#[test]
fn repeated_values_of_a_set_are_merged_and_atomic_lists_are_not_touched() {
    check(
        &json!({"tags": ["a", "b", "a"], "args": ["a", "b", "a"]}),
        &json!({"tags": ["a", "b"], "args": ["a", "b", "a"]}),
        &["spec.tags[=a]"],
    );
}

#[test]
fn fields_of_an_open_object_are_kept_and_its_declared_ones_conformed() {
    check(
        &json!({"partly": {"other": {"x": 1}, "known": {"a": "1", "b": 2}}}),
        &json!({"partly": {"other": {"x": 1}, "known": {"a": "1"}}}),
        &["spec.partly.known.b"],
    );
}

#[test]
fn a_schema_that_contains_itself_is_followed_as_deep_as_the_object_goes() {
    check(
        &json!({"schema": {"not": {"all": [{"title": "t", "x": 1}]}}}),
        &json!({"schema": {"not": {"all": [{"title": "t"}]}}}),
        &["spec.schema.not.all[0].x"],
    );
}

#[test]
fn a_value_of_the_wrong_type_is_left_for_the_server_to_refuse() {
    let spec = json!({"env": "text", "replicas": {"a": 1}, "labels": [1], "partly": null});
    check(&spec, &spec, &[]);
}

fn nulls_left_out(spec: &Value, schema: Option<&KindSchema>) -> Value {
    let mut object = json!({"metadata": {"name": "a", "labels": {"a": null}}, "spec": spec});
    assert!(has_nulls(&object));
    leave_out_nulls(&mut object, schema);
    assert_eq!(object["metadata"], json!({"name": "a", "labels": {}}));
    object["spec"].take()
}

#[test]
fn nulls_are_left_out_where_the_kind_declares_the_place_and_does_not_call_it_nullable() {
    let schema = schema();
    for (spec, expected) in [
        (
            json!({"replicas": null, "env": null, "limit": null, "args": null, "schema": null, "free": null}),
            json!({}),
        ),
        (
            json!({"env": [{"name": "A", "value": null}], "ports": [{"port": 80, "name": null}]}),
            json!({"env": [{"name": "A"}], "ports": [{"port": 80}]}),
        ),
        (
            json!({"labels": {"a": null, "b": {"value": null}}, "schema": {"not": {"title": null}}}),
            json!({"labels": {"b": {}}, "schema": {"not": {}}}),
        ),
        (
            json!({"env": "text", "labels": [{"a": null}]}),
            json!({"env": "text", "labels": [{"a": null}]}),
        ),
    ] {
        assert_eq!(nulls_left_out(&spec, Some(&schema)), expected);
    }
    assert_eq!(nulls_left_out(&Value::Null, Some(&schema)), Value::Null);
}

#[test]
fn nulls_stay_where_they_are_values() {
    let spec = json!({
        "maybe": null, "maybes": {"a": null}, "free": {"a": null, "b": [{"c": null}]},
        "partly": {"other": null, "more": {"a": null}}, "args": [null], "undeclared": null,
    });
    assert_eq!(nulls_left_out(&spec, Some(&schema())), spec);
}

#[test]
fn without_a_schema_all_nulls_but_those_in_lists_are_left_out() {
    assert_eq!(
        nulls_left_out(
            &json!({"maybe": null, "a": {"b": null, "c": [null, {"d": null, "e": 1}]}}),
            None
        ),
        json!({"a": {"c": [null, {"e": 1}]}})
    );
    assert!(!has_nulls(&json!({"a": [null, {"b": [null]}], "c": 1})));
}

#[test]
fn a_kind_that_is_not_in_the_document_has_no_schema() {
    let text = document().to_string();
    assert!(
        KindSchema::compile(text.as_bytes(), "test.run", "v2", "App")
            .unwrap()
            .is_none()
    );
    assert!(KindSchema::compile(b"<html>", "test.run", "v1", "App").is_err());
}

#[test]
fn only_the_refusal_for_fields_that_do_not_fit_is_recognised() {
    let status = |code: u16, message: &str| Status {
        code,
        message: message.into(),
        ..Status::default()
    };
    assert!(is_typed_patch_failure(&status(
        500,
        "failed to create typed patch object (ns/a; test.run/v1, Kind=App): .spec.x: field not declared in schema"
    )));
    assert!(!is_typed_patch_failure(&status(
        500,
        "etcdserver: request timed out"
    )));
    assert!(!is_typed_patch_failure(&status(
        403,
        "failed to create typed patch object: denied by a webhook that quotes it"
    )));
}

fn anything() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "name", "value", "env", "ports", "port", "protocol", "spec", "tags", "schema", "not",
        "all", "labels", "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[a-c]?".prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5).prop_map(|entries| Value::Object(
                entries
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn conforming_twice_is_conforming_once(mut object in anything()) {
        let schema = schema();
        conform(&mut object, &schema);
        let once = object.clone();
        prop_assert_eq!(conform(&mut object, &schema), Vec::<String>::new());
        prop_assert_eq!(object, once);
    }

    #[test]
    fn without_a_schema_no_null_is_left_and_by_one_nothing_else_goes(object in anything()) {
        let (mut all, mut declared) = (object.clone(), object);
        leave_out_nulls(&mut declared, Some(&schema()));
        leave_out_nulls(&mut all, None);
        prop_assert!(!has_nulls(&all));
        leave_out_nulls(&mut declared, None);
        prop_assert_eq!(declared, all);
    }

    #[test]
    fn no_document_makes_it_panic(document in anything(), mut object in anything()) {
        let text = json!({"components": {"schemas": {"a": document, "b": {
            "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "A"}],
            "properties": {"spec": document}}}}}).to_string();
        if let Ok(Some(schema)) = KindSchema::compile(text.as_bytes(), "", "v1", "A") {
            leave_out_nulls(&mut object, Some(&schema));
            conform(&mut object, &schema);
        }
    }
}
