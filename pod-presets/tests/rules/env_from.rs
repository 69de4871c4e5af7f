//! Where variables come from.

use serde_json::json;

use crate::build::{injected, messages, one, preset, result};

#[test]
fn sources_are_appended_once_and_the_prefix_is_a_part_of_what_they_are() {
    let map = |name: &str| json!({"configMapRef": {"name": name}});
    let secret = |name: &str| json!({"secretRef": {"name": name}});
    let prefixed = |prefix: &str| json!({"prefix": prefix, "configMapRef": {"name": "a"}});
    for (name, own, wished, expected) in [
        (
            "empty original",
            json!([]),
            json!([map("a")]),
            json!([map("a")]),
        ),
        (
            "good merge",
            json!([map("a"), secret("a")]),
            json!([secret("b"), map("a"), prefixed("X_")]),
            json!([map("a"), secret("a"), secret("b"), prefixed("X_")]),
        ),
        (
            "twice in a preset",
            json!([]),
            json!([map("a"), map("a")]),
            json!([map("a")]),
        ),
        (
            "an empty prefix is none",
            json!([prefixed("")]),
            json!([map("a")]),
            json!([prefixed("")]),
        ),
        (
            "a source that is not optional",
            json!([{"configMapRef": {"name": "a", "optional": false}}]),
            json!([map("a")]),
            json!([{"configMapRef": {"name": "a", "optional": false}}]),
        ),
    ] {
        let preset = preset("p", &json!({"envFrom": wished}));
        let after = result(&one(&json!({"envFrom": own})), &[&preset]);
        assert_eq!(
            after["spec"]["containers"][0]["envFrom"], expected,
            "{name}"
        );
    }
}

#[test]
fn the_same_source_that_is_optional_is_a_conflict_before_anything_is_changed() {
    let own = json!({"envFrom": [{"configMapRef": {"name": "a", "optional": true}}]});
    let spec = json!({"env": [{"name": "A"}], "envFrom": [{"configMapRef": {"name": "a"}}]});
    let injection = injected(&one(&own), &[&preset("p", &spec)]);
    assert_eq!(injection.pod, None);
    assert_eq!(
        messages(&injection),
        ["Conflict on pod preset. Duplicate envFrom configMap a."]
    );
    let explanation = injection.conflicts[0].explanation();
    assert!(explanation.starts_with("merging envFrom for p has a conflict on configMap a: \n"));
}

#[test]
fn a_variable_and_a_source_with_the_same_key_are_no_conflict() {
    let own = json!({"env": [{"name": "A", "value": "1"}]});
    let preset = preset(
        "p",
        &json!({"envFrom": [{"configMapRef": {"name": "has-a"}}]}),
    );
    let injection = injected(&one(&own), &[&preset]);
    assert!(injection.conflicts.is_empty() && injection.pod.is_some());
}
