//! Taking over an object that the Go controller wrote.
//!
//! It wrote with create and merge patch, so its managed fields entry says `Update`. Left alone, that
//! entry would co-own every field, and a field that a template drops would stay for ever (the same
//! happened elsewhere: fluxcd/kustomize-controller#486). The entry is turned into our Apply entry once.

use serde_json::{Map, Value, json};

use crate::stamped::managed::{is_legacy, is_ours};

/// JSON patch that hands the Go controller's fields to us, and takes away the reference to the controller with the uid
/// `released`; `None` when there is nothing to change.
pub(super) fn migration(
    live: &Value,
    field_manager: &str,
    released: Option<&str>,
) -> Option<Value> {
    let metadata = live.get("metadata")?;
    let version = metadata.get("resourceVersion")?;
    let fields = migrated_fields(metadata, field_manager).map(
        |entries| json!({"op": "replace", "path": "/metadata/managedFields", "value": entries}),
    );
    let references = released
        .and_then(|uid| kept_references(metadata, uid))
        .map(|kept| json!({"op": "replace", "path": "/metadata/ownerReferences", "value": kept}));
    let changes: Vec<Value> = references.into_iter().chain(fields).collect();
    if changes.is_empty() {
        return None;
    }
    let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": version});
    Some(std::iter::once(test).chain(changes).collect())
}

fn kept_references(metadata: &Value, released: &str) -> Option<Vec<Value>> {
    let references = metadata.get("ownerReferences")?.as_array()?;
    let kept = references
        .iter()
        .filter(|reference| reference["uid"] != released);
    Some(kept.cloned().collect())
}

fn migrated_fields(metadata: &Value, field_manager: &str) -> Option<Vec<Value>> {
    let entries = metadata.get("managedFields")?.as_array()?;
    let (legacy, others): (Vec<&Value>, Vec<&Value>) =
        entries.iter().partition(|entry| is_legacy(entry));
    let newest = legacy.last()?;
    let (ours, kept): (Vec<&Value>, Vec<&Value>) = others
        .into_iter()
        .partition(|entry| is_ours(entry, field_manager));
    let sets = ours
        .iter()
        .chain(&legacy)
        .filter_map(|entry| entry.get("fieldsV1"));
    let fields = sets.cloned().reduce(union)?;
    let mut merged = (*newest).clone();
    merged["manager"] = Value::from(field_manager);
    merged["operation"] = Value::from("Apply");
    merged["fieldsV1"] = fields;
    Some(kept.into_iter().cloned().chain([merged]).collect())
}

/// Union of two field sets; an empty set is a leaf, which `.` keeps when it gets children.
fn union(left: Value, right: Value) -> Value {
    let (Value::Object(mut left), Value::Object(right)) = (left, right) else {
        return Value::Object(Map::new());
    };
    if left.is_empty() != right.is_empty() {
        let mut fields = if left.is_empty() { right } else { left };
        if fields.keys().any(|key| key != ".") {
            fields.insert(".".into(), json!({}));
        }
        return Value::Object(fields);
    }
    for (key, value) in right {
        let merged = match left.remove(&key) {
            Some(existing) => union(existing, value),
            None => value,
        };
        left.insert(key, merged);
    }
    Value::Object(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legacy_entry_becomes_ours_and_others_stay() {
        let live = json!({"metadata": {"resourceVersion": "7", "managedFields": [
            {"manager": "cartographer", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}},
            {"manager": "kubectl", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:b": {}}}},
            {"manager": "cartographer", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]}});
        let patch = migration(&live, "carto", None).unwrap();
        assert_eq!(patch[0]["value"], "7");
        let entries = patch[1]["value"].as_array().unwrap();
        assert_eq!(entries.len(), 3);
        assert_eq!(
            entries[2],
            json!({"manager": "carto", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {"f:data": {"f:a": {}}}})
        );
    }

    #[test]
    fn an_object_without_a_legacy_entry_needs_no_migration() {
        let live = json!({"metadata": {"resourceVersion": "7", "managedFields": [{"manager": "kubectl", "operation": "Update"}]}});
        assert_eq!(migration(&live, "carto", None), None);
    }

    #[test]
    fn the_reference_to_an_owner_that_is_no_more_goes_and_others_stay() {
        let live = json!({"metadata": {"resourceVersion": "7", "ownerReferences": [
            {"uid": "old", "controller": true}, {"uid": "other"}]}});
        let patch = migration(&live, "carto", Some("old")).unwrap();
        assert_eq!(patch[1]["path"], "/metadata/ownerReferences");
        assert_eq!(patch[1]["value"], json!([{"uid": "other"}]));
    }

    #[test]
    fn the_union_of_field_sets_keeps_leaves_and_children() {
        let left = json!({"f:a": {}, "f:b": {"f:x": {}}});
        let right = json!({"f:a": {"f:y": {}}, "f:b": {"f:z": {}}, "f:c": {}});
        assert_eq!(
            union(left, right),
            json!({"f:a": {".": {}, "f:y": {}}, "f:b": {"f:x": {}, "f:z": {}}, "f:c": {}})
        );
    }
}
