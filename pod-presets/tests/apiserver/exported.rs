//! Presets that the API server carries out by itself do to a pod what the webhook does.

use std::collections::HashSet;
use std::time::Duration;

use http::{Request, header};
use kube::Client;
use pod_presets::{Export, Preset, export, inject, patch};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use test_support::{eventually, shared_control_plane};

use crate::client;
use crate::generated;

/// Presets, each with a pod.
const PAIRS: usize = 100;
/// Until all policies are known to the API server.
const LIMIT: Duration = Duration::from_mins(2);
/// Ends the text that it stands in, for who does not see to it.
const HOSTILE: &str = "\"')}] : [JSONPatch{op: 'remove'} // \\\" $(A) é😀\t\n\u{7f}\r\n#";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";

async fn post(client: &Client, path: &str, object: &Value) -> Result<Value, String> {
    let request = Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(serde_json::to_vec(object).unwrap())
        .unwrap();
    let answer = client.request::<Value>(request).await;
    answer.map_err(|error| format!("{error}: {object:#}"))
}

/// What a pod would be in a namespace: what is in it, and what it is marked with.
async fn stored(client: &Client, namespace: &str, pod: &Value) -> Result<Value, String> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    let stored = post(client, &path, pod).await?;
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": stored["metadata"]["name"],
            "labels": stored["metadata"]["labels"],
            "annotations": stored["metadata"]["annotations"],
        },
        "spec": stored["spec"],
    }))
}

/// A pod as people write it, that an API server takes.
fn writable(mut pod: Value, number: usize) -> Value {
    pod["apiVersion"] = json!("v1");
    pod["metadata"]["name"] = json!(format!("web-{number}"));
    pod["metadata"]["labels"] = json!({"pair": number.to_string()});
    let spec = pod["spec"].as_object_mut().unwrap();
    spec.remove("newerField");
    spec.insert("automountServiceAccountToken".to_owned(), json!(false));
    if spec["containers"].as_array().unwrap().is_empty() {
        spec["containers"] = json!([{"name": "web", "image": "i"}]);
    }
    let volumes = spec.get("volumes").cloned().unwrap_or_default();
    let has = |name: &Value| {
        let volumes = volumes.as_array().into_iter().flatten();
        volumes.into_iter().any(|it| it["name"] == *name)
    };
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            let container = container.as_object_mut().unwrap();
            container.remove("newer");
            if list == "containers" {
                container.remove("restartPolicy");
            }
            if let Some(mounts) = container.get_mut("volumeMounts") {
                mounts.as_array_mut().unwrap().retain(|it| has(&it["name"]));
            }
            if let Some(sources) = container.get_mut("envFrom") {
                let sources = sources.as_array_mut().unwrap();
                // Of a source that is there twice a policy says something else: `Export::lost`.
                let mut known = HashSet::new();
                sources.retain(|it| known.insert(source(it)));
            }
        }
    }
    pod
}

/// Where variables come from, whether or not it must be there.
fn source(written: &Value) -> [String; 2] {
    ["configMapRef", "secretRef"].map(|kind| written[kind]["name"].to_string())
}

fn preset(mut spec: Value, number: usize, namespace: &str) -> Value {
    spec["selector"] = json!({"matchLabels": {"pair": number.to_string()}});
    json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": format!("p{number}"), "namespace": namespace, "resourceVersion": "7"},
        "spec": spec,
    })
}

/// A pod that has nothing yet.
fn bare() -> Value {
    json!({"kind": "Pod", "metadata": {}, "spec": {
        "containers": [{"name": "web", "image": "i"}],
        "initContainers": [{"name": "setup", "image": "i"}],
    }})
}

