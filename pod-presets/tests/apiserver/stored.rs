//! What the API server stores of presets.

use pod_presets::{Options, validate};
use serde_json::{Value, json};

use crate::{client, created, preset};

#[tokio::test]
async fn what_one_object_decides_the_api_server_refuses_and_so_does_the_webhook() {
    let client = client().await;
    let volume = json!([{"name": "v", "emptyDir": {}}]);
    let mount = |name: &str| json!([{"name": name, "mountPath": "/v"}]);
    for (spec, expected) in [
        (json!({}), ""),
        (json!({"selector": {}}), "spec.selector must not be empty"),
        (json!({"selector": null}), "spec.selector must not be empty"),
        (
            json!({"selector": {"matchLabels": {}, "matchExpressions": []}}),
            "spec.selector must not be empty",
        ),
        (json!({"selector": {}, "allPods": true}), ""),
        (json!({"selector": null, "allPods": true}), ""),
        (json!({"allPods": true}), "spec.selector must not be empty"),
        (
            json!({"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}),
            "",
        ),
        (json!({"env": null}), "must specify at least one"),
        (
            json!({"env": [], "volumes": []}),
            "must specify at least one",
        ),
        (
            json!({"env": null, "envFrom": [{"secretRef": {"name": "s"}}]}),
            "",
        ),
        (json!({"volumes": volume, "volumeMounts": mount("v")}), ""),
        (json!({"volumes": volume}), ""),
        (
            json!({"volumes": volume, "volumeMounts": mount("w")}),
            "must name one of spec.volumes",
        ),
        (
            json!({"volumeMounts": mount("w")}),
            "must name one of spec.volumes",
        ),
        (
            json!({"volumes": [{"name": "v"}, {"name": "v"}]}),
            "Duplicate value",
        ),
        (
            json!({"volumes": volume, "volumeMounts": [{"name": "v"}]}),
            "mountPath",
        ),
        (
            json!({"env": [{"name": "A", "value": 1}]}),
            "spec.env[0].value",
        ),
        (
            json!({"conflictPolicy": "KeepExisting", "mode": "Audit", "multiMount": true}),
            "",
        ),
        (json!({"conflictPolicy": "", "mode": ""}), ""),
        (json!({"conflictPolicy": "Ignore"}), "spec.conflictPolicy"),
        (json!({"mode": "audit"}), "spec.mode"),
        (
            json!({"containers": {"names": ["*"], "exclude": ["x"], "types": ["Sidecar"]}}),
            "",
        ),
        (
            json!({"containers": {"types": ["Main"]}}),
            "spec.containers.types[0]",
        ),
    ] {
        for kind in ["PodPreset", "ClusterPodPreset"] {
            let mut object = preset(kind, &spec);
            if kind == "ClusterPodPreset" {
                object["spec"]["namespaceSelector"] = json!({});
            }
            let there = created(&client, &object).await;
            let errors = validate(&object, None, Options::default());
            assert_eq!(
                errors.is_empty(),
                expected.is_empty(),
                "{object}: {errors:?}"
            );
            match there {
                Ok(_) => assert_eq!(expected, "", "{object}"),
                Err(message) => {
                    assert!(
                        !expected.is_empty() && message.contains(expected),
                        "{object}: {message}"
                    );
                }
            }
        }
    }
}

#[tokio::test]
async fn names_are_as_long_as_markers_allow() {
    let client = client().await;
    for (kind, length, is_fine) in [
        ("PodPreset", 53, true),
        ("PodPreset", 54, false),
        ("ClusterPodPreset", 46, true),
        ("ClusterPodPreset", 47, false),
    ] {
        let mut object = preset(kind, &json!({"namespaceSelector": {}}));
        object["metadata"]["name"] = json!("a".repeat(length));
        assert_eq!(
            created(&client, &object).await.is_ok(),
            is_fine,
            "{kind} {length}"
        );
    }
    let nowhere = preset("ClusterPodPreset", &json!({}));
    let message = created(&client, &nowhere).await.unwrap_err();
    assert!(
        message.contains("spec.namespaceSelector: Required value"),
        "{message}"
    );
}

#[tokio::test]
async fn manifests_of_the_old_group_apply_and_what_is_newer_is_kept() {
    let client = client().await;
    let mut object = preset(
        "PodPreset",
        &json!({
            "volumes": [{"name": "v", "newer": {"a": [1, null]}}],
            "env": [{"name": "A", "valueFrom": {"newerRef": {"b": "c"}}}],
        }),
    );
    for version in ["settings.k8s.io/v1alpha1", "settings.carto.run/v1alpha1"] {
        object["apiVersion"] = json!(version);
        let stored = created(&client, &object).await.unwrap();
        assert_eq!(stored["spec"], object["spec"]);
    }
}

/// All statuses that are written fit the schema.
#[test]
fn the_schema_of_the_status_has_all_that_is_written() {
    let schema = serde_json::to_value(&pod_presets::crds()[0]).unwrap();
    let root = &schema["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let time = "2026-01-01T00:00:00Z";
    let status = json!({
        "observedGeneration": 1,
        "observedResourceVersion": "5",
        "conditions": [],
        "matched": 1,
        "applied": 1,
        "conflicts": 1,
        "lastConflicts": [{"time": time, "kind": "Pod", "namespace": "a", "name": "b", "container": "c", "field": "env", "key": "A", "with": "Pod"}],
        "stalePods": 1,
        "staleOwners": [{"kind": "ReplicaSet", "namespace": "a", "name": "b", "pods": 1}],
    });
    let typed: pod_presets::PresetStatus = serde_json::from_value(status.clone()).unwrap();
    let written = serde_json::to_value(&typed).unwrap();
    let known = |value: &Value, schema: &Value| {
        let fields = value.as_object().unwrap().keys();
        fields
            .filter(|it| schema["properties"][*it].is_null())
            .cloned()
            .collect::<Vec<String>>()
    };
    let schema = &root["properties"]["status"];
    assert_eq!(known(&written, schema), [""; 0]);
    for list in ["lastConflicts", "staleOwners"] {
        assert_eq!(written[list], status[list]);
        assert_eq!(
            known(&written[list][0], &schema["properties"][list]["items"]),
            [""; 0]
        );
    }
}
