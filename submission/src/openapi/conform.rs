//! What an object loses so that it fits its kind.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::compile::{Identity, Index, KindSchema, Shape};

/// Drops fields that the kind does not declare, and merges list items with the same key: the last one
/// wins, in the place of the first. Returns the paths, in the order of the object, e.g.
/// `spec.containers[0].env[name=A]`. What cannot be mended (a text where an object is wanted) stays for
/// the API server to refuse.
pub fn conform(object: &mut Value, schema: &KindSchema) -> Vec<String> {
    let mut fitting = Fitting {
        schema,
        changed: Vec::new(),
    };
    fitting.value(object, schema.root, "");
    fitting.changed
}

struct Fitting<'a> {
    schema: &'a KindSchema,
    changed: Vec<String>,
}

impl Fitting<'_> {
    fn value(&mut self, value: &mut Value, shape: Index, path: &str) {
        match (&self.schema.shapes[shape], value) {
            (Shape::Struct { .. }, Value::Object(object)) => self.object(object, shape, path),
            (Shape::Map { values, .. }, Value::Object(object)) => {
                for (key, value) in object.iter_mut() {
                    self.value(value, *values, &member(path, key));
                }
            }
            (Shape::List { items, identity }, Value::Array(list)) => {
                for (place, item) in list.iter_mut().enumerate() {
                    self.value(item, *items, &format!("{path}[{place}]"));
                }
                self.merge(list, *items, identity, path);
            }
            _ => {}
        }
    }

    fn object(&mut self, object: &mut Map<String, Value>, shape: Index, path: &str) {
        let Shape::Struct { fields, open } = &self.schema.shapes[shape] else {
            return;
        };
        let mut undeclared = Vec::new();
        for (key, value) in object.iter_mut() {
            match fields.get(key.as_str()) {
                Some(field) => self.value(value, field.shape, &member(path, key)),
                None if *open => {}
                None => {
                    self.changed.push(member(path, key));
                    undeclared.push(key.clone());
                }
            }
        }
        for key in undeclared {
            object.remove(&key);
        }
    }

    fn merge(&mut self, list: &mut Vec<Value>, items: Index, identity: &Identity, path: &str) {
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut merged: Vec<Value> = Vec::with_capacity(list.len());
        for item in list.drain(..) {
            let Some(key) = self.key(&item, items, identity) else {
                merged.push(item);
                continue;
            };
            if let Some(place) = places.get(&key) {
                self.changed.push(format!("{path}[{key}]"));
                merged[*place] = item;
            } else {
                places.insert(key, merged.len());
                merged.push(item);
            }
        }
        *list = merged;
    }

    /// `name=A` or `containerPort=80,protocol=TCP`; absent keys take their defaults. An item whose key is
    /// incomplete is the same as no other.
    fn key(&self, item: &Value, items: Index, identity: &Identity) -> Option<String> {
        let names = match identity {
            Identity::None => return None,
            Identity::Value => return Some(format!("={}", text(item))),
            Identity::Keys(names) => names,
        };
        let mut parts = Vec::with_capacity(names.len());
        for name in names {
            let value = item
                .get(&**name)
                .filter(|value| !value.is_null())
                .or_else(|| self.default(items, name))?;
            parts.push(format!("{name}={}", text(value)));
        }
        Some(parts.join(","))
    }

    fn default(&self, items: Index, name: &str) -> Option<&Value> {
        match &self.schema.shapes[items] {
            Shape::Struct { fields, .. } => fields.get(name)?.default.as_ref(),
            Shape::Any | Shape::Map { .. } | Shape::List { .. } => None,
        }
    }
}

fn member(path: &str, key: &str) -> String {
    let plain = !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    match (plain, path.is_empty()) {
        (true, true) => key.to_owned(),
        (true, false) => format!("{path}.{key}"),
        (false, _) => format!("{path}[{key:?}]"),
    }
}

/// Texts bare, everything else as JSON; a text that looks like JSON is quoted, so `"1"` and `1` differ.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) if serde_json::from_str::<Value>(text).is_err() => text.clone(),
        other => other.to_string(),
    }
}
