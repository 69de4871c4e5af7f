use serde_json::json;

use super::*;

#[test]
fn simple_templates_that_may_read_status_writes_are_recognised() {
    let cases = [
        ("text", false),
        ("$(workload.metadata.name)$", false),
        ("$(workload.metadata.generation)$", false),
        ("$(workload.metadata.labels['x'])$", false),
        ("$(workload.spec)$-$(params.status)$", false),
        ("$(deliverable.spec.params[0].value)$", false),
        ("$($.workload.spec.image)$", false),
        ("$(workload.kind)$ of $(source.url)$", false),
        ("$(workload.status.observedGeneration)$", true),
        (
            "$(workload.status.conditions[?(@.type==\"Ready\")].status)$",
            true,
        ),
        ("$($.deliverable.status)$", true),
        ("$(workload.metadata.resourceVersion)$", true),
        (
            "a-$(params.x)$-$(workload.metadata.resourceVersion)$-b",
            true,
        ),
        ("$(workload.metadata.managedFields)$", true),
        ("$(workload.metadata)$", true),
        ("$(workload['metadata'].*)$", true),
        ("$(deliverable)$", true),
        ("$(workload.*)$", true),
        ("$(..observedGeneration)$", true),
    ];
    for (text, expected) in cases {
        let template = Compiled::compile(&json!({"deep": [{"x": text}]}));
        assert_eq!(is_seen_by(&template), expected, "{text}");
    }
}

fn values(owner: &Value, params: &Value) -> BTreeMap<String, Value> {
    [
        ("workload", owner),
        ("deliverable", owner),
        ("params", params),
    ]
    .map(|(key, value)| (key.to_owned(), value.clone()))
    .into()
}

#[test]
fn the_basis_is_everything_but_what_a_status_write_changes() {
    let owner = json!({
        "metadata": {"name": "app", "generation": 1, "resourceVersion": "1", "managedFields": [1]},
        "spec": {"status": "a"}, "status": {"a": "b"},
    });
    let params = json!({"status": "p"});
    let before = basis("t", &values(&owner, &params));
    let changed = |pointer: &str| {
        let mut owner = owner.clone();
        *owner.pointer_mut(pointer).unwrap() = json!("other");
        basis("t", &values(&owner, &params)) != before
    };
    for pointer in [
        "/status",
        "/metadata/resourceVersion",
        "/metadata/managedFields",
    ] {
        assert!(!changed(pointer), "{pointer}");
    }
    for pointer in ["/metadata/generation", "/metadata/name", "/spec/status"] {
        assert!(changed(pointer), "{pointer}");
    }
    assert_ne!(
        basis("t", &values(&owner, &json!({"status": "q"}))),
        before,
        "an input"
    );
    assert_ne!(basis("u", &values(&owner, &params)), before, "the template");
}
