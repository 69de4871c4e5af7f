use serde_json::json;

use super::*;

fn parse(object: Value) -> Result<Owner, OwnerError> {
    Owner::parse(Family::SupplyChain, Arc::new(object))
}

#[test]
fn fields_are_taken_over() {
    let owner = parse(json!({
        "metadata": {"namespace": "ns", "name": "app", "uid": "u", "generation": 4, "labels": {"a": "b"}},
        "spec": {"serviceAccountName": "sa", "params": [{"name": "p", "value": null}]},
    }))
    .unwrap();
    assert_eq!(
        (
            owner.namespace.as_str(),
            owner.uid.as_str(),
            owner.generation
        ),
        ("ns", "u", 4)
    );
    assert_eq!(owner.labels["a"], "b");
    assert_eq!(owner.service_account_name.as_deref(), Some("sa"));
    assert_eq!(owner.params[0].value, Value::Null);
    assert_eq!(owner.status_ready(), ConditionStatus::Unknown);
    assert!(owner.previous_refs().is_empty());
}

#[test]
fn objects_no_api_server_would_hold_are_errors() {
    let cases = [
        (json!({}), "object has no metadata.namespace"),
        (
            json!({"metadata": {"namespace": "ns"}}),
            "object has no metadata.name",
        ),
        (
            json!({"metadata": {"namespace": "ns", "name": "app"}}),
            "object has no metadata.uid",
        ),
        (
            json!({"metadata": {"namespace": "ns", "name": "", "uid": "u"}}),
            "object has no metadata.name",
        ),
        (
            json!({"metadata": {"namespace": "a.b", "name": "app", "uid": "u"}}),
            "metadata.namespace: [a.b] is not a valid namespace name: it must be 1 to 63 lower case letters, digits and '-', \
             with a letter or digit at both ends; rename it",
        ),
        (
            json!({"metadata": {"namespace": "ns", "name": "a/b", "uid": "u"}}),
            "metadata.name: [a/b] is not a valid object name: it must be 1 to 253 lower case letters, digits, '-' and '.', \
             with a letter or digit at both ends and around each '.'; rename it",
        ),
        (
            json!({"metadata": {"namespace": "ns", "name": "app", "uid": "u", "labels": {"a": 1}}}),
            "metadata.labels cannot be read: invalid type: integer `1`, expected a string",
        ),
        (
            json!({"metadata": {"namespace": "ns", "name": "app", "uid": "u"}, "spec": {"params": {}}}),
            "spec.params cannot be read: invalid type: map, expected a sequence",
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(parse(object).unwrap_err().to_string(), expected);
    }
}

#[test]
fn previous_refs_are_those_of_the_status_once_each() {
    let stamped = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "a", "resource": "configmaps"});
    let pending = json!({"apiVersion": "x.io/v1", "kind": "Test", "namespace": "ns", "name": "b", "uid": "u-b",
        "resource": api_types::status::UNKNOWN_RESOURCE});
    let owner = parse(json!({
        "metadata": {"namespace": "ns", "name": "app", "uid": "u"},
        "status": {
            "resources": [
                {"name": "one", "stampedRef": stamped},
                {"name": "two", "stampedRef": stamped},
                {"name": "held"},
                {"name": "nameless", "stampedRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": ""}},
            ],
            "pendingRemovals": [pending],
        },
    }))
    .unwrap();
    let names: Vec<_> = owner
        .previous_refs()
        .into_iter()
        .map(|object| (object.name, object.uid, object.qualified_resource))
        .collect();
    assert_eq!(
        names,
        [
            ("a".to_owned(), None, Some("configmaps".to_owned())),
            ("b".to_owned(), Some("u-b".to_owned()), None)
        ]
    );
}

#[test]
fn a_status_that_cannot_be_read_counts_as_empty() {
    for status in [
        json!("x"),
        json!({"conditions": "x", "resources": [5], "supplyChainRef": []}),
        json!(null),
    ] {
        let owner = parse(
            json!({"metadata": {"namespace": "ns", "name": "app", "uid": "u"}, "status": status}),
        )
        .unwrap();
        assert_eq!(owner.status, OwnerStatus::default(), "{status}");
    }
}

#[test]
fn ready_is_read_from_the_status() {
    let owner = parse(json!({
        "metadata": {"namespace": "ns", "name": "app", "uid": "u"},
        "status": {"conditions": [
            {"type": "Ready", "status": "False", "reason": "R", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"},
        ]},
    }))
    .unwrap();
    assert_eq!(owner.status_ready(), ConditionStatus::False);
}

#[test]
fn a_status_survives_being_written_and_read() {
    let status: Value = serde_saphyr::from_str(
        "observedGeneration: 3
conditions:
- {type: Ready, status: 'True', reason: Ready, message: '', lastTransitionTime: 2024-01-01T00:00:00Z}
deliveryRef: {kind: ClusterDelivery, name: d}
resources:
- name: one
  stampedRef: {apiVersion: v1, kind: ConfigMap, namespace: ns, name: a, resource: configmaps}
  templateRef: {apiVersion: carto.run/v1alpha1, kind: ClusterTemplate, name: t}
  inputs: [{name: zero}]
  outputs: [{name: url, preview: x, digest: 'sha256:1', lastTransitionTime: 2024-01-01T00:00:00Z}]
  conditions:
  - {type: Ready, status: Unknown, reason: R, message: m, lastTransitionTime: 2024-01-01T00:00:00Z}
pendingRemovals:
- {apiVersion: v1, kind: ConfigMap, namespace: ns, name: b, resource: configmaps, uid: u}",
    )
    .unwrap();
    assert_eq!(
        OwnerStatus::read(Family::Delivery, Some(&status)).write(Family::Delivery),
        status
    );
}

#[test]
fn an_owner_with_a_deletion_timestamp_is_terminating() {
    let terminating = |time: Value| {
        let metadata =
            json!({"namespace": "ns", "name": "app", "uid": "u", "deletionTimestamp": time});
        parse(json!({ "metadata": metadata }))
            .unwrap()
            .is_terminating()
    };
    assert!(terminating(json!("2024-01-01T00:00:00Z")));
    assert!(!terminating(json!(null)));
}
