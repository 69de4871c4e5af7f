//! What pods get, and which do.

use serde_json::{Value, json};

use super::stage::{Created, MARKER, Pods, open, open_with, pod, preset};
use crate::webhook::{Does, Webhook};

/// For pods with the role of a front end.
fn database() -> Value {
    json!({
        "selector": {"matchLabels": {"role": "frontend"}},
        "env": [{"name": "DB_PORT", "value": "6379"}],
        "volumeMounts": [{"mountPath": "/cache", "name": "cache-volume"}],
        "volumes": [{"name": "cache-volume", "emptyDir": {}}],
    })
}

fn frontend(name: &str) -> Value {
    pod(name, json!({"app": "website", "role": "frontend"}))
}

#[tokio::test]
async fn a_pod_gets_what_its_preset_says_and_is_marked_with_its_version() {
    let pods = open().await;
    pods.preset("allow-database", database()).await;
    pods.until_marked("allow-database", &frontend("website"))
        .await;
    let created = pods.create_pod(frontend("website")).await;
    let container = &created.pod["spec"]["containers"][0];
    assert_eq!(
        container["env"],
        json!([{"name": "DB_PORT", "value": "6379"}])
    );
    let mounts = container["volumeMounts"].as_array().unwrap();
    assert!(mounts.contains(&json!({"mountPath": "/cache", "name": "cache-volume"})));
    let volumes = created.pod["spec"]["volumes"].as_array().unwrap();
    assert!(volumes.contains(&json!({"name": "cache-volume", "emptyDir": {}})));
    assert_eq!(created.warnings, Vec::<String>::new());

    let other = pods
        .create_pod(pod("other", json!({"role": "backend"})))
        .await;
    assert_eq!(other.pod["metadata"]["annotations"], Value::Null);
    assert_eq!(other.pod["spec"]["containers"][0]["env"], Value::Null);
}

#[tokio::test]
async fn a_pod_that_brings_a_marker_of_its_own_gets_the_preset_all_the_same() {
    let pods = open().await;
    pods.preset("allow-database", database()).await;
    let known = pods.until_marked("allow-database", &frontend("a")).await;
    let version = known.marker("allow-database").unwrap();
    for forged in [version.as_str(), "1", ""] {
        let mut forging = frontend("b");
        forging["metadata"]["annotations"] = json!({format!("{MARKER}allow-database"): forged});
        let tried = pods.try_pod(forging).await.unwrap();
        assert_eq!(
            tried.pod["spec"]["containers"][0]["env"][0]["name"],
            "DB_PORT"
        );
        assert_eq!(tried.marker("allow-database"), Some(version.clone()));
    }
}

#[tokio::test]
async fn pods_that_are_excluded_or_mirrors_of_others_are_left_alone() {
    let pods = open().await;
    pods.preset("allow-database", database()).await;
    pods.until_marked("allow-database", &frontend("a")).await;
    let with = |key: &str, value: &str| {
        let mut annotated = frontend("b");
        annotated["metadata"]["annotations"] = json!({key: value});
        annotated["spec"]["nodeName"] = json!("node");
        annotated
    };
    let exclude = "podpreset.admission.kubernetes.io/exclude";
    for (key, value, is_marked) in [
        (exclude, "true", false),
        (exclude, "True", true),
        (exclude, "true ", true),
        ("kubernetes.io/config.mirror", "", false),
    ] {
        let tried = pods.try_pod(with(key, value)).await.unwrap();
        let marker = tried.marker("allow-database");
        assert_eq!(marker.is_some(), is_marked, "{key}: {value:?}");
    }
}

#[tokio::test]
async fn a_preset_of_the_cluster_is_for_namespaces_with_its_labels_and_comes_first() {
    let pods = open().await;
    let of_cluster = |name: &str, team: &str| {
        let spec = json!({
            "selector": {"matchExpressions": [{"key": "role", "operator": "Exists"}]},
            "namespaceSelector": {"matchLabels": {"team": team}},
            "env": [{"name": "HTTPS_PROXY", "value": name}],
        });
        preset("ClusterPodPreset", name, spec).to_string()
    };
    pods.preset("allow-database", database()).await;
    pods.apply(&of_cluster("ours", "a")).await;
    pods.apply(&of_cluster("theirs", "b")).await;
    let labelled = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": pods.namespace, "labels": {"team": "a"}}});
    pods.apply(&labelled.to_string()).await;
    let both = |created: &Created| {
        let env = created.pod["spec"]["containers"][0]["env"].clone();
        let names = env.as_array().cloned().unwrap_or_default();
        let names: Vec<&str> = names.iter().filter_map(|it| it["name"].as_str()).collect();
        names == ["HTTPS_PROXY", "DB_PORT"]
    };
    let what = "a pod gets the preset of the cluster before that of its namespace";
    let tried = pods.until_tried(what, &frontend("a"), both).await;
    let env = &tried.pod["spec"]["containers"][0]["env"];
    assert_eq!(env[0]["value"], "ours");
}

