//! Names of immutable objects, so that a create can be repeated without making a second object.
//!
//! The name is derived from what is submitted: when the reply to a create is lost, or the process dies
//! before anything is recorded, the repeated create answers AlreadyExists and the object is adopted.
//! Whether that object is the one that was submitted is told by its values.

use api_types::ResourceName;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use template_language::digest::hex;

use crate::values::feed_text;

/// Longest name that the API server generates itself; longer prefixes are cut as it does.
const LONGEST_GENERATED: usize = 63;
const HASH_LENGTH: usize = 10;

/// The name of submission number `sequence` of a step: `generate_name`, cut where the API server cuts it, and a short hash.
///
/// Whoever derives it from the same facts gets the same name; the next submission has another one.
///
/// ```
/// use submission::derived_name;
///
/// let name = |sequence| derived_name("app-", "uid", &"build".into(), "sha256:a", sequence);
/// assert!(name(1).starts_with("app-"));
/// assert_eq!(name(1), name(1));
/// assert_ne!(name(1), name(2));
/// ```
pub fn derived_name(
    generate_name: &str,
    owner_uid: &str,
    resource: &ResourceName,
    digest: &str,
    sequence: u64,
) -> String {
    let mut hasher = Sha256::new();
    for part in [owner_uid, resource.as_str(), digest, &sequence.to_string()] {
        feed_text(&mut hasher, part);
    }
    let hash = hex(&hasher.finalize()[..HASH_LENGTH / 2]);
    let mut room = generate_name.len().min(LONGEST_GENERATED - HASH_LENGTH);
    while !generate_name.is_char_boundary(room) {
        room -= 1;
    }
    format!("{}{hash}", &generate_name[..room])
}

/// Whether every rendered field is in the live object with the same value.
///
/// This is how an object of the Go controller, which has no digest, is recognised as the rendering.
/// Label `carto.run/cluster-template-name` is left aside: the Go controller leaves it empty for options. Lists are compared as
/// sets. What the API server drops when it stores an object (`{}`, `[]`, null) need not be there.
///
/// ```
/// use serde_json::json;
///
/// let live = json!({"spec": {"image": "a", "replicas": 1}, "status": {}});
/// assert!(submission::contains(&live, &json!({"spec": {"image": "a", "env": []}})));
/// assert!(!submission::contains(&live, &json!({"spec": {"image": "b"}})));
/// ```
pub fn contains(live: &Value, rendered: &Value) -> bool {
    match (live, rendered) {
        (Value::Object(live), Value::Object(rendered)) => rendered.iter().all(|(key, value)| {
            key == api_types::labels::CLUSTER_TEMPLATE_NAME
                || key == "generateName"
                || live
                    .get(key)
                    .map_or_else(|| is_empty(value), |held| contains(held, value))
        }),
        (Value::Array(live), Value::Array(rendered)) => {
            live.len() >= rendered.len()
                && rendered
                    .iter()
                    .all(|value| live.iter().any(|held| contains(held, value)))
        }
        (Value::Number(live), Value::Number(rendered)) => live.as_f64() == rendered.as_f64(),
        (live, rendered) => live == rendered,
    }
}

/// What the server drops when it stores an object.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_submission_has_the_same_name_and_the_next_one_another() {
        let named = |step: &str, digest, sequence| {
            derived_name("app-", "uid", &step.into(), digest, sequence)
        };
        let first = named("build", "sha256:a", 1);
        assert_eq!(first, named("build", "sha256:a", 1));
        assert_ne!(first, named("build", "sha256:a", 2));
        assert_ne!(first, named("buil", "dsha256:a", 1));
        assert!(first.starts_with("app-") && first.len() == 4 + HASH_LENGTH);
    }

    #[test]
    fn long_prefixes_are_cut_on_a_character() {
        assert_eq!(
            derived_name(&"x".repeat(200), "u", &"r".into(), "d", 1).len(),
            LONGEST_GENERATED
        );
        assert!(
            derived_name(&"é".repeat(100), "u", &"r".into(), "d", 1).len() <= LONGEST_GENERATED
        );
    }

    #[test]
    fn a_live_object_with_defaults_contains_its_rendering() {
        let live = json!({"metadata": {"name": "a-x1", "uid": "u", "labels": {"carto.run/cluster-template-name": ""}}, "spec": {"n": 1, "defaulted": true}});
        assert!(contains(
            &live,
            &json!({"metadata": {"generateName": "a-", "labels": {"carto.run/cluster-template-name": "t"}}, "spec": {"n": 1.0, "gone": {}}})
        ));
        assert!(!contains(&live, &json!({"spec": {"n": 2}})));
        assert!(!contains(&live, &json!({"spec": {"new": "field"}})));
    }
}
