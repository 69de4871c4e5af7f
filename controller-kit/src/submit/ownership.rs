//! Does the live object still hold what we applied? Decided without a request and without process memory.
//!
//! The API server records, per field manager, which fields that manager last set (`managedFields`).
//! A value that somebody else changes leaves our entry. So the object equals the rendering when our
//! entry still covers every rendered field, and annotation `carto.run/rendered-digest` says that the
//! last thing we applied was this rendering. No live value is compared, so server defaults, mutating
//! webhooks and kinds without `spec` cannot make this loop (incident: upstream #587).

use serde_json::{Map, Value};

/// Fields that the server strips from what a manager owns.
const STRIPPED_ROOT: [&str; 2] = ["apiVersion", "kind"];
const STRIPPED_METADATA: [&str; 8] = [
    "name",
    "generateName",
    "namespace",
    "creationTimestamp",
    "uid",
    "generation",
    "resourceVersion",
    "managedFields",
];

/// JSON pointers of the rendered fields that `entry` does not cover, in document order.
///
/// `entry` is the `fieldsV1` of our managed fields entry (operation `Apply`, no subresource, the
/// rendered apiVersion); `None` when there is none. `status` is exempt where it is a subresource.
pub(crate) fn uncovered(
    rendered: &Value,
    entry: Option<&Value>,
    status_subresource: bool,
) -> Vec<String> {
    let mut walk = Walk {
        uncovered: Vec::new(),
        path: String::new(),
    };
    let empty = Value::Object(Map::new());
    let Some(root) = rendered.as_object() else {
        return vec![String::new()];
    };
    // An empty entry at the root would mean "covers everything"; a missing one covers nothing.
    let entry = entry.filter(|entry| entry.as_object().is_some_and(|fields| !fields.is_empty()));
    for (key, value) in root {
        if STRIPPED_ROOT.contains(&key.as_str()) || (status_subresource && key == "status") {
            continue;
        }
        let child = entry.and_then(|entry| field(entry, key));
        if key == "metadata" {
            walk.metadata(value, child.unwrap_or(&empty));
        } else {
            walk.member(key, value, child);
        }
    }
    walk.uncovered
}

fn field<'e>(entry: &'e Value, key: &str) -> Option<&'e Value> {
    entry.get(format!("f:{key}"))
}

fn is_leaf(entry: &Value) -> bool {
    entry.as_object().is_none_or(Map::is_empty)
}

struct Walk {
    uncovered: Vec<String>,
    path: String,
}

impl Walk {
    fn metadata(&mut self, value: &Value, entry: &Value) {
        let Some(metadata) = value.as_object() else {
            return;
        };
        for (key, value) in metadata {
            if !STRIPPED_METADATA.contains(&key.as_str()) {
                self.at("metadata", |walk| {
                    walk.member(key, value, field(entry, key));
                });
            }
        }
    }

    fn member(&mut self, key: &str, value: &Value, entry: Option<&Value>) {
        self.at(key, |walk| match entry {
            Some(entry) => walk.value(value, entry),
            None => walk.report(),
        });
    }

    fn value(&mut self, value: &Value, entry: &Value) {
        match value {
            // A leaf is an atomic field, owned whole, or a map of which only the place is still ours, because others took
            // all its members. Both name the members; what the reply to our own apply named is tolerated, so only the
            // second one counts.
            Value::Object(fields) if is_leaf(entry) => {
                for key in fields.keys() {
                    self.at(key, Self::report);
                }
            }
            _ if is_leaf(entry) => {}
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.member(key, value, field(entry, key));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    match list_item(entry, index, item) {
                        // An item that is ours keeps at least its keys, so without any it is atomic (an owner reference).
                        Some(found) if is_leaf(found) => {}
                        found => self.member(&index.to_string(), item, found),
                    }
                }
            }
            // The entry speaks of parts, the rendering of a whole: they are not the same field.
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self.report(),
        }
    }

    fn at(&mut self, key: &str, inside: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push('/');
        self.path
            .push_str(&key.replace('~', "~0").replace('/', "~1"));
        inside(self);
        self.path.truncate(length);
    }

    fn report(&mut self) {
        self.uncovered.push(self.path.clone());
    }
}

/// The part of a list's entry that stands for one item: by key, by value, or by index.
fn list_item<'e>(entry: &'e Value, index: usize, item: &Value) -> Option<&'e Value> {
    let members = entry.as_object()?;
    if let Some(found) = members.get(&format!("i:{index}")) {
        return Some(found);
    }
    if let Value::Object(fields) = item {
        return by_key(members, fields);
    }
    members
        .iter()
        .find(|(key, _)| {
            key.strip_prefix("v:").is_some_and(|text| {
                serde_json::from_str::<Value>(text).is_ok_and(|value| value == *item)
            })
        })
        .map(|(_, found)| found)
}

