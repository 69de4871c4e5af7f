use serde_json::json;

use super::*;

#[test]
fn templates_that_may_read_status_writes_are_recognised() {
    let cases = [
        ("#@ data.values.workload.metadata.name", false),
        ("#@ data.values.workload.spec", false),
        ("#@ data.values.deliverable.spec.params[0].value", false),
        ("#@ data.values.workload.metadata.labels['x']", false),
        ("#@ data.values.params.x + data.values.source.url", false),
        (
            "metadata:\n  labels:\n    carto.run/workload-name: #@ data.values.workload.metadata.name",
            false,
        ),
        ("spec:\n  values:\n    a: #@ data.values.params.a", false),
        ("- values:\n    a: b", false),
        ("plain: text", false),
        ("#@ data.values.workload.status.conditions", true),
        ("#@ data.values.workload.metadata.resourceVersion", true),
        ("#@ data.values.workload.metadata.managedFields", true),
        ("#@ data.values.workload.metadata", true),
        ("#@ data.values.workload", true),
        ("#@ data.values.deliverable\n", true),
        ("#@ data.values", true),
        ("#@ data.values['workload']", true),
        ("#@ getattr(data, 'values')", true),
        ("#@ getattr(data.values, 'workload')", true),
        ("#@ w = data.values.workload\n#@ w.status", true),
        ("#@ def f(values): return values.x", true),
    ];
    for (text, expected) in cases {
        assert_eq!(sees_status_writes(text), expected, "{text}");
    }
}

fn values(status: &str, resource_version: &str, spec: &str) -> BTreeMap<String, Value> {
    let owner = json!({
        "metadata": {"name": "app", "resourceVersion": resource_version, "managedFields": [resource_version]},
        "spec": spec, "status": status,
    });
    BTreeMap::from([
        ("workload".to_owned(), owner.clone()),
        ("deliverable".to_owned(), owner),
        ("params".to_owned(), json!({})),
    ])
}

#[test]
fn digest_of_values_stays_when_only_status_was_written() {
    let digest = |values, sees| values_digest(&values, sees);
    assert_eq!(
        digest(values("a", "1", "s"), false),
        digest(values("b", "2", "s"), false)
    );
    assert_ne!(
        digest(values("a", "1", "s"), false),
        digest(values("a", "1", "t"), false)
    );
    assert_ne!(
        digest(values("a", "1", "s"), true),
        digest(values("b", "2", "s"), true)
    );
}

#[test]
fn digest_of_values_sees_every_other_key() {
    let mut changed = values("a", "1", "s");
    changed.insert("params".to_owned(), json!({"status": "x"}));
    assert_ne!(
        values_digest(&values("a", "1", "s"), false),
        values_digest(&changed, false)
    );
}
