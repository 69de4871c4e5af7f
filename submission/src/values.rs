//! What a stamped object holds in the fields that we own, as a digest.
//!
//! Whoever may edit a namespace may write any annotation, label and managed fields entry on the objects in it. So whether an
//! object is as we left it is decided by its values. They are digested when the object arrives, in the shape that the API
//! server gave them, and compared with the digest of the reply to our own apply: what the server defaults, normalises or
//! drops is the same in both, so nothing of this has to be known here.
//!
//! The entry of managed fields only says which values are looked at. It is part of the digest: an entry that somebody
//! shortened, to hide a value from us, is as much a difference as another value.

use std::fmt;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use template_language::digest::{by_key, hex};

use crate::managed::{is_created, is_ours};

const LENGTH: usize = 16;

/// Digest of the fields that we own, and of their values.
///
/// ```
/// use serde_json::json;
/// use submission::OwnedValues;
///
/// let live = |replicas: u64, phase: &str| json!({
///     "metadata": {"managedFields": [{
///         "manager": "carto", "operation": "Apply", "apiVersion": "apps/v1",
///         "fieldsV1": {"f:spec": {"f:replicas": {}}},
///     }]},
///     "spec": {"replicas": replicas},
///     "status": {"phase": phase},
/// });
/// let values = OwnedValues::held_by(&live(1, "a"), "carto");
/// assert!(values.is_some());
/// assert_eq!(values, OwnedValues::held_by(&live(1, "b"), "carto"), "a field of others");
/// assert_ne!(values, OwnedValues::held_by(&live(2, "a"), "carto"), "a field of ours");
/// assert_eq!(OwnedValues::held_by(&live(1, "a"), "nobody"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnedValues([u8; LENGTH]);

impl OwnedValues {
    /// Of an object as the API server returned it; `None` if the field manager owns nothing of it.
    pub fn held_by(object: &Value, field_manager: &str) -> Option<Self> {
        let entries = object["metadata"]["managedFields"].as_array()?;
        let ours = entries.iter().find(|entry| is_ours(entry, field_manager));
        Some(Self::of(object, ours?))
    }

    /// Of an object that was created and not applied: what the one who created it owns of it still, its metadata aside, and
    /// when he wrote to it last; `None` if that is nothing. Whoever changes a value in his name and changes it back leaves the
    /// same values at another time.
    ///
    /// ```
    /// use serde_json::json;
    /// use submission::OwnedValues;
    ///
    /// let live = |script: &str, time: &str| json!({
    ///     "metadata": {"managedFields": [{
    ///         "manager": "carto", "operation": "Update", "apiVersion": "batch/v1", "time": time,
    ///         "fieldsV1": {"f:metadata": {"f:labels": {}}, "f:spec": {"f:script": {}}},
    ///     }]},
    ///     "spec": {"script": script},
    /// });
    /// let values = OwnedValues::created_by(&live("test", "10:00"), "carto");
    /// assert!(values.is_some());
    /// assert_ne!(values, OwnedValues::created_by(&live("true", "10:00"), "carto"));
    /// assert_ne!(values, OwnedValues::created_by(&live("test", "10:01"), "carto"));
    /// assert_eq!(OwnedValues::created_by(&live("test", "10:00"), "nobody"), None);
    /// ```
    pub fn created_by(object: &Value, field_manager: &str) -> Option<Self> {
        let entries = object["metadata"]["managedFields"].as_array()?;
        let ours = entries.iter().find(|it| is_created(it, field_manager))?;
        let fields = ours["fieldsV1"].as_object()?;
        let fields = fields.iter().filter(|(name, _)| *name != "f:metadata");
        let fields: Map<String, Value> = fields
            .map(|(name, field)| (name.clone(), field.clone()))
            .collect();
        // Of an object that we only marked, nothing is ours; an entry without fields would stand for all of it.
        (!fields.is_empty()).then(|| {
            let entry = json!({"apiVersion": ours["apiVersion"], "fieldsV1": fields});
            let mut hasher = Sha256::new();
            hasher.update(Self::of(object, &entry).0);
            feed_text(&mut hasher, ours["time"].as_str().unwrap_or_default());
            Self(shortened(hasher))
        })
    }

