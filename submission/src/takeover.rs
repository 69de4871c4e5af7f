//! Taking over what the Go controller wrote, or we did where nothing is stored.
//!
//! It wrote with create and merge patch, so its managed fields entry says `Update`, under the name of
//! its binary. Left alone, that entry would co-own every field, and a field that a template drops would stay for ever (the same
//! happened elsewhere: fluxcd/kustomize-controller#486). The entry is turned into our Apply entry once.
//! So is an entry of our own for the `stringData` of a Secret: what it names is in `data`, and a key
//! that the template drops would stay there.
//!
//! Objects of immutable families are never applied. They are patched where they lack a label or the digest.

use serde_json::{Map, Value, json};

use api_types::labels;

use crate::managed::{is_legacy, is_ours};

/// Whether managed fields are to be migrated: the Go controller's, or our own of old.
pub fn needs_migration(live: &Value, field_manager: &str) -> bool {
    let metadata = &live["metadata"];
    let entries = metadata["managedFields"].as_array();
    let mut entries = entries.into_iter().flatten();
    entries.any(|entry| is_legacy(entry, field_manager, controller(metadata)))
}

/// The uid of the owner that the object is made for, as it says.
pub(crate) fn controller(metadata: &Value) -> Option<&str> {
    let references = metadata["ownerReferences"].as_array()?;
    let controller = references.iter().find(|it| it["controller"] == true)?;
    controller["uid"].as_str()
}

