//! What a takeover takes off an object: the values that the Go controller set and the rendering does not have.
//!
//! An apply as a dry run does not show it. There the entry of the Go controller is still one of another manager, and what it
//! names stays; before a real apply it becomes ours ([`crate::migration`]).

use serde_json::{Map, Value};

use crate::managed::{is_legacy, is_ours};
use crate::takeover::{controller, union};

/// The object as an apply would leave it if what the Go controller wrote had become ours before; `answer` is what the API
/// server said to that apply as a dry run. `None` if the apply alone tells all.
///
/// What goes may come back as a default: only the API server knows.
///
/// ```
/// use serde_json::json;
///
/// let entry = |manager, operation, fields| json!({
///     "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": {"f:data": fields}});
/// let answer = json!({
///     "data": {"kept": "1", "dropped": "1", "mine": "1"},
///     "metadata": {"managedFields": [
///         entry("carto", "Apply", json!({"f:kept": {}})),
///         entry("cartographer", "Update", json!({"f:kept": {}, "f:dropped": {}})),
///         entry("kubectl-edit", "Update", json!({"f:mine": {}})),
///     ]},
/// });
/// let left = submission::without_dropped(&answer, "carto").unwrap();
/// assert_eq!(left["data"], json!({"kept": "1", "mine": "1"}));
/// assert_eq!(submission::without_dropped(&left, "carto"), None);
/// ```
pub fn without_dropped(answer: &Value, field_manager: &str) -> Option<Value> {
    let metadata = &answer["metadata"];
    let entries = metadata["managedFields"].as_array()?;
    let owner = controller(metadata);
    let is_of_go = |entry: &&Value| is_legacy(entry, field_manager, owner);
    let fields_of = |counts: &dyn Fn(&&Value) -> bool| {
        let sets = entries.iter().filter(counts);
        sets.filter_map(|entry| entry.get("fieldsV1"))
            .cloned()
            .reduce(union)
    };
    let taken = fields_of(&|entry| is_of_go(entry) && !is_ours(entry, field_manager))?;
    // All others, ours among them: what these name stays.
    let kept = fields_of(&|entry| !is_of_go(entry) || is_ours(entry, field_manager));
    let mut left = answer.clone();
    take(&mut left, &taken, kept.as_ref());
    (left != *answer).then_some(left)
}

/// Takes off a value what is named, and not kept.
fn take(value: &mut Value, taken: &Value, kept: Option<&Value>) {
    let Some(taken) = taken.as_object() else {
        return;
    };
    // A leaf covers all below.
    if kept.is_some_and(|kept| kept.as_object().is_some_and(Map::is_empty)) {
        return;
    }
    for (key, below) in taken {
        let kept = kept.and_then(|kept| kept.get(key));
        match (key.split_once(':'), &mut *value) {
            (Some(("f", name)), Value::Object(members)) => {
                let Some(member) = members.get_mut(name) else {
                    continue;
                };
                take(member, below, kept);
                if kept.is_none() && (is_leaf(below) || is_empty(member)) {
                    members.remove(name);
                }
            }
            (Some(("k", keys)), Value::Array(items)) => take_item(items, keys, below, kept),
            (Some(("v", text)), Value::Array(items)) if kept.is_none() => {
                let member: Option<Value> = serde_json::from_str(text).ok();
                items.retain(|item| Some(item) != member.as_ref());
            }
            _ => {}
        }
    }
}

/// The same of the item with these keys. An item that has nothing but its keys left goes.
fn take_item(items: &mut Vec<Value>, keys: &str, below: &Value, kept: Option<&Value>) {
    let Ok(Value::Object(keys)) = serde_json::from_str(keys) else {
        return;
    };
    let is_it = |item: &Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
    let Some(place) = items.iter().position(is_it) else {
        return;
    };
    let mut item = items[place].clone();
    take(&mut item, below, kept);
    let has_more = item
        .as_object()
        .is_some_and(|members| members.keys().any(|key| !keys.contains_key(key)));
    if kept.is_none() && (is_leaf(below) || !has_more) {
        items.remove(place);
    } else {
        for (key, value) in &keys {
            item[key] = value.clone();
        }
        items[place] = item;
    }
}

fn is_leaf(fields: &Value) -> bool {
    fields.as_object().is_none_or(Map::is_empty)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(spec: &Value, taken: &Value, ours: &Value) -> Value {
        let entry = |manager: &str, operation: &str, fields: &Value| json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsV1": {"f:spec": fields}});
        json!({"spec": spec, "metadata": {"managedFields": [
            entry("cartographer", "Update", taken), entry("carto", "Apply", ours)]}})
    }

    #[test]
    fn what_the_rendering_has_stays_and_what_it_dropped_goes_at_any_depth() {
        let spec = json!({"map": {"a": 1, "b": 2}, "gone": {"x": {"y": 1}}, "set": ["a", "b"],
            "items": [{"name": "a", "v": 1, "w": 2}, {"name": "b", "v": 1}]});
        let taken = json!({"f:map": {"f:a": {}, "f:b": {}}, "f:gone": {".": {}, "f:x": {"f:y": {}}},
            "f:set": {"v:\"a\"": {}, "v:\"b\"": {}},
            "f:items": {
                "k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:v": {}, "f:w": {}},
                "k:{\"name\":\"b\"}": {".": {}, "f:name": {}, "f:v": {}}}});
        let ours = json!({"f:map": {"f:a": {}}, "f:set": {"v:\"a\"": {}},
            "f:items": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:v": {}}}});
        let left = without_dropped(&answer(&spec, &taken, &ours), "carto").unwrap();
        assert_eq!(
            left["spec"],
            json!({"map": {"a": 1}, "set": ["a"], "items": [{"name": "a", "v": 1}]})
        );
    }

    #[test]
    fn what_is_ours_as_a_whole_is_not_looked_into() {
        let spec = json!({"free": {"a": 1}});
        let taken = json!({"f:free": {".": {}, "f:a": {}}});
        assert_eq!(
            without_dropped(&answer(&spec, &taken, &json!({"f:free": {}})), "carto"),
            None
        );
    }
}
