//! What is applied of a rendered object, where that is not the rendering to the letter.

use k8s_openapi::ByteString;
use kube_core::Status;
use serde_json::{Map, Value};

use crate::kind::Kind;
use crate::openapi::{KindSchema, leave_out_nulls};

/// What the API server would make of an object in a create, and does not in an apply: nulls that stand for nothing are left out
/// ([`leave_out_nulls`]), and the texts of a Secret are written the way they are stored.
pub fn applicable(object: &Value, kind: &Kind, schema: Option<&KindSchema>) -> Value {
    let mut object = object.clone();
    leave_out_nulls(&mut object, schema);
    as_stored(&mut object, kind);
    object
}

/// Writes the texts of a Secret the way they are stored.
///
/// The API server takes `stringData` as more of `data`. Whoever applies `stringData` owns a field that is never there: a key
/// that the rendering drops stays in `data`, and nobody sees that a value was changed.
fn as_stored(object: &mut Value, kind: &Kind) {
    if !is_secret(kind) {
        return;
    }
    let Some(members) = object.as_object_mut() else {
        return;
    };
    let Some(encoded) = members.get("stringData").and_then(encoded) else {
        return;
    };
    match members.get_mut("data") {
        None => {
            members.insert("data".into(), Value::Object(encoded));
        }
        Some(Value::Object(data)) => data.extend(encoded),
        Some(_) => return,
    }
    members.remove("stringData");
}

fn is_secret(kind: &Kind) -> bool {
    kind.api_version == "v1" && kind.kind == "Secret"
}

/// In base64; nothing if one of them is no text, which the API server is to refuse in its own words.
fn encoded(texts: &Value) -> Option<Map<String, Value>> {
    let texts = texts.as_object()?.iter();
    texts
        .map(|(key, text)| {
            let bytes = ByteString(text.as_str()?.as_bytes().to_vec());
            Some((key.clone(), serde_json::to_value(bytes).ok()?))
        })
        .collect()
}

/// The object without those fields that it has as `{}` and whose type the refusal calls wrong, e.g. `spec.build` or
/// `spec.mounts[a]`: what is no object there can only be a null. `None` if it has none.
pub fn without_empty(object: &Value, refusal: &Status) -> Option<Value> {
    let causes = refusal.details.iter().flat_map(|details| &details.causes);
    let mistyped = causes
        .filter(|cause| cause.reason == "FieldValueTypeInvalid")
        .map(|cause| &*cause.field);
    let mut without = object.clone();
    let mut found = false;
    for field in mistyped {
        let names: Vec<&str> = field
            .split(['.', '[', ']'])
            .filter(|name| !name.is_empty())
            .collect();
        let Some((last, parents)) = names.split_last() else {
            continue;
        };
        let parent = parents
            .iter()
            .try_fold(&mut without, |value, name| match value {
                Value::Object(members) => members.get_mut(*name),
                Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
                _ => None,
            });
        if let Some(Value::Object(members)) = parent
            && members.get(*last).is_some_and(is_empty_map)
        {
            members.remove(*last);
            found = true;
        }
    }
    found.then_some(without)
}

/// Whether a map that was applied as `{}` came to be null.
pub fn has_lost_a_map(applied: &Value, stored: &Value) -> bool {
    match (applied, stored) {
        (Value::Object(members), Value::Null) => members.is_empty(),
        (Value::Object(members), Value::Object(stored)) => members.iter().any(|(key, member)| {
            stored
                .get(key)
                .is_some_and(|stored| has_lost_a_map(member, stored))
        }),
        _ => false,
    }
}

