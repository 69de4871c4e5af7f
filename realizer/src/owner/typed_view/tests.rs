#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

use serde_json::json;

use super::*;

fn workload(spec: Value) -> Views {
    let object = json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
        "metadata": {"namespace": "ns", "name": "app", "uid": "u"},
        "spec": spec,
    });
    Views::of_owner(Family::SupplyChain, &object)
}

#[test]
fn unset_fields_of_a_workload_look_as_their_go_type_decides() {
    let typed = workload(json!({})).typed;
    let cases = [
        ("/spec/source", Some(json!(null))),
        ("/spec/image", Some(json!(null))),
        ("/spec/resources", Some(json!(null))),
        ("/spec/source/git", None),
        ("/spec/env", Some(json!([]))),
        ("/spec/build", Some(json!({"env": []}))),
        ("/spec/build/env", Some(json!([]))),
        ("/spec/params", Some(json!([]))),
        ("/spec/serviceClaims", Some(json!([]))),
        ("/spec/serviceAccountName", Some(json!(""))),
        ("/metadata/labels", Some(json!(null))),
        ("/metadata/annotations", Some(json!(null))),
        ("/metadata/ownerReferences", Some(json!([]))),
        ("/metadata/finalizers", Some(json!([]))),
        ("/metadata/generateName", Some(json!(""))),
        ("/metadata/generation", Some(json!(0))),
        ("/metadata/labels/missing", None),
        ("/metadata/creationTimestamp", Some(json!(null))),
        ("/metadata/deletionTimestamp", Some(json!(null))),
        ("/status/observedGeneration", Some(json!(0))),
        ("/status/supplyChainRef/name", Some(json!(""))),
        ("/status/resources", Some(json!([]))),
        ("/status/conditions", Some(json!([]))),
        ("/spec/unheardOf", None),
    ];
    for (pointer, expected) in cases {
        assert_eq!(typed.pointer(pointer), expected.as_ref(), "{pointer}");
    }
}

#[test]
fn unset_fields_below_set_parents_are_null() {
    let typed = workload(json!({
        "source": {"git": {}}, "resources": {}, "env": [{"name": "A"}], "serviceClaims": [{"name": "db"}],
    }))
    .typed;
    let cases = [
        ("/spec/source/git/url", json!(null)),
        ("/spec/source/git/ref", json!(null)),
        ("/spec/source/image", json!(null)),
        ("/spec/source/subPath", json!(null)),
        ("/spec/resources/limits", json!(null)),
        ("/spec/env/0/value", json!("")),
        ("/spec/env/0/valueFrom", json!(null)),
        ("/spec/serviceClaims/0/ref", json!(null)),
    ];
    for (pointer, expected) in cases {
        assert_eq!(typed.pointer(pointer), Some(&expected), "{pointer}");
    }
}

#[test]
fn set_fields_stay_as_they_are() {
    let spec = json!({
        "params": [{"name": "p", "value": {"deep": [1, {"x": null}]}}],
        "source": {"git": {"url": "u", "ref": {"branch": "main", "tag": "t", "commit": "c"}}, "image": "i", "subPath": "s"},
        "build": {"env": [{"name": "A", "value": "1"}]},
        "image": "img",
        "resources": {"limits": {"cpu": "1"}},
        "serviceAccountName": "sa",
        "unheardOf": {"by": "go"},
    });
    let views = workload(spec.clone());
    for (pointer, expected) in [
        ("/spec/params", &spec["params"]),
        ("/spec/source", &spec["source"]),
        ("/spec/unheardOf", &spec["unheardOf"]),
        ("/spec/serviceAccountName", &spec["serviceAccountName"]),
        ("/spec/resources/limits", &spec["resources"]["limits"]),
        ("/spec/image", &spec["image"]),
    ] {
        assert_eq!(
            views.typed.pointer(pointer),
            Some(expected),
            "typed {pointer}"
        );
        assert_eq!(
            views.json.pointer(pointer),
            Some(expected),
            "json {pointer}"
        );
    }
}

