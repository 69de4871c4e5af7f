//! What a stamped object holds beside the fields that we own.
//!
//! Others may set fields that a template does not render, and what comes of the object is theirs as much then. Which values
//! stand beside ours is digested when the object arrives. The API server puts some there itself: defaults, and what admission
//! adds. So the digest alone says nothing: it is compared with that of an object that holds the rendering and was touched by
//! nobody else.
//!
//! Managed fields say who set what, but whoever may edit the object may rewrite them. So the digest does not look at the
//! entries of others; they only give the fields their names.

use serde_json::{Map, Value};
use sha2::Sha256;
use template_language::digest::{by_key, hex};

use crate::managed::{is_main, own_entry};
use crate::values::{feed_text, feed_value, shortened};

/// So many fields are named.
const MOST_NAMED: usize = 16;

/// A name has no more bytes than this.
const LONGEST_NAME: usize = 200;

/// Of these the API server and other controllers write what they want; ours among them are compared as values.
const ASIDE: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// The values of an object beside ours, metadata and status aside.
///
/// ```
/// use serde_json::json;
/// use submission::ValuesBeside;
///
/// let live = |spec: serde_json::Value| json!({
///     "metadata": {"managedFields": [
///         {"manager": "carto", "operation": "Apply", "fieldsV1": {"f:spec": {"f:image": {}}}},
///         {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
///     ]},
///     "spec": spec,
/// });
/// let beside = |spec| ValuesBeside::of(&live(spec), "carto");
/// let none = beside(json!({"image": "a"}));
/// assert_eq!(none.digest(), beside(json!({"image": "b"})).digest(), "ours");
/// let edited = beside(json!({"image": "a", "replicas": 3}));
/// assert_ne!(none.digest(), edited.digest());
/// assert_eq!(edited.named(), ["spec.replicas"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuesBeside {
    digest: [u8; 16],
    named: Box<[Box<str>]>,
}

impl ValuesBeside {
    /// Of an object as the API server returned it.
    pub fn of(object: &Value, field_manager: &str) -> Self {
        let mut walk = Walk::default();
        let ours = own_entry(object, field_manager);
        let entries = object["metadata"]["managedFields"].as_array();
        let others = entries.into_iter().flatten();
        let others = others.filter(|entry| is_main(entry) && ours != Some(entry));
        let others: Vec<&Value> = others.map(|entry| &entry["fieldsV1"]).collect();
        let ours = ours.map(|entry| &entry["fieldsV1"]);
        let members = object.as_object().into_iter().flat_map(by_key);
        for (name, value) in members.filter(|(name, _)| !ASIDE.contains(&name.as_str())) {
            let field = format!("f:{name}");
            walk.visit(
                value,
                below(ours, &field),
                &all_below(&others, &field),
                name,
            );
        }
        walk.end()
    }

    /// Of an object that holds nothing beside ours.
    pub fn none() -> Self {
        Walk::default().end()
    }

    /// 32 hexadecimal digits.
    pub fn digest(&self) -> String {
        hex(&self.digest)
    }

    /// Paths of the fields that others have set, as managed fields tell them; 16 at most.
    pub fn named(&self) -> &[Box<str>] {
        &self.named
    }
}

#[derive(Default)]
struct Walk {
    hasher: Sha256,
    named: Vec<Box<str>>,
}