fn is_empty_map(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// The object for a write upon our own; if the one before was bound to a version, this one is to what it came to.
pub fn bound_anew(object: &Value, written: &Value) -> Value {
    let mut object = object.clone();
    if let Some(version) = object.pointer_mut("/metadata/resourceVersion") {
        *version = written["metadata"]["resourceVersion"].clone();
    }
    object
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the tables read better without references"
    )]
    fn check(rendered: Value, applied: Value) {
        let mut object = rendered.clone();
        as_stored(&mut object, &Kind::new("v1", "Secret"));
        assert_eq!(object, applied, "rendered {rendered}");
    }

    #[test]
    fn texts_become_data_and_win_over_it() {
        check(
            json!({"stringData": {"a": "x", "b": ""}}),
            json!({"data": {"a": "eA==", "b": ""}}),
        );
        check(
            json!({"type": "Opaque", "data": {"a": "b2xk", "c": "Yw=="}, "stringData": {"a": "ü\n"}}),
            json!({"type": "Opaque", "data": {"a": "w7wK", "c": "Yw=="}}),
        );
        check(json!({"stringData": {}}), json!({"data": {}}));
    }

    #[test]
    fn what_is_no_text_is_left_to_the_server() {
        for object in [
            json!({"stringData": {"a": "x", "b": 1}}),
            json!({"stringData": {"a": null}}),
            json!({"stringData": ["a"]}),
            json!({"data": "x", "stringData": {"a": "x"}}),
            json!({"data": {"a": "eA=="}}),
            json!("x"),
        ] {
            check(object.clone(), object);
        }
    }

    #[test]
    fn only_a_secret_has_texts_of_this_kind() {
        let custom = json!({"stringData": {"a": "x"}});
        for kind in [
            Kind::new("secrets.example/v1", "Secret"),
            Kind::new("v1", "ConfigMap"),
        ] {
            let mut object = custom.clone();
            as_stored(&mut object, &kind);
            assert_eq!(object, custom);
        }
    }

    #[test]
    fn empty_maps_among_the_refused_fields_are_left_out() {
        let object = json!({"spec": {"build": {}, "full": {"a": 1}, "mounts": {"a": {}, "b": {}}, "list": [{}, {"map": {}}]}});
        let without = |fields: &[&str]| {
            let causes: Vec<Value> = fields
                .iter()
                .map(|field| json!({"reason": "FieldValueTypeInvalid", "field": field}))
                .collect();
            let status = serde_json::from_value(json!({"details": {"causes": causes}}));
            without_empty(&object, &status.unwrap()).map(|object| object["spec"].clone())
        };
        assert_eq!(
            without(&[
                "spec.build",
                "spec.mounts[b]",
                "spec.list[1].map",
                "spec.full"
            ]),
            Some(json!({"full": {"a": 1}, "mounts": {"a": {}}, "list": [{}, {}]}))
        );
        assert_eq!(
            without(&[
                "spec.full",
                "spec.none.at.all",
                "spec.list[7].map",
                "spec.list[0]",
                ""
            ]),
            None
        );
    }

    #[test]
    fn an_empty_map_that_is_refused_as_such_is_left_to_the_server() {
        let too_few = json!({"details": {"causes": [{"reason": "FieldValueInvalid", "field": "spec.build"}]}});
        let object = json!({"spec": {"build": {}}});
        assert_eq!(
            without_empty(&object, &serde_json::from_value(too_few).unwrap()),
            None
        );
        assert_eq!(without_empty(&object, &Status::default()), None);
    }

    #[test]
    fn a_map_that_is_null_in_the_answer_is_lost_and_one_that_is_left_out_is_not() {
        let lost = |applied: Value, stored: Value| {
            has_lost_a_map(&json!({"spec": applied}), &json!({"spec": stored}))
        };
        assert!(lost(json!({"a": {"b": {}}}), json!({"a": {"b": null}})));
        assert!(!lost(json!({"a": {"b": {}}}), json!({"a": {}})));
        assert!(!lost(json!({"a": {"b": {}}}), json!({"a": {"b": {}}})));
        assert!(!lost(
            json!({"a": null, "b": [], "c": {"d": 1}}),
            json!({"a": null, "b": null, "c": null})
        ));
    }

    #[test]
    fn a_write_upon_our_own_is_bound_only_if_the_one_before_was() {
        let written = json!({"metadata": {"resourceVersion": "8"}});
        let bound = json!({"metadata": {"name": "a", "resourceVersion": "7"}});
        assert_eq!(
            bound_anew(&bound, &written)["metadata"]["resourceVersion"],
            "8"
        );
        let free = json!({"metadata": {"name": "a"}});
        assert_eq!(bound_anew(&free, &written), free);
    }

    proptest! {
        #[test]
        fn any_text_can_be_read_back(text in any::<String>()) {
            let mut object = json!({"stringData": {"a": text}});
            as_stored(&mut object, &Kind::new("v1", "Secret"));
            let stored: ByteString = serde_json::from_value(object["data"]["a"].clone()).unwrap();
            prop_assert_eq!(String::from_utf8(stored.0).unwrap(), text);
        }
    }
}
