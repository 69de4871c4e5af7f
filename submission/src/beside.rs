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
use sha2::{Digest as _, Sha256};
use template_language::digest::by_key;

use crate::managed::{is_main, own_entry};
use crate::values::{feed_text, feed_value, shortened};

/// So many values are told apart; a Deployment has some twenty.
const MOST_VALUES: usize = 256;

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
/// assert_eq!(beside(json!({"image": "a"})).digests().count(), 0, "ours");
/// let edited = beside(json!({"image": "a", "replicas": 3}));
/// assert_eq!(edited.digests().count(), 1);
/// assert_eq!(edited.named(), ["spec.replicas".into()]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValuesBeside {
    /// One for each value, in ascending order: short, but nobody finds another value with one of them in reasonable time.
    digests: Box<[u64]>,
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

    /// A digest of each value with its place, 16 hexadecimal digits.
    pub fn digests(&self) -> impl Iterator<Item = String> {
        self.digests.iter().map(|digest| format!("{digest:016x}"))
    }

    /// Paths of the fields that others have set, as managed fields tell them; 16 at most.
    pub fn named(&self) -> &[Box<str>] {
        &self.named
    }
}

#[derive(Default)]
struct Walk {
    digests: Vec<u64>,
    /// Of the values beyond [`MOST_VALUES`].
    others: Sha256,
    named: Vec<Box<str>>,
}

impl Walk {
    /// A value, with what the entries of managed fields have for its place.
    fn visit(&mut self, value: &Value, ours: Option<&Value>, others: &[&Value], path: &str) {
        let Some(ours) = ours else {
            return self.beside(value, others, path);
        };
        let Some(entry) = ours.as_object().filter(|entry| !entry.is_empty()) else {
            return self.leaf(value, others, path);
        };
        match value {
            Value::Object(members) => {
                for (name, member) in by_key(members) {
                    let field = format!("f:{name}");
                    let path = format!("{path}.{name}");
                    self.visit(member, entry.get(&field), &all_below(others, &field), &path);
                }
            }
            Value::Array(items) => self.items(items, entry, others, path),
            // `.`: the place itself.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// A place that is ours as a whole. A map or list that is rendered empty is such a place, too, and then what is in it is
    /// not ours; that it was rendered empty does not stand there.
    fn leaf(&mut self, value: &Value, others: &[&Value], path: &str) {
        let is_filled = match value {
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
        if is_filled {
            let filling: Vec<&Value> = others
                .iter()
                .copied()
                .filter(|it| has_members(it))
                .collect();
            self.beside(value, &filling, path);
        }
    }

    /// Each entry of ours is one item. Two of one key would be ours both, and the last one counts.
    fn items(
        &mut self,
        items: &[Value],
        entry: &Map<String, Value>,
        others: &[&Value],
        path: &str,
    ) {
        let mut ours = Items::of(entry);
        let others = others.iter().filter_map(|it| it.as_object()).map(Items::of);
        let mut others: Vec<Items<'_>> = others.collect();
        let mut order = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let own = ours.take(item, index);
            let others = others.iter_mut().filter_map(|it| it.take(item, index));
            let others: Vec<&Value> = others.map(|(_, node)| node).collect();
            let place = match own {
                Some((key, _)) => format!("{path}[{key}]"),
                None => format!("{path}[{index}]"),
            };
            order.extend(own.map(|(key, _)| key));
            self.visit(item, own.map(|(_, node)| node), &others, &place);
        }
        // Nobody owns the order of items, and it may decide what they do.
        if order.len() > 1 {
            self.digest(&Value::from(order), &format!("{path}[]"));
        }
    }

    /// A value that is not ours.
    fn beside(&mut self, value: &Value, others: &[&Value], path: &str) {
        self.digest(value, path);
        if !others.is_empty() && self.named.len() < MOST_NAMED {
            let end = path.floor_char_boundary(LONGEST_NAME);
            self.named.push(path[..end].into());
        }
    }

    fn digest(&mut self, value: &Value, path: &str) {
        if self.digests.len() >= MOST_VALUES {
            feed_text(&mut self.others, path);
            feed_value(&mut self.others, Some(value));
            return;
        }
        let mut hasher = Sha256::new();
        feed_text(&mut hasher, path);
        feed_value(&mut hasher, Some(value));
        self.digests.push(number(hasher));
    }

    fn end(mut self) -> ValuesBeside {
        if self.digests.len() >= MOST_VALUES {
            self.digests.push(number(self.others));
        }
        self.digests.sort_unstable();
        self.digests.dedup();
        ValuesBeside {
            digests: self.digests.into(),
            named: self.named.into(),
        }
    }
}

fn number(hasher: Sha256) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&shortened(hasher)[..8]);
    u64::from_be_bytes(number)
}

