use std::sync::Arc;

use super::*;
use crate::Family;

fn owner(family: Family) -> Owner {
    let object = json!({"metadata": {"namespace": "ns", "name": "app", "uid": "u"}});
    Owner::parse(family, Arc::new(object)).unwrap()
}

fn labels(pairs: &[(&'static str, &str)]) -> WantedLabels {
    pairs
        .iter()
        .map(|(key, value)| (*key, (*value).to_owned()))
        .collect()
}

#[test]
fn labels_are_those_of_the_family() {
    let template = Template::compile(&json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "ClusterSourceTemplate", "metadata": {"name": "src"},
        "spec": {"urlPath": "a", "revisionPath": "b", "ytt": "", "lifecycle": "immutable"},
    }))
    .unwrap();
    let of = |family| {
        let blueprint =
            Blueprint::compile(family, &json!({"metadata": {"name": "chain"}})).unwrap();
        step_labels(&owner(family), &blueprint, &"fetch".into(), &template)
    };
    let common = [
        ("carto.run/resource-name", "fetch"),
        ("carto.run/template-kind", "ClusterSourceTemplate"),
        ("carto.run/cluster-template-name", "src"),
        ("carto.run/template-lifecycle", "immutable"),
    ];
    let supply_chain = [
        ("carto.run/workload-name", "app"),
        ("carto.run/workload-namespace", "ns"),
        ("carto.run/supply-chain-name", "chain"),
    ];
    let delivery = [
        ("carto.run/deliverable-name", "app"),
        ("carto.run/deliverable-namespace", "ns"),
        ("carto.run/delivery-name", "chain"),
    ];
    assert_eq!(
        of(Family::SupplyChain),
        labels(&[&supply_chain[..], &common[..]].concat())
    );
    assert_eq!(
        of(Family::Delivery),
        labels(&[&delivery[..], &common[..]].concat())
    );
}

#[test]
fn decoration_sets_namespace_owner_and_labels() {
    let rendering = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "x", "annotations": {"kept": "yes"}, "labels": {"own": "kept", "carto.run/a": "loses"},
            "ownerReferences": [{"kind": "Other"}],
        },
        "data": {"a": "b"},
    });
    let decorated = decorate(
        rendering,
        owner(Family::SupplyChain).identity(),
        &labels(&[("carto.run/a", "wins")]),
    )
    .unwrap();
    assert_eq!(
        decorated,
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "x", "namespace": "ns", "annotations": {"kept": "yes"},
                "labels": {"own": "kept", "carto.run/a": "wins"},
                "ownerReferences": [{
                    "apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": "app", "uid": "u",
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "data": {"a": "b"},
        })
    );
}

#[test]
fn only_the_owners_namespace_may_be_rendered() {
    let decorate = |namespace: Value| {
        let rendering = json!({"kind": "A", "metadata": {"namespace": namespace}});
        decorate(rendering, owner(Family::Delivery).identity(), &labels(&[]))
            .map(|object| object["metadata"]["namespace"].clone())
    };
    for fine in [json!(null), json!(""), json!("ns")] {
        assert_eq!(decorate(fine), Ok(json!("ns")));
    }
    for other in [json!("other"), json!(5)] {
        assert_eq!(
            decorate(other).unwrap_err().to_string(),
            "cannot set namespace in resource template"
        );
    }
}

#[test]
fn what_is_no_object_is_refused_with_what_it_is() {
    let error = |rendering: Value| {
        decorate(
            rendering,
            owner(Family::Delivery).identity(),
            &labels(&[("a", "b")]),
        )
        .unwrap_err()
        .to_string()
    };
    let cases = [
        (
            json!(null),
            "rendered object is not an object with a kind: found null",
        ),
        (
            json!("x"),
            "rendered object is not an object with a kind: found a text",
        ),
        (
            json!([]),
            "rendered object is not an object with a kind: found a list",
        ),
        (
            json!({"kind": ""}),
            "rendered object is not an object with a kind: found an object without kind",
        ),
        (
            json!({"kind": "A", "metadata": "x"}),
            "metadata of the rendered object is not an object",
        ),
        (
            json!({"kind": "A", "metadata": {"labels": []}}),
            "metadata.labels of the rendered object is not an object",
        ),
    ];
    for (rendering, expected) in cases {
        assert_eq!(error(rendering), expected);
    }
}