/// A webhook that is called after ours, and has ours called again.
async fn sidecars(pods: &Pods) -> Webhook {
    let (webhook, authority) = Webhook::start_tls(Does::AdmitsWithSidecar).await;
    let authority = k8s_openapi::ByteString(authority.into_bytes());
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "later"},
        "webhooks": [{
            "name": "sidecars.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Fail", "clientConfig": {"url": webhook.url, "caBundle": authority},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        }],
    });
    pods.apply(&configuration.to_string()).await;
    webhook
}

#[tokio::test]
async fn a_container_that_another_webhook_adds_gets_the_preset_too_and_nothing_comes_twice() {
    let pods = open().await;
    pods.preset("allow-database", database()).await;
    let known = pods.until_marked("allow-database", &frontend("a")).await;
    let _webhook = sidecars(&pods).await;
    let both = |created: &Created| created.pod["spec"]["containers"][1].is_object();
    let what = "the other webhook adds a container";
    let tried = pods.until_tried(what, &frontend("a"), both).await;
    for container in tried.pod["spec"]["containers"].as_array().unwrap() {
        assert_eq!(
            container["env"],
            json!([{"name": "DB_PORT", "value": "6379"}])
        );
        let mounts = container["volumeMounts"].as_array().unwrap();
        let ours = mounts.iter().filter(|it| it["mountPath"] == "/cache");
        assert_eq!(ours.count(), 1);
    }
    assert_eq!(
        tried.marker("allow-database"),
        known.marker("allow-database")
    );
}

#[tokio::test]
async fn a_container_that_is_added_to_a_running_pod_gets_what_is_for_such_if_that_is_asked_for() {
    let pods = open_with(&["--preset-ephemeral-containers"]).await;
    let mut spec = database();
    spec["containers"] = json!({"types": ["App", "Ephemeral"]});
    pods.preset("allow-database", spec).await;
    pods.until_marked("allow-database", &frontend("a")).await;
    pods.create_pod(frontend("web")).await;
    let debugging = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "debug"}]}});
    let all = pods.api("v1", "Pod");
    let patch = kube::api::Patch::Strategic(debugging);
    let by = kube::api::PatchParams::default();
    let patched = all.patch_subresource("ephemeralcontainers", "web", &by, &patch);
    let pod = serde_json::to_value(patched.await.unwrap()).unwrap();
    let debug = &pod["spec"]["ephemeralContainers"][0];
    assert_eq!(debug["env"], json!([{"name": "DB_PORT", "value": "6379"}]));
    assert_eq!(debug["volumeMounts"][0]["mountPath"], "/cache");
}

#[tokio::test]
async fn what_is_wished_for_most_is_a_preset_of_the_cluster_each() {
    let pods = open().await;
    let all = json!({"allPods": true, "namespaceSelector": {}});
    let with = |more: Value| {
        let mut spec = all.clone();
        let fields = spec.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        spec
    };
    let authorities = with(json!({
        "env": [{"name": "SSL_CERT_FILE", "value": "/etc/authorities/ca.crt"}],
        "volumes": [{"name": "authorities", "configMap": {"name": "authorities", "optional": true}}],
        "volumeMounts": [{"name": "authorities", "mountPath": "/etc/authorities", "readOnly": true}],
    }));
    let proxy = with(json!({"env": [
        {"name": "HTTPS_PROXY", "value": "http://proxy.example.com:3128"},
        {"name": "NO_PROXY", "value": ".svc,.cluster.local"},
    ]}));
    let tracing = with(json!({"env": [
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://$(NODE):4317"},
    ]}));
    for (name, spec) in [
        ("authorities", authorities),
        ("proxy", proxy),
        ("tracing", tracing),
    ] {
        let preset = preset("ClusterPodPreset", name, spec);
        pods.apply(&preset.to_string()).await;
    }
    let names = |created: &Created| {
        let env = created.pod["spec"]["containers"][0]["env"].clone();
        let env = env.as_array().cloned().unwrap_or_default();
        let mut names: Vec<String> = env
            .iter()
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    let expected = [
        "HTTPS_PROXY",
        "NODE",
        "NO_PROXY",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "SSL_CERT_FILE",
    ];
    // An init container is a container as well.
    let mut plain = pod("a", json!({}));
    plain["spec"]["initContainers"] = json!([{"name": "first", "image": "first"}]);
    let what = "a pod without labels gets all three";
    let tried = pods
        .until_tried(what, &plain, |created| names(created) == expected)
        .await;
    let (first, container) = (
        &tried.pod["spec"]["initContainers"][0],
        &tried.pod["spec"]["containers"][0],
    );
    assert_eq!(first["env"], container["env"]);
    let mounted = |container: &Value| {
        let mounts = container["volumeMounts"].as_array().unwrap();
        mounts
            .iter()
            .any(|it| it["mountPath"] == "/etc/authorities" && it["readOnly"] == true)
    };
    assert!(mounted(first) && mounted(container));
}
