//! Nulls that stand for nothing.
//!
//! A template renders null for whatever an owner leaves unset. Where a kind gives a field a type and does not call it
//! nullable, the API server takes such a null out of a create and of a merge patch, and refuses it in an apply.

use serde_json::{Map, Value};

use super::compile::{Index, KindSchema, Shape};

/// Whether a member of any object in it is null. An item of a list is no member.
pub fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .values()
            .any(|member| member.is_null() || has_nulls(member)),
        Value::Array(items) => items.iter().any(has_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Takes out the members that are null, as the API server does when it creates an object: those whose place the kind
/// declares without calling it nullable. Where it says nothing of the place, null is a value. A field that is not declared
/// at all is left to [`super::conform`], which names it. Without a schema all of them go.
pub fn leave_out_nulls(object: &mut Value, schema: Option<&KindSchema>) {
    match schema {
        Some(schema) => by_schema(object, schema, schema.root),
        None => everywhere(object),
    }
}

fn everywhere(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(everywhere);
        }
        Value::Array(items) => items.iter_mut().for_each(everywhere),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn by_schema(value: &mut Value, schema: &KindSchema, shape: Index) {
    match (&schema.shapes[shape], value) {
        (Shape::Struct { fields, .. }, Value::Object(members)) => {
            let place = |key: &str| fields.get(key).map(|field| (field.shape, field.nullable));
            in_members(members, schema, place);
        }
        (Shape::Map { values, nullable }, Value::Object(members)) => {
            in_members(members, schema, |_| Some((*values, *nullable)));
        }
        (Shape::List { items, .. }, Value::Array(list)) => {
            for item in list {
                by_schema(item, schema, *items);
            }
        }
        _ => {}
    }
}

/// `place` tells the shape of a member and whether it may be null; nothing if the kind does not say.
fn in_members(
    members: &mut Map<String, Value>,
    schema: &KindSchema,
    place: impl Fn(&str) -> Option<(Index, bool)>,
) {
    members.retain(|key, member| match place(key) {
        Some((_, nullable)) if member.is_null() => nullable,
        Some((shape, _)) => {
            by_schema(member, schema, shape);
            true
        }
        None => true,
    });
}