#[test]
fn metadata_and_labels_are_created_where_absent() {
    for rendering in [
        json!({"kind": "A"}),
        json!({"kind": "A", "metadata": {"labels": null}}),
    ] {
        let decorated = decorate(
            rendering,
            owner(Family::Delivery).identity(),
            &labels(&[("a", "b")]),
        )
        .unwrap();
        assert_eq!(decorated["metadata"]["labels"], json!({"a": "b"}));
    }
}

#[test]
fn nothing_is_put_into_metadata_that_is_null_and_that_is_refused() {
    let rendering = json!({"apiVersion": "v1", "kind": "A", "metadata": null});
    let identity = owner(Family::Delivery);
    let none = labels(&[]);
    let decorated = decorate(rendering.clone(), identity.identity(), &none).unwrap();
    assert_eq!(decorated, rendering);
    let refused = check_submittable(&decorated, Lifecycle::Mutable, &none).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "failed to get unstructured [/] from api server: resource name may not be empty"
    );
}

#[test]
fn objects_the_api_server_must_refuse_are_found_before() {
    use Lifecycle::{Immutable, Mutable, Tekton};
    let object = |name: Value, generate: Value| json!({"apiVersion": "v1", "kind": "A", "metadata": {"namespace": "ns", "name": name, "generateName": generate}});
    let check = |object: Value, lifecycle, labels: &WantedLabels| {
        check_submittable(&object, lifecycle, labels)
            .map(|labels| labels.len())
            .map_err(|error| error.to_string())
    };
    let none = labels(&[]);
    assert_eq!(
        check(object(json!("x"), json!(null)), Mutable, &none),
        Ok(0)
    );
    assert_eq!(
        check(object(json!("x"), json!(null)), Immutable, &none),
        Ok(0)
    );
    assert_eq!(
        check(object(json!(null), json!("x-")), Tekton, &none),
        Ok(0)
    );
    assert_eq!(
        check(object(json!(null), json!("x-")), Mutable, &none),
        Err(
            "failed to get unstructured [ns/] from api server: resource name may not be empty"
                .to_owned()
        )
    );
    assert_eq!(
        check(object(json!(""), json!("")), Immutable, &none),
        Err(
            "create: A \"\" is invalid: metadata.name: Required value: name or generateName is required"
                .to_owned()
        )
    );
    assert_eq!(
        check(
            json!({"kind": "A", "metadata": {"namespace": "ns", "name": "x"}}),
            Mutable,
            &none
        ),
        Err(
            "failed to get unstructured [ns/x] from api server: Object 'apiVersion' is missing"
                .to_owned()
        )
    );
}

#[test]
fn labels_that_are_too_long_are_explained() {
    let long = "x".repeat(64);
    let object = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}});
    let cases = [
        ("carto.run/workload-name", "the workload"),
        ("carto.run/supply-chain-name", "the blueprint"),
        ("carto.run/resource-name", "the resource of the blueprint"),
        ("carto.run/cluster-template-name", "the template"),
    ];
    for (key, subject) in cases {
        let labels = labels(&[(key, &long)]);
        let error = check_submittable(&object, Lifecycle::Mutable, &labels).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "label [{key}] would have value [{long}], which is longer than the 63 characters that Kubernetes \
                 allows; give {subject} a shorter name"
            )
        );
    }
    let fits = labels(&[("carto.run/workload-name", &long[1..])]);
    assert_eq!(
        check_submittable(&object, Lifecycle::Mutable, &fits),
        Ok(BTreeMap::from([(
            "carto.run/workload-name",
            long[1..].parse().unwrap()
        )]))
    );
}

/// The API server refuses such an object too, if it understands the question: in a label selector, a comma asks for
/// something else.
#[test]
fn labels_that_cannot_be_are_explained() {
    let object = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}});
    for value in ["build image", "a,b!=c", "-a", "é"] {
        let labels = labels(&[("carto.run/resource-name", value)]);
        let error = check_submittable(&object, Lifecycle::Immutable, &labels).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "label [carto.run/resource-name] would have value [{value}], which must be at most 63 letters, digits, \
                 '-', '_' and '.', with a letter or digit at both ends; rename the resource of the blueprint"
            )
        );
    }
}