#[test]
fn quantities_are_canonical_text_in_both_views() {
    let divisor = |divisor: Value| json!({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": divisor}}});
    let views = workload(json!({
        "resources": {"limits": {"cpu": 2, "memory": "1024Mi"}, "requests": {"cpu": "0.5"}},
        "env": [divisor(json!(null)), divisor(json!("1000m"))],
    }));
    for view in [&views.typed, &views.json] {
        let limits = view.pointer("/spec/resources/limits");
        assert_eq!(limits, Some(&json!({"cpu": "2", "memory": "1Gi"})));
        let requests = view.pointer("/spec/resources/requests");
        assert_eq!(requests, Some(&json!({"cpu": "500m"})));
        for (index, expected) in [(0, "0"), (1, "1")] {
            let pointer = format!("/spec/env/{index}/valueFrom/resourceFieldRef/divisor");
            assert_eq!(view.pointer(&pointer), Some(&json!(expected)));
        }
    }
}

#[test]
fn json_leaves_empty_fields_out_but_for_those_go_always_writes() {
    let views = Views::of_owner(
        Family::SupplyChain,
        &json!({
            "kind": "Workload",
            "metadata": {"name": "app", "labels": {}, "finalizers": [], "generation": 0, "namespace": ""},
            "spec": {
                "serviceAccountName": "", "env": [], "image": null, "source": {"git": null},
                "params": [{"name": "p", "value": {}}],
            },
        }),
    );
    assert_eq!(
        views.json,
        json!({
            "kind": "Workload",
            "metadata": {"name": "app", "creationTimestamp": null},
            "spec": {"build": {}, "source": {}, "params": [{"name": "p", "value": {}}]},
            "status": {"supplyChainRef": {}},
        })
    );
}

#[test]
fn deliverable_has_its_own_fields() {
    let views = Views::of_owner(
        Family::Delivery,
        &json!({"metadata": {"name": "app"}, "spec": {}}),
    );
    assert_eq!(views.typed.pointer("/spec/source"), Some(&json!(null)));
    assert_eq!(views.typed.pointer("/spec/build"), None);
    assert_eq!(
        views.typed.pointer("/status/deliveryRef/kind"),
        Some(&json!(""))
    );
    assert_eq!(
        views.json,
        json!({"metadata": {"name": "app", "creationTimestamp": null}, "spec": {}, "status": {"deliveryRef": {}}})
    );
}

#[test]
fn fields_of_the_wrong_type_are_handed_on_untouched() {
    let object =
        json!({"metadata": [], "spec": {"env": "x", "source": 5, "build": ["y"]}, "status": "z"});
    let views = Views::of_owner(Family::SupplyChain, &object);
    for pointer in [
        "/metadata",
        "/spec/env",
        "/spec/source",
        "/spec/build",
        "/status",
    ] {
        assert_eq!(
            views.typed.pointer(pointer),
            object.pointer(pointer),
            "typed {pointer}"
        );
        assert_eq!(
            views.json.pointer(pointer),
            object.pointer(pointer),
            "json {pointer}"
        );
    }
}

#[test]
fn a_list_that_is_not_there_is_null_itself_and_empty_for_what_looks_into_it() {
    let views = workload(json!({}));
    let found = |typed: Value, json: Option<Value>| {
        views
            .settled(Cow::Owned(typed), || json.map(Cow::Owned).ok_or(()))
            .into_owned()
    };
    assert_eq!(found(json!([]), None), json!(null));
    assert_eq!(found(json!([1]), Some(json!([1]))), json!([1]));
    assert_eq!(found(json!({"env": []}), Some(json!({}))), json!({}));
    assert_eq!(found(json!({"env": []}), None), json!({"env": []}));
    assert_eq!(found(json!(""), None), json!(""));
    assert_eq!(found(json!(null), Some(json!("never asked"))), json!(null));
}
