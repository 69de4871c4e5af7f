//! In which fields two objects differ.

use api_types::labels;
use serde_json::Value;

/// So many fields are named.
const MOST: usize = 20;

/// What the API server writes, and who set what.
const ASIDE: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "uid",
    "generateName",
    "selfLink",
];

/// The paths at which the second object is another than the first, the status aside, and what the controllers write for
/// people: the digest of the rendering, and the name of the template, which the Go controller leaves empty for options.
pub(super) fn difference(before: &Value, after: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let keys = |value: &Value| -> Vec<String> {
        let members = value.as_object().into_iter().flatten();
        members.map(|(key, _)| key.clone()).collect()
    };
    let mut all = keys(before);
    all.extend(keys(after));
    all.sort();
    all.dedup();
    for key in all.iter().filter(|key| *key != "status") {
        compare(&before[key], &after[key], key, &mut found);
    }
    found.truncate(MOST);
    found
}

fn compare(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    if is_aside(before, path) || found.len() > MOST {
        return;
    }
    match (before, after) {
        (Value::Object(_) | Value::Null, Value::Object(_)) | (Value::Object(_), Value::Null) => {
            let members = [before, after].into_iter().filter_map(Value::as_object);
            let mut keys: Vec<&String> = members.flat_map(|members| members.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let (before, after) = (before.get(key), after.get(key));
                let path = format!("{path}.{key}");
                compare(
                    before.unwrap_or(&Value::Null),
                    after.unwrap_or(&Value::Null),
                    &path,
                    found,
                );
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (index, (before, after)) in before.iter().zip(after).enumerate() {
                compare(before, after, &format!("{path}[{index}]"), found);
            }
        }
        (before, after) if before != after => found.push(path.to_owned()),
        _ => {}
    }
}

fn is_aside(before: &Value, path: &str) -> bool {
    let Some(field) = path.strip_prefix("metadata.") else {
        return false;
    };
    let told = [
        labels::RENDERED_DIGEST,
        labels::SUBMISSION,
        labels::OWNER_GENERATION,
    ];
    let is_told = field.strip_prefix("annotations.");
    let is_option = field.strip_prefix("labels.") == Some(labels::CLUSTER_TEMPLATE_NAME);
    ASIDE.contains(&field)
        || is_told.is_some_and(|key| told.contains(&key))
        || (is_option && *before == "")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_named_by_their_paths_and_what_controllers_write_is_left_out() {
        let before = json!({
            "metadata": {"resourceVersion": "1", "labels": {"carto.run/cluster-template-name": "", "a": "1"}},
            "spec": {"same": 1, "changed": {"a": 1, "b": 1}, "gone": true, "list": [1, 2], "longer": [1]},
            "status": {"phase": "a"},
        });
        let after = json!({
            "metadata": {
                "resourceVersion": "2",
                "labels": {"carto.run/cluster-template-name": "t", "a": "2"},
                "annotations": {"carto.run/rendered-digest": "sha256:a"},
            },
            "spec": {"same": 1, "changed": {"a": 1, "b": 2}, "new": {"x": 1}, "list": [1, 3], "longer": [1, 2]},
        });
        assert_eq!(
            difference(&before, &after),
            [
                "metadata.labels.a",
                "spec.changed.b",
                "spec.gone",
                "spec.list[1]",
                "spec.longer",
                "spec.new.x",
            ]
        );
        assert!(difference(&before, &before).is_empty());
    }
}