fn has_members(entry: &Value) -> bool {
    entry.as_object().is_some_and(|entry| !entry.is_empty())
}

/// The items of a list that an entry has, and that were not found yet.
struct Items<'e>(Vec<(Key, &'e str, &'e Value)>);

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
            Some((key, text, node))
        });
        Self(items.collect())
    }

    fn take(&mut self, item: &Value, index: usize) -> Option<(&'e str, &'e Value)> {
        let is_item = |key: &Key| match key {
            Key::Fields(fields) => fields.iter().all(|(name, key)| item.get(name) == Some(key)),
            Key::Value(value) => item == value,
            Key::Index(at) => *at == index,
        };
        let found = self.0.iter().position(|(key, ..)| is_item(key))?;
        let (_, text, node) = self.0.swap_remove(found);
        Some((text, node))
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

    fn named(found: &ValuesBeside) -> Vec<&str> {
        found.named().iter().map(|name| &**name).collect()
    }

    fn container() -> Value {
        json!({".": {}, "f:name": {}, "f:value": {}})
    }

    #[test]
    fn what_is_ours_and_metadata_and_status_do_not_count() {
        let env = json!({"k:{\"name\":\"A\"}": container()});
        let ours = json!({"f:metadata": {"f:labels": {}}, "f:spec": {"f:image": {}, "f:env": env}});
        let spec = json!({"spec": {"image": "a", "env": [{"name": "A", "value": "1"}]}, "status": {"x": 1}});
        assert_eq!(beside(&spec, &ours, &json!({})), ValuesBeside::default());
    }

    #[test]
    fn a_field_of_others_is_found_in_objects_lists_and_sets() {
        let ours = json!({"f:spec": {
            "f:image": {}, "f:deep": {"f:a": {}}, "f:env": {"k:{\"name\":\"A\"}": container()}, "f:set": {"v:\"x\"": {}},
        }});
        let others = json!({"f:spec": {
            "f:replicas": {}, "f:deep": {"f:b": {}}, "f:set": {"v:\"y\"": {}},
            "f:env": {"k:{\"name\":\"B\"}": {".": {}}, "k:{\"name\":\"A\"}": {"f:from": {}}},
        }});
        let object = json!({"spec": {
            "image": "a", "replicas": 3, "deep": {"a": 1, "b": 2}, "set": ["x", "y"], "defaulted": true,
            "env": [{"name": "A", "value": "1", "from": 1}, {"name": "B"}],
        }});
        let found = beside(&object, &ours, &others);
        let expected = [
            "spec.deep.b",
            "spec.env[{\"name\":\"A\"}].from",
            "spec.env[1]",
            "spec.replicas",
            "spec.set[1]",
        ];
        assert_eq!(named(&found), expected);
        assert_eq!(
            found.digests().count(),
            6,
            "also what nobody has a name for"
        );
        let mut edited = object.clone();
        edited["spec"]["image"] = json!("b");
        assert_eq!(beside(&edited, &ours, &others), found);
        edited["spec"]["defaulted"] = json!(false);
        let edited = beside(&edited, &ours, &others);
        let before: Vec<String> = found.digests().collect();
        let new = edited.digests().filter(|digest| !before.contains(digest));
        assert_eq!(new.count(), 1);
    }

    #[test]
    fn what_fills_a_map_or_list_that_is_rendered_empty_is_not_ours() {
        let ours = json!({"f:spec": {"f:config": {}, "f:env": {}, "f:text": {}}});
        let others = json!({"f:spec": {"f:config": {"f:note": {}}, "f:env": {"k:{\"name\":\"B\"}": {".": {}}}}});
        let empty = json!({"spec": {"config": {}, "env": [], "text": "a"}});
        assert_eq!(beside(&empty, &ours, &others), ValuesBeside::default());
        let filled = json!({"spec": {"config": {"note": 1}, "env": [{"name": "B"}], "text": "a"}});
        let found = beside(&filled, &ours, &others);
        assert_eq!(named(&found), ["spec.config", "spec.env"]);
        assert_eq!(found.digests().count(), 2);
    }

    #[test]
    fn a_second_item_of_a_key_and_another_order_of_items_are_found() {
        let item = |name: &str| json!({"name": name, "value": "1"});
        let env = json!({"k:{\"name\":\"A\"}": container(), "k:{\"name\":\"B\"}": container()});
        let ours = json!({"f:spec": {"f:env": env}});
        let found = |env: Value| beside(&json!({"spec": {"env": env}}), &ours, &json!({}));
        let rendered = found(json!([item("A"), item("B")]));
        assert_ne!(found(json!([item("B"), item("A")])), rendered);
        let twice = json!([item("A"), item("B"), {"name": "A", "value": "evil"}]);
        assert_ne!(found(twice), rendered);
        assert_eq!(found(json!([item("A"), item("B")])), rendered);
    }

    #[test]
    fn an_entry_that_somebody_writes_in_our_name_makes_nothing_ours() {
        let object = |entries: &[Value]| json!({"metadata": {"managedFields": entries}, "spec": {"image": "a", "extra": 1}});
        let ours = json!({"manager": "carto", "operation": "Apply", "fieldsV1": {"f:spec": {"f:image": {}}}});
        let forged = json!({"manager": "carto", "operation": "Update", "fieldsV1": {"f:spec": {}}});
        let found = ValuesBeside::of(&object(&[forged, ours.clone()]), "carto");
        assert_eq!(named(&found), ["spec.extra"]);
        let unnamed = ValuesBeside::of(&object(&[ours]), "carto");
        assert!(
            unnamed.digests().eq(found.digests()),
            "hiding the entry hides the name alone"
        );
        assert!(unnamed.named().is_empty());
    }

    #[test]
    fn values_and_names_are_bounded_and_no_entry_makes_it_panic() {
        let long = "é".repeat(300);
        let many = |last: i64| {
            let members = (0..1000).map(|n| (format!("{n}{long}"), json!(n)));
            let members: Map<String, Value> =
                members.chain([("z".to_owned(), json!(last))]).collect();
            let others = json!({"f:spec": {}});
            beside(
                &json!({"spec": members}),
                &json!({"f:spec": {"f:image": {}}}),
                &others,
            )
        };
        let found = many(1);
        assert_eq!(found.named().len(), MOST_NAMED);
        assert!(found.named().iter().all(|name| name.len() <= LONGEST_NAME));
        assert_eq!(found.digests().count(), MOST_VALUES + 1);
        assert_ne!(many(2), found, "also of those beyond");
        for odd in [
            json!(null),
            json!([1]),
            json!({"k:{": {}, "v:": {}, "i:x": {}, ":": {}}),
            json!("x"),
        ] {
            let odd = json!({"f:spec": odd});
            beside(&json!({"spec": [1, {"a": 2}]}), &odd, &odd);
        }
    }
}
