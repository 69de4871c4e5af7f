//! The two ways in which templates see the unset fields of an owner or a Runnable
//! (docs/behaviour/paths.md#typed-view).
//!
//! The Go controller hands its Go structs to the JSONPath evaluator, so an unset field is `null`, `""`, `{}` or `0`,
//! depending on its Go type: the *typed* view. What leaves a struct as JSON (ytt, or a path that ends at an object)
//! has empty fields left out: the *json* view. Manifests came to depend on both.

mod quantity;
mod shapes;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::shapes::Shape::{
    self, Kept, List, Number, Opaque, Pointer, Quantities, Quantity, Struct, Text, Texts,
};
use self::shapes::{DELIVERABLE, Fields, RUNNABLE, WORKLOAD};
use crate::Family;

/// Both views of one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Views {
    /// Unset fields filled in; unset lists are empty, see [`Views::settled`].
    pub(crate) typed: Value,
    /// Unset fields left out.
    pub(crate) json: Value,
}

impl Views {
    pub(crate) fn of_owner(family: Family, object: &Value) -> Self {
        match family {
            Family::SupplyChain => Self::of(&WORKLOAD, object),
            Family::Delivery => Self::of(&DELIVERABLE, object),
        }
    }

    pub(crate) fn of_runnable(object: &Value) -> Self {
        let mut views = Self::of(&RUNNABLE, object);
        for view in [&mut views.typed, &mut views.json] {
            let reference = view.pointer_mut("/spec/runTemplateRef");
            if let Some(reference) = reference.and_then(Value::as_object_mut) {
                // The Go controller writes it there before it renders, whatever the user wrote.
                reference.insert("kind".to_owned(), Value::from("ClusterRunTemplate"));
            }
        }
        views
    }

    fn of(shape: &Shape, object: &Value) -> Self {
        Self {
            typed: shape.fill(Some(object)),
            json: shape.omit(Some(object)),
        }
    }

    /// What a path that found `typed` in the typed view yields.
    ///
    /// A scalar stays. An object or list leaves Go as JSON, so the path is evaluated again in the json view; a list that is
    /// not there is a nil slice, which is `null` itself although one can look into it (and finds no index 0). A filter may
    /// find nothing where unset fields are left out, `[?(@.value!="x")]` for one: then the place itself is looked for.
    pub(crate) fn settled<'v, E>(
        &'v self,
        typed: Cow<'v, Value>,
        json: impl FnOnce() -> Result<Cow<'v, Value>, E>,
    ) -> Cow<'v, Value> {
        let is_unset_list = match &*typed {
            Value::Array(items) => items.is_empty(),
            Value::Object(_) => false,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return typed,
        };
        match json() {
            Ok(json) => json,
            Err(_) if is_unset_list => Cow::Owned(Value::Null),
            Err(_) => counterpart(&self.typed, &self.json, &typed).map_or(typed, Cow::Borrowed),
        }
    }
}

/// What stands in the json view where `target` itself, not its equal, stands in the typed one.
fn counterpart<'v>(typed: &Value, json: &'v Value, target: &Value) -> Option<&'v Value> {
    if std::ptr::eq(typed, target) {
        return Some(json);
    }
    match (typed, json) {
        (Value::Array(typed), Value::Array(json)) => typed
            .iter()
            .zip(json)
            .find_map(|(typed, json)| counterpart(typed, json, target)),
        (Value::Object(typed), Value::Object(json)) => typed
            .iter()
            .find_map(|(name, typed)| counterpart(typed, json.get(name)?, target)),
        _ => None,
    }
}

impl Shape {
    fn fill(&self, value: Option<&Value>) -> Value {
        let value = value.filter(|value| !value.is_null());
        match (self, value) {
            (Text, None) => Value::from(""),
            (Number, None) => Value::from(0),
            (Struct(fields), None) => fill_fields(fields, &Map::new()),
            (Texts | List(_), None) => Value::Array(Vec::new()),
            (Opaque | Kept | Pointer(_) | Quantities, None) => Value::Null,
            (Quantity | Quantities, value) => quantities(self, value),
            (Struct(fields) | Pointer(fields), Some(Value::Object(object))) => {
                fill_fields(fields, object)
            }
            (List(fields), Some(Value::Array(items))) => items
                .iter()
                .map(|item| Struct(fields).fill(Some(item)))
                .collect(),
            (_, Some(value)) => value.clone(),
        }
    }

    fn omit(&self, value: Option<&Value>) -> Value {
        let value = value.filter(|value| !value.is_null());
        match (self, value) {
            (Quantity | Quantities, value) => quantities(self, value),
            (Struct(fields), None) => omit_fields(fields, &Map::new()),
            (Struct(fields) | Pointer(fields), Some(Value::Object(object))) => {
                omit_fields(fields, object)
            }
            (List(fields), Some(Value::Array(items))) => items
                .iter()
                .map(|item| Struct(fields).omit(Some(item)))
                .collect(),
            (_, value) => value.cloned().unwrap_or_default(),
        }
    }

    /// Whether Go's `omitempty` leaves the field out.
    fn is_omitted(&self, value: Option<&Value>) -> bool {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return !matches!(self, Struct(_) | Kept | Quantity);
        };
        match (self, value) {
            (Text, Value::String(text)) => text.is_empty(),
            (Number, Value::Number(number)) => number.as_i64() == Some(0),
            (List(_) | Texts | Opaque, Value::Array(items)) => items.is_empty(),
            (Opaque | Quantities, Value::Object(entries)) => entries.is_empty(),
            _ => false,
        }
    }
}

/// The same in both views.
fn quantities(shape: &Shape, value: Option<&Value>) -> Value {
    match (shape, value) {
        (Quantities, Some(Value::Object(entries))) => entries
            .iter()
            .map(|(name, value)| (name.clone(), quantity::shown(value)))
            .collect(),
        (Quantity, None) => Value::from("0"),
        (_, value) => value.map(quantity::shown).unwrap_or_default(),
    }
}

fn fill_fields(fields: &Fields, object: &Map<String, Value>) -> Value {
    let mut filled = object.clone();
    for (name, shape) in shapes::each(fields) {
        filled.insert(name.to_owned(), shape.fill(object.get(name)));
    }
    Value::Object(filled)
}

fn omit_fields(fields: &Fields, object: &Map<String, Value>) -> Value {
    let mut kept = object.clone();
    for (name, shape) in shapes::each(fields) {
        let value = object.get(name);
        if shape.is_omitted(value) {
            kept.remove(name);
        } else {
            kept.insert(name.to_owned(), shape.omit(value));
        }
    }
    Value::Object(kept)
}

#[cfg(test)]
mod tests;