/// A preset that replaces both mounts of a pod, whose paths differ in a slash: one of the two stays. Beside a device both do.
fn two_mounts_at_one_path() -> (Value, Value) {
    let mount = |name: &str, path: &str| json!({"name": name, "mountPath": path});
    let spec = json!({
        "conflictPolicy": "Override",
        "multiMount": true,
        "volumes": [{"name": "a", "emptyDir": {}}],
        "volumeMounts": [mount("a", "/opt"), mount("a", "/srv")],
    });
    let mounts = ["/srv/", "/opt/", "/own", "/opt", "/srv"].map(|path| mount("b", path));
    let beside_device = [mount("b", "/opt/")];
    let pod = json!({"kind": "Pod", "metadata": {}, "spec": {
        "volumes": [
            {"name": "b", "emptyDir": {}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "d"}},
        ],
        "containers": [
            {"name": "web", "image": "i", "volumeMounts": mounts},
            // A device stays, and what is at its path.
            {"name": "other", "image": "i", "volumeMounts": beside_device,
                "volumeDevices": [{"name": "d", "devicePath": "/opt"}]},
        ],
    }});
    (spec, pod)
}

async fn install(client: &Client, export: &Export) {
    post(client, POLICIES, &export.policy).await.unwrap();
    post(client, BINDINGS, &export.binding).await.unwrap();
}

/// Waits until a pod that has nothing is marked: then the policy of the pair is in force.
async fn is_in_force(client: &Client, namespace: &str, number: usize) {
    let bare = writable(bare(), number);
    let marker = format!("podpreset.admission.kubernetes.io/podpreset-p{number}");
    eventually("the policy is in force", LIMIT, async || {
        let stored = stored(client, namespace, &bare).await.unwrap();
        anyhow::ensure!(
            stored["metadata"]["annotations"][&marker] == "7",
            "{stored:#}"
        );
        anyhow::Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_exported_preset_does_to_a_pod_what_the_webhook_does() {
    let control_plane = shared_control_plane().await.unwrap();
    let client = client().await;
    let exported = control_plane.create_namespace("exported").await.unwrap();
    let plain = control_plane.create_namespace("plain").await.unwrap();
    let mut runner = TestRunner::deterministic();
    let (spec, pod) = two_mounts_at_one_path();
    let preset_of_both = preset(spec, 0, &exported);
    install(&client, &export(&preset_of_both).unwrap()).await;
    let mut pairs = vec![(preset_of_both, writable(pod, 0))];
    while pairs.len() < PAIRS {
        let number = pairs.len();
        let mut spec = generated::spec().new_tree(&mut runner).unwrap().current();
        if number.is_multiple_of(5) {
            let env = spec["env"].as_array_mut().unwrap();
            env.push(json!({"name": "HOSTILE", "value": HOSTILE}));
        }
        let pod = generated::pod().new_tree(&mut runner).unwrap().current();
        let preset = preset(spec, number, &exported);
        let Ok(export) = export(&preset) else {
            // It conflicts with itself: no pod gets it.
            let bare = writable(bare(), number);
            let injection = inject(&bare, &[&Preset::compile(&preset).unwrap()]);
            assert_eq!(injection.pod, None, "{preset:#}");
            continue;
        };
        install(&client, &export).await;
        pairs.push((preset, writable(pod, number)));
    }
    let (mut changed, mut blocked) = (0, 0);
    for (number, (preset, pod)) in pairs.iter().enumerate() {
        is_in_force(&client, &exported, number).await;
        let before = stored(&client, &plain, pod).await.unwrap();
        let injection = inject(&before, &[&Preset::compile(preset).unwrap()]);
        let expected = match &injection.pod {
            Some(after) => stored(&client, &plain, after).await.unwrap(),
            None => before.clone(),
        };
        let actual = stored(&client, &exported, pod).await.unwrap();
        let differ = patch(&expected, &actual).0;
        assert_eq!(differ, [], "{preset:#}\n{before:#}");
        // Carried out again after another webhook, it changes nothing.
        let again = stored(&client, &exported, &actual).await.unwrap();
        assert_eq!(patch(&actual, &again).0, [], "{preset:#}");
        changed += usize::from(actual["spec"] != before["spec"]);
        blocked += usize::from(
            injection
                .conflicts
                .iter()
                .any(|it| it.settled.is_blocking()),
        );
    }
    assert!(
        changed >= 10 && blocked >= 10,
        "{changed} changed, {blocked} blocked"
    );
}