    /// Of an object, by our Apply entry in its managed fields.
    fn of(object: &Value, entry: &Value) -> Self {
        let mut hasher = Sha256::new();
        // In another version the fields have other names.
        feed_text(
            &mut hasher,
            entry["apiVersion"].as_str().unwrap_or_default(),
        );
        feed_owned(&mut hasher, Some(object), &entry["fieldsV1"]);
        Self(shortened(hasher))
    }
}

impl fmt::Display for OwnedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// Digest of a rendering and of the values that the API server held after it was applied: what an object was when we left
/// it. An object that comes to the same state later is as it was rendered, and need not be written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct State([u8; LENGTH]);

impl State {
    /// After a rendering with this digest was applied.
    pub fn of(rendering: &str, values: OwnedValues) -> Self {
        let mut hasher = Sha256::new();
        feed_text(&mut hasher, rendering);
        hasher.update(values.0);
        Self(shortened(hasher))
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

pub(crate) fn shortened(hasher: Sha256) -> [u8; LENGTH] {
    let mut short = [0; LENGTH];
    short.copy_from_slice(&hasher.finalize()[..LENGTH]);
    short
}

/// The length keeps ("ab", "c") and ("a", "bc") apart.
pub(crate) fn feed_text(hasher: &mut Sha256, text: &str) {
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(text);
}

/// A value by an entry: the places that the entry names, and what is there.
fn feed_owned(hasher: &mut Sha256, value: Option<&Value>, entry: &Value) {
    let Some(members) = entry.as_object().filter(|members| !members.is_empty()) else {
        return feed_value(hasher, value);
    };
    hasher.update(b"<");
    for (key, member) in by_key(members) {
        feed_text(hasher, key);
        match key.split_once(':') {
            Some(("f", name)) => {
                feed_owned(hasher, value.and_then(|value| value.get(name)), member);
            }
            Some(("k", keys)) => {
                feed_owned(hasher, value.and_then(|value| item(value, keys)), member);
            }
            Some(("i", index)) => {
                let item = index.parse::<usize>().ok();
                let item = item.and_then(|index| value?.get(index));
                feed_owned(hasher, item, member);
            }
            Some(("v", text)) => {
                let is_in = value.is_some_and(|value| contains(value, text));
                hasher.update([u8::from(is_in)]);
            }
            // `.`: the place itself.
            _ => hasher.update([u8::from(value.is_some())]),
        }
    }
    hasher.update(b">");
}

/// The item of a list with these keys. A key that the object leaves out is in no entry: the server fills in defaults first.
fn item<'v>(list: &'v Value, keys: &str) -> Option<&'v Value> {
    let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
    let is_item = |item: &&Value| keys.iter().all(|(name, key)| item.get(name) == Some(key));
    list.as_array()?.iter().find(is_item)
}

fn contains(list: &Value, text: &str) -> bool {
    let Ok(wanted) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    list.as_array().is_some_and(|items| items.contains(&wanted))
}