impl Walk {
    /// A value, with what the entries of managed fields have for its place.
    fn visit(&mut self, value: &Value, ours: Option<&Value>, others: &[&Value], path: &str) {
        let Some(ours) = ours else {
            return self.beside(value, others, path);
        };
        let Some(entry) = ours.as_object().filter(|entry| !entry.is_empty()) else {
            // All of it is ours.
            return;
        };
        match value {
            Value::Object(members) => {
                for (name, member) in by_key(members) {
                    let field = format!("f:{name}");
                    let path = format!("{path}.{name}");
                    self.visit(member, entry.get(&field), &all_below(others, &field), &path);
                }
            }
            Value::Array(items) => {
                let ours = Items::of(entry);
                let others: Vec<Items<'_>> = others
                    .iter()
                    .filter_map(|it| it.as_object())
                    .map(Items::of)
                    .collect();
                for (index, item) in items.iter().enumerate() {
                    let others: Vec<&Value> = others
                        .iter()
                        .filter_map(|it| it.find(item, index))
                        .collect();
                    self.visit(
                        item,
                        ours.find(item, index),
                        &others,
                        &format!("{path}[{index}]"),
                    );
                }
            }
            // `.`: the place itself.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// A value that is not ours.
    fn beside(&mut self, value: &Value, others: &[&Value], path: &str) {
        feed_text(&mut self.hasher, path);
        feed_value(&mut self.hasher, Some(value));
        if !others.is_empty() && self.named.len() < MOST_NAMED {
            let end = path.floor_char_boundary(LONGEST_NAME);
            self.named.push(path[..end].into());
        }
    }

    fn end(self) -> ValuesBeside {
        ValuesBeside {
            digest: shortened(self.hasher),
            named: self.named.into(),
        }
    }
}

/// The items of a list that an entry has.
struct Items<'e>(Vec<(Key, &'e Value)>);

/// What an item is found by.
enum Key {
    Fields(Map<String, Value>),
    Value(Value),
    Index(usize),
}

impl<'e> Items<'e> {
    fn of(entry: &'e Map<String, Value>) -> Self {
        let items = entry.iter().filter_map(|(key, node)| {
            let (sort, text) = key.split_once(':')?;
            let key = match sort {
                "k" => Key::Fields(serde_json::from_str(text).ok()?),
                "v" => Key::Value(serde_json::from_str(text).ok()?),
                "i" => Key::Index(text.parse().ok()?),
                _ => return None,
            };
            Some((key, node))
        });
        Self(items.collect())
    }

    fn find(&self, item: &Value, index: usize) -> Option<&'e Value> {
        let is_item = |key: &Key| match key {
            Key::Fields(fields) => fields.iter().all(|(name, key)| item.get(name) == Some(key)),
            Key::Value(value) => item == value,
            Key::Index(at) => *at == index,
        };
        let found = self.0.iter().find(|(key, _)| is_item(key));
        found.map(|(_, node)| *node)
    }
}

/// What an entry has for a member of a place.
fn below<'e>(entry: Option<&'e Value>, field: &str) -> Option<&'e Value> {
    let entry = entry?.as_object()?;
    entry.get(field)
}