/// JSON patch that hands the fields of such entries to us as we would own them now, and takes away the
/// reference to the controller with the uid `released`; `None` when there is nothing to change.
pub fn migration(live: &Value, field_manager: &str, released: Option<&str>) -> Option<Value> {
    let metadata = live.get("metadata")?;
    let version = metadata.get("resourceVersion")?;
    let owner = controller(metadata).filter(|uid| released != Some(*uid));
    let fields = migrated_fields(metadata, field_manager, owner).map(
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

fn migrated_fields(
    metadata: &Value,
    field_manager: &str,
    owner: Option<&str>,
) -> Option<Vec<Value>> {
    let entries = metadata.get("managedFields")?.as_array()?;
    let (legacy, others): (Vec<&Value>, Vec<&Value>) = entries
        .iter()
        .partition(|entry| is_legacy(entry, field_manager, owner));
    let newest = legacy.last()?;
    let (ours, kept): (Vec<&Value>, Vec<&Value>) = others
        .into_iter()
        .partition(|entry| is_ours(entry, field_manager));
    let sets = ours
        .iter()
        .chain(&legacy)
        .filter_map(|entry| entry.get("fieldsV1"));
    let fields = as_stored(sets.cloned().reduce(union)?, newest);
    let mut merged = (*newest).clone();
    merged["manager"] = Value::from(field_manager);
    merged["operation"] = Value::from("Apply");
    merged["fieldsV1"] = fields;
    Some(kept.into_iter().cloned().chain([merged]).collect())
}

/// The API server stores the texts of a Secret in `data`; no other kind of the core group has any.
fn as_stored(mut fields: Value, entry: &Value) -> Value {
    if entry["apiVersion"] == "v1"
        && let Some(members) = fields.as_object_mut()
        && let Some(texts) = members.remove("f:stringData")
    {
        let data = members.remove("f:data").unwrap_or_else(|| json!({}));
        members.insert("f:data".into(), union(data, texts));
    }
    fields
}

/// JSON patch that writes the digest of its rendering on the object with this uid, for people.
pub fn marking(live: &Value, uid: &str, digest: &str) -> Value {
    let mut patch = vec![json!({"op": "test", "path": "/metadata/uid", "value": uid})];
    let digest = (labels::RENDERED_DIGEST, &Value::from(digest));
    patch.extend(additions(live, "annotations", [digest]));
    Value::from(patch)
}

/// JSON patch that gives a live object the labels of its rendering; `None` when it has them.
pub fn relabelling(live: &Value, rendered: &Value) -> Option<Value> {
    let metadata = &live["metadata"];
    let labels = rendered["metadata"]["labels"].as_object()?.iter();
    let mut missing = labels
        .filter(|(key, value)| metadata["labels"].get(key.as_str()) != Some(value))
        .map(|(key, value)| (key.as_str(), value))
        .peekable();
    missing.peek()?;
    let mut patch = vec![json!({"op": "test", "path": "/metadata/uid", "value": metadata["uid"]})];
    patch.extend(additions(live, "labels", missing));
    Some(Value::from(patch))
}

/// Operations that put members into a map of the metadata, which may not be there.
fn additions<'m>(
    live: &Value,
    map: &str,
    members: impl IntoIterator<Item = (&'m str, &'m Value)>,
) -> Vec<Value> {
    let path = format!("/metadata/{map}");
    let is_there = live["metadata"][map].is_object();
    let absent = (!is_there).then(|| json!({"op": "add", "path": path, "value": {}}));
    let members = members.into_iter().map(|(key, value)| {
        let key = key.replace('~', "~0").replace('/', "~1");
        json!({"op": "add", "path": format!("{path}/{key}"), "value": value})
    });
    absent.into_iter().chain(members).collect()
}

/// Union of two field sets; an empty set is a leaf, which `.` keeps when it gets children.
pub(crate) fn union(left: Value, right: Value) -> Value {
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
    fn texts_of_a_secret_that_we_applied_become_data() {
        let live = json!({"kind": "Secret", "metadata": {"resourceVersion": "7", "managedFields": [
            {"manager": "carto", "operation": "Apply", "apiVersion": "v1",
             "fieldsV1": {"f:data": {"f:a": {}}, "f:stringData": {".": {}, "f:b": {}}, "f:type": {}}},
        ]}});
        let patch = migration(&live, "carto", None).unwrap();
        let ours = json!({"f:data": {".": {}, "f:a": {}, "f:b": {}}, "f:type": {}});
        assert_eq!(patch[1]["value"][0]["fieldsV1"], ours);
        assert_eq!(patch[1]["value"].as_array().unwrap().len(), 1);
        assert_eq!(migration(&live, "somebody-else", None), None);
    }

    /// The incident: the note of a tenant, who had cleared managed fields, was taken away as if it were ours.
    #[test]
    fn what_anybody_may_have_set_before_managed_fields_were_cleared_is_nobodys_to_hand_over() {
        let live = stamped("u", &[("before-first-apply", marks("u", &STEP))]);
        assert!(!needs_migration(&live, "carto"));
        assert_eq!(migration(&live, "carto", None), None);
    }

    /// An object as a Go controller creates it; the entries of managed fields are of these managers and field sets.
    fn stamped(uid: &str, entries: &[(&str, Value)]) -> Value {
        let entries = entries.iter().map(|(manager, fields)| {
            json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "fieldsV1": fields})
        });
        json!({"metadata": {
            "resourceVersion": "7",
            "ownerReferences": [{"uid": uid, "controller": true}],
            "managedFields": entries.collect::<Vec<_>>(),
        }})
    }

    fn marks(uid: &str, labels: &[&str]) -> Value {
        let labels = labels
            .iter()
            .map(|label| (format!("f:carto.run/{label}"), json!({})));
        json!({
            "f:metadata": {
                "f:labels": labels.collect::<Map<String, Value>>(),
                "f:ownerReferences": {".": {}, format!("k:{{\"uid\":\"{uid}\"}}"): {}},
            },
            "f:data": {"f:a": {}},
        })
    }

    const STEP: [&str; 3] = ["resource-name", "template-kind", "template-lifecycle"];

    #[test]
    fn who_stamped_an_object_is_known_by_its_marks_whatever_the_binary_is_called() {
        for manager in ["cmd", "manager", "cartographer-v0.8.11"] {
            let live = stamped("u", &[(manager, marks("u", &STEP))]);
            assert!(needs_migration(&live, "carto"), "{manager}");
            let patch = migration(&live, "carto", None).unwrap();
            let entries = patch[1]["value"].as_array().unwrap();
            assert_eq!(entries.len(), 1);
            assert_eq!(entries[0]["manager"], "carto");
            assert_eq!(entries[0]["fieldsV1"]["f:data"], json!({"f:a": {}}));
            assert!(
                !needs_migration(&live, manager),
                "what we created ourselves"
            );
        }
    }

    #[test]
    fn who_wrote_a_part_of_the_marks_keeps_what_is_his() {
        for fields in [
            marks("u", &STEP[..2]),
            marks("another", &STEP),
            json!({"f:metadata": {"f:labels": {}}}),
            json!({"f:metadata": "text"}),
        ] {
            let live = stamped("u", &[("kubectl-label", fields.clone())]);
            assert!(!needs_migration(&live, "carto"), "{fields}");
            assert_eq!(migration(&live, "carto", None), None);
        }
    }

    #[test]
    fn what_was_restored_from_a_backup_keeps_what_others_had_set() {
        let live = stamped("old", &[("velero", marks("old", &STEP))]);
        let patch = migration(&live, "carto", Some("old")).unwrap();
        let paths: Vec<&str> = patch
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|it| it["path"].as_str())
            .collect();
        assert_eq!(
            paths,
            ["/metadata/resourceVersion", "/metadata/ownerReferences"]
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