pub(crate) fn feed_value(hasher: &mut Sha256, value: Option<&Value>) {
    match value {
        None => hasher.update(b"-"),
        Some(Value::Null) => hasher.update(b"0"),
        Some(Value::Bool(value)) => hasher.update(if *value { b"t" } else { b"f" }),
        Some(Value::Number(number)) => {
            hasher.update(b"n");
            feed_text(hasher, &number.to_string());
        }
        Some(Value::String(text)) => {
            hasher.update(b"s");
            feed_text(hasher, text);
        }
        Some(Value::Array(items)) => {
            hasher.update(b"[");
            for item in items {
                feed_value(hasher, Some(item));
            }
            hasher.update(b"]");
        }
        Some(Value::Object(members)) => {
            hasher.update(b"{");
            for (key, member) in by_key(members) {
                feed_text(hasher, key);
                feed_value(hasher, Some(member));
            }
            hasher.update(b"}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(object: &Value, fields: &Value) -> OwnedValues {
        OwnedValues::of(object, &json!({"apiVersion": "v1", "fieldsV1": fields}))
    }

    /// Whether the digest of the second object differs from that of the first.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the tables read better without references"
    )]
    fn differ(fields: Value, before: Value, after: Value) -> bool {
        values(&before, &fields) != values(&after, &fields)
    }

    #[test]
    fn a_changed_value_of_ours_is_seen_wherever_it_is() {
        let cases = [
            (
                json!({"f:data": {".": {}, "f:a": {}}}),
                json!({"data": {"a": "1"}}),
                json!({"data": {"a": "2"}}),
            ),
            (
                json!({"f:data": {"f:a": {}}}),
                json!({"data": {"a": "1"}}),
                json!({"data": {}}),
            ),
            (
                json!({"f:spec": {"f:args": {}}}),
                json!({"spec": {"args": ["a", "b"]}}),
                json!({"spec": {"args": ["b", "a"]}}),
            ),
            (
                json!({"f:spec": {"f:atomic": {}}}),
                json!({"spec": {"atomic": {"a": 1}}}),
                json!({"spec": {"atomic": {"a": 1, "b": 2}}}),
            ),
            (
                json!({"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}),
                json!({"ports": [{"port": 80, "protocol": "TCP", "name": "web"}]}),
                json!({"ports": [{"port": 80, "protocol": "TCP", "name": "evil"}]}),
            ),
            (
                json!({"f:finalizers": {"v:\"a\"": {}}}),
                json!({"finalizers": ["a"]}),
                json!({"finalizers": ["b"]}),
            ),
            (
                json!({"f:list": {"i:1": {}}}),
                json!({"list": [1, 2]}),
                json!({"list": [1, 3]}),
            ),
            (json!({"f:n": {}}), json!({"n": 1}), json!({"n": "1"})),
        ];
        for (fields, before, after) in cases {
            assert!(
                differ(fields, before.clone(), after.clone()),
                "{before} {after}"
            );
        }
    }

    #[test]
    fn of_an_object_that_was_only_marked_nothing_was_created() {
        let object = |fields: Value| {
            json!({"spec": {"a": 1}, "status": {"b": 2}, "metadata": {"managedFields": [{
                "manager": "carto", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields,
            }]}})
        };
        let created = |fields| OwnedValues::created_by(&object(fields), "carto");
        let marks = json!({"f:annotations": {"f:carto.run/rendered-digest": {}}});
        assert_eq!(created(json!({"f:metadata": marks})), None);
        assert_eq!(created(json!({})), None);
        assert!(created(json!({"f:metadata": marks, "f:spec": {"f:a": {}}})).is_some());
    }

    #[test]
    fn what_is_not_ours_may_change() {
        let cases = [
            (
                json!({"f:data": {".": {}, "f:a": {}}}),
                json!({"data": {"a": "1"}}),
                json!({"data": {"a": "1", "b": "2"}, "status": 5}),
            ),
            (
                json!({"f:finalizers": {"v:\"a\"": {}}}),
                json!({"finalizers": ["a"]}),
                json!({"finalizers": ["b", "a"]}),
            ),
            (
                json!({"f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}}),
                json!({"ports": [{"port": 80}]}),
                json!({"ports": [{"port": 81}, {"port": 80, "name": "web"}]}),
            ),
        ];
        for (fields, before, after) in cases {
            assert!(
                !differ(fields, before.clone(), after.clone()),
                "{before} {after}"
            );
        }
    }

    #[test]
    fn an_entry_that_names_less_is_a_difference() {
        let object = json!({"data": {"a": "1", "b": "2"}});
        let whole = values(&object, &json!({"f:data": {"f:a": {}, "f:b": {}}}));
        assert_ne!(whole, values(&object, &json!({"f:data": {"f:a": {}}})));
        assert_ne!(whole, values(&object, &json!({})));
    }

    #[test]
    fn the_order_of_fields_and_the_version_of_others_do_not_count_but_ours_does() {
        let entry =
            |version: &str| json!({"apiVersion": version, "fieldsV1": {"f:a": {}, "f:b": {}}});
        let object = json!({"a": 1, "b": {"x": 1, "y": 2}});
        let same: Value = serde_json::from_str(r#"{"b": {"y": 2, "x": 1}, "a": 1}"#).unwrap();
        assert_eq!(
            OwnedValues::of(&object, &entry("v1")),
            OwnedValues::of(&same, &entry("v1"))
        );
        assert_ne!(
            OwnedValues::of(&object, &entry("v1")),
            OwnedValues::of(&object, &entry("v2"))
        );
    }

    #[test]
    fn a_state_is_of_one_rendering_and_stands_in_status_as_text() {
        let values = values(&json!({"a": 1}), &json!({"f:a": {}}));
        let state = State::of("sha256:a", values);
        assert_ne!(state, State::of("sha256:b", values));
        let text = state.to_string();
        assert_eq!(text.len(), 32);
        assert!(text.bytes().all(|byte| byte.is_ascii_hexdigit()), "{text}");
    }
}