/// The entries that have the member; one without members stands for all.
fn all_below<'e>(entries: &[&'e Value], field: &str) -> Vec<&'e Value> {
    let entries = entries.iter().filter_map(|entry| {
        let members = entry.as_object()?;
        if members.is_empty() {
            return Some(*entry);
        }
        members.get(field)
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn beside(object: &Value, ours: &Value, others: &Value) -> ValuesBeside {
        let mut object = object.clone();
        object["metadata"] = json!({"name": "a", "managedFields": [
            {"manager": "carto", "operation": "Apply", "fieldsV1": ours},
            {"manager": "edit", "operation": "Update", "fieldsV1": others},
            {"manager": "flux", "operation": "Update", "subresource": "status", "fieldsV1": {"f:spec": {}}},
        ]});
        ValuesBeside::of(&object, "carto")
    }

    #[test]
    fn what_is_ours_and_metadata_and_status_do_not_count() {
        let ours = json!({"f:metadata": {"f:labels": {}}, "f:spec": {"f:image": {}, "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}}}});
        let spec = json!({"spec": {"image": "a", "env": [{"name": "A", "value": "1"}]}, "status": {"x": 1}});
        let found = beside(&spec, &ours, &json!({}));
        assert_eq!(found, ValuesBeside::none());
    }

    #[test]
    fn a_field_of_others_is_found_in_objects_lists_and_sets() {
        let ours = json!({"f:spec": {
            "f:image": {}, "f:deep": {"f:a": {}}, "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
            "f:set": {"v:\"x\"": {}}, "f:atomic": {},
        }});
        let others = json!({"f:spec": {
            "f:replicas": {}, "f:deep": {"f:b": {}}, "f:env": {"k:{\"name\":\"B\"}": {".": {}}, "k:{\"name\":\"A\"}": {"f:from": {}}},
            "f:set": {"v:\"y\"": {}},
        }});
        let object = json!({"spec": {
            "image": "a", "replicas": 3, "deep": {"a": 1, "b": 2}, "env": [{"name": "A", "value": "1", "from": 1}, {"name": "B"}],
            "set": ["x", "y"], "atomic": [1, 2], "defaulted": true,
        }});
        let found = beside(&object, &ours, &others);
        let named: Vec<&str> = found.named().iter().map(|it| &**it).collect();
        assert_eq!(
            named,
            [
                "spec.deep.b",
                "spec.env[0].from",
                "spec.env[1]",
                "spec.replicas",
                "spec.set[1]"
            ]
        );
        let mut edited = object.clone();
        edited["spec"]["defaulted"] = json!(false);
        assert_ne!(
            beside(&edited, &ours, &others).digest(),
            found.digest(),
            "also what nobody has a name for"
        );
        edited["spec"]["defaulted"] = json!(true);
        edited["spec"]["atomic"] = json!([3]);
        assert_eq!(beside(&edited, &ours, &others).digest(), found.digest());
    }

    #[test]
    fn an_entry_that_somebody_writes_in_our_name_makes_nothing_ours() {
        let object = json!({
            "metadata": {"managedFields": [
                {"manager": "carto", "operation": "Update", "fieldsV1": {"f:spec": {}}},
                {"manager": "carto", "operation": "Apply", "fieldsV1": {"f:spec": {"f:image": {}}}},
            ]},
            "spec": {"image": "a", "extra": 1},
        });
        let found = ValuesBeside::of(&object, "carto");
        assert_eq!(found.named(), ["spec.extra".into()]);
        let unnamed = json!({
            "metadata": {"managedFields": [{"manager": "carto", "operation": "Apply", "fieldsV1": {"f:spec": {"f:image": {}}}}]},
            "spec": {"image": "a", "extra": 1},
        });
        let unnamed = ValuesBeside::of(&unnamed, "carto");
        assert_eq!(
            unnamed.digest(),
            found.digest(),
            "hiding the entry hides the name alone"
        );
        assert!(unnamed.named().is_empty());
    }

    #[test]
    fn of_a_created_object_all_that_its_creation_brought_is_ours() {
        let object = |spec: Value| {
            json!({
                "metadata": {"managedFields": [
                    {"manager": "carto", "operation": "Update", "fieldsV1": {"f:spec": {".": {}, "f:image": {}, "f:parallelism": {}}}},
                ]},
                "spec": spec,
            })
        };
        let made = ValuesBeside::of(&object(json!({"image": "a", "parallelism": 1})), "carto");
        assert_eq!(made, ValuesBeside::none());
        let edited = object(json!({"image": "a", "parallelism": 1, "suspend": true}));
        assert_ne!(ValuesBeside::of(&edited, "carto"), ValuesBeside::none());
    }

    #[test]
    fn names_are_bounded_and_no_entry_makes_it_panic() {
        let long = "é".repeat(300);
        let members: Map<String, Value> =
            (0..40).map(|n| (format!("{n}{long}"), json!(n))).collect();
        let others = json!({"f:spec": {}});
        let found = beside(
            &json!({"spec": members}),
            &json!({"f:spec": {"f:image": {}}}),
            &others,
        );
        assert_eq!(found.named().len(), MOST_NAMED);
        assert!(found.named().iter().all(|name| name.len() <= LONGEST_NAME));
        for odd in [
            json!(null),
            json!([1]),
            json!({"k:{": {}, "v:": {}, "i:x": {}, ":": {}}),
            json!("x"),
        ] {
            beside(
                &json!({"spec": [1, {"a": 2}]}),
                &json!({"f:spec": odd}),
                &json!({"f:spec": odd}),
            );
        }
    }
}