/// A key field that the rendering leaves out took its default on the server, so only fields that are
/// present decide; the member that agrees in most of them is the item (a port with and one without protocol).
fn by_key<'e>(members: &'e Map<String, Value>, fields: &Map<String, Value>) -> Option<&'e Value> {
    let mut best: Option<(usize, &Value)> = None;
    for (key, found) in members {
        let Some(text) = key.strip_prefix("k:") else {
            continue;
        };
        let Ok(Value::Object(keys)) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        let mut agreeing = 0;
        let matches = keys.iter().all(|(name, value)| match fields.get(name) {
            Some(present) => {
                agreeing += 1;
                present == value
            }
            None => true,
        });
        if matches && agreeing > 0 && best.is_none_or(|(most, _)| agreeing > most) {
            best = Some((agreeing, found));
        }
    }
    best.map(|(_, found)| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "the tables read better without references"
    )]
    fn check(rendered: Value, entry: Value, expected: &[&str]) {
        assert_eq!(
            uncovered(&rendered, Some(&entry), true),
            expected,
            "rendered {rendered}, entry {entry}"
        );
    }

    #[test]
    fn an_object_covered_field_by_field_is_unchanged() {
        check(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n", "labels": {"x": "1"}}, "data": {"k": "v"}}),
            json!({"f:metadata": {"f:labels": {".": {}, "f:x": {}}}, "f:data": {".": {}, "f:k": {}}}),
            &[],
        );
    }

    #[test]
    fn a_field_that_somebody_took_over_is_uncovered() {
        check(
            json!({"metadata": {"labels": {"x": "1", "y/z": "2"}}, "data": {"k": "v", "l": "w"}}),
            json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:data": {"f:k": {}}}),
            &["/data/l", "/metadata/labels/y~1z"],
        );
    }

    #[test]
    fn a_leaf_in_the_entry_covers_scalars_lists_and_empty_maps() {
        check(
            json!({"spec": {"args": ["a", {"b": 1}], "empty": {}, "n": 1}}),
            json!({"f:spec": {"f:args": {}, "f:empty": {}, "f:n": {}}}),
            &[],
        );
    }

    #[test]
    fn an_atomic_map_and_one_that_lost_all_members_differ_from_one_that_is_gone() {
        let rendered = json!({"spec": {"value": {"a": 1, "b": 2}}});
        let granular = json!({"f:spec": {"f:value": {".": {}, "f:a": {}, "f:b": {}}}});
        check(rendered.clone(), granular, &[]);
        let leaf = json!({"f:spec": {"f:value": {}}});
        check(rendered.clone(), leaf, &["/spec/value/a", "/spec/value/b"]);
        check(
            rendered,
            json!({"f:spec": {"f:other": {}}}),
            &["/spec/value"],
        );
    }

    #[test]
    fn list_items_match_by_key_and_absent_keys_take_their_defaults() {
        let entry = json!({"f:spec": {"f:ports": {
            "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}},
            "k:{\"port\":81,\"protocol\":\"UDP\"}": {".": {}, "f:port": {}, "f:protocol": {}}}}});
        check(
            json!({"spec": {"ports": [{"port": 80}, {"port": 81, "protocol": "UDP"}]}}),
            entry.clone(),
            &[],
        );
        check(
            json!({"spec": {"ports": [{"port": 82}]}}),
            entry.clone(),
            &["/spec/ports/0"],
        );
        check(
            json!({"spec": {"ports": [{"port": 80, "name": "web"}]}}),
            entry,
            &["/spec/ports/0/name"],
        );
    }

    #[test]
    fn an_atomic_list_item_is_covered() {
        check(
            json!({"metadata": {"ownerReferences": [{"uid": "u", "name": "w"}]}}),
            json!({"f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}}}),
            &[],
        );
    }

    #[test]
    fn set_items_match_by_value() {
        let entry = json!({"f:metadata": {"f:finalizers": {"v:\"a/b\"": {}}}});
        check(
            json!({"metadata": {"finalizers": ["a/b"]}}),
            entry.clone(),
            &[],
        );
        check(
            json!({"metadata": {"finalizers": ["a/b", "c"]}}),
            entry,
            &["/metadata/finalizers/1"],
        );
    }

    #[test]
    fn status_counts_only_where_it_is_no_subresource() {
        let rendered = json!({"status": {"a": 1}, "spec": {"b": 1}});
        let entry = json!({"f:spec": {"f:b": {}}});
        assert!(uncovered(&rendered, Some(&entry), true).is_empty());
        assert_eq!(uncovered(&rendered, Some(&entry), false), ["/status"]);
    }

    #[test]
    fn without_an_entry_nothing_is_covered() {
        let rendered = json!({"apiVersion": "v1", "metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {}});
        assert_eq!(
            uncovered(&rendered, None, true),
            ["/metadata/labels", "/spec"]
        );
        assert_eq!(
            uncovered(&rendered, Some(&json!({})), true),
            ["/metadata/labels", "/spec"]
        );
    }

    #[test]
    fn a_scalar_where_the_entry_has_parts_is_uncovered() {
        check(
            json!({"spec": {"a": "text"}}),
            json!({"f:spec": {"f:a": {"f:b": {}}}}),
            &["/spec/a"],
        );
    }
}
