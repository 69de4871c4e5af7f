//! Variables.

use serde_json::{Value, json};

use crate::build::{injected, messages, one, preset, result};

#[test]
fn variables_are_appended_in_order_and_equal_ones_are_left_out() {
    for (name, own, wished, expected) in [
        (
            "empty original",
            json!([]),
            json!([{"name": "A", "value": "1"}]),
            json!([{"name": "A", "value": "1"}]),
        ),
        (
            "good merge",
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]),
            json!([{"name": "C", "value": "3"}, {"name": "B", "value": "2"}, {"name": "D"}]),
            json!([{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C", "value": "3"}, {"name": "D"}]),
        ),
        (
            "the last duplicate counts",
            json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
            json!([{"name": "A", "value": "2"}]),
            json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        ),
        (
            "names are case-sensitive",
            json!([{"name": "a"}]),
            json!([{"name": "A", "value": "1"}]),
            json!([{"name": "a"}, {"name": "A", "value": "1"}]),
        ),
        (
            "references are texts",
            json!([{"name": "A", "value": "$(B)"}]),
            json!([{"name": "A", "value": "$(B)"}]),
            json!([{"name": "A", "value": "$(B)"}]),
        ),
    ] {
        let preset = preset("p", &json!({"env": wished}));
        let after = result(&one(&json!({"env": own})), &[&preset]);
        assert_eq!(after["spec"]["containers"][0]["env"], expected, "{name}");
        assert!(after["metadata"]["annotations"].is_object(), "{name}");
    }
}

#[test]
fn equal_is_what_is_equal_with_what_the_api_server_fills_in() {
    let field = |fields: Value| json!({"name": "A", "valueFrom": {"fieldRef": fields}});
    for (own, wished, is_equal) in [
        (
            json!({"name": "A"}),
            json!({"name": "A", "value": ""}),
            true,
        ),
        (
            json!({"name": "A", "value": "x"}),
            json!({"name": "A"}),
            false,
        ),
        (
            field(json!({"fieldPath": "metadata.name", "apiVersion": "v1"})),
            field(json!({"fieldPath": "metadata.name"})),
            true,
        ),
        (
            field(json!({"fieldPath": "metadata.name", "apiVersion": "v1"})),
            field(json!({"fieldPath": "metadata.uid"})),
            false,
        ),
        (
            json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": false}}}),
            json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}),
            true,
        ),
        (
            json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": true}}}),
            json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}),
            false,
        ),
        (
            json!({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}),
            json!({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}),
            true,
        ),
        (
            json!({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}}),
            json!({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1024Ki"}}}),
            true,
        ),
    ] {
        let preset = preset("p", &json!({"env": [wished]}));
        let injection = injected(&one(&json!({"env": [own]})), &[&preset]);
        assert_eq!(injection.conflicts.is_empty(), is_equal, "{own} {wished}");
        assert_eq!(injection.pod.is_some(), is_equal, "{own} {wished}");
    }
}

#[test]
fn another_value_is_a_conflict_and_nothing_is_injected() {
    let pod = one(&json!({"env": [{"name": "A", "value": "mine"}]}));
    let preset = preset(
        "p",
        &json!({"env": [{"name": "B"}, {"name": "A", "value": "theirs"}]}),
    );
    let injection = injected(&pod, &[&preset]);
    assert_eq!(injection.pod, None);
    assert_eq!(injection.applied, []);
    assert_eq!(
        messages(&injection),
        ["Conflict on pod preset. Duplicate env A."]
    );
    assert_eq!(
        injection.warnings,
        ["PodPreset p: Conflict on pod preset. Duplicate env A."]
    );
    assert_eq!(
        injection.conflicts[0].explanation(),
        "merging env for p has a conflict on A: \n{\"name\":\"A\",\"value\":\"theirs\"}\ndoes not match\n\
         {\"name\":\"A\",\"value\":\"mine\"}\n in container"
    );
    let told = format!("{:?} {:?}", injection.conflicts, injection.warnings);
    assert!(!told.contains("mine") && !told.contains("theirs"), "{told}");
}
