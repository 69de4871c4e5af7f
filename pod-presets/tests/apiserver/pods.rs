//! What the API server makes of pods.

use std::path::Path;

use pod_presets::{Conflict, Preset, inject};
use serde_json::{Value, json};

use crate::{client, created};

/// A preset for every pod.
fn all_pods(spec: &Value) -> Preset {
    let mut object = json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": "a", "resourceVersion": "1"},
        "spec": spec,
    });
    object["spec"]["allPods"] = json!(true);
    Preset::compile(&object).unwrap_or_else(|errors| panic!("{errors:?} {object}"))
}

/// Who fills in less than the API server finds a conflict where a pod and a preset say the same.
#[tokio::test]
async fn what_a_pod_and_a_preset_say_in_the_same_words_is_the_same_once_it_is_stored() {
    let client = client().await;
    let field = json!({"fieldRef": {"fieldPath": "metadata.name"}});
    let resource = json!({"resourceFieldRef": {"containerName": "web", "resource": "limits.cpu"}});
    let at = |mut item: Value| {
        item["path"] = json!("p");
        item
    };
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let mut compared = 0;
    for source in [
        json!({}),
        json!({"emptyDir": {"sizeLimit": "1024Mi"}}),
        json!({"secret": {"secretName": "s"}}),
        json!({"configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}),
        json!({"downwardAPI": {"items": [at(field.clone())]}}),
        json!({"downwardAPI": {"items": [at(resource.clone())]}}),
        json!({"projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}},
            {"downwardAPI": {"items": [at(field.clone())]}},
        ]}}),
        json!({"hostPath": {"path": "/a"}}),
        json!({"nfs": {"server": "s", "path": "/a"}}),
        json!({"iscsi": {"targetPortal": "t:1", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}),
        json!({"rbd": {"monitors": ["m"], "image": "i"}}),
        json!({"azureDisk": {"diskName": "d", "diskURI": "https://a.example/d"}}),
        json!({"scaleIO": {"gateway": "g", "system": "s", "volumeName": "v", "secretRef": {"name": "n"}}}),
        json!({"persistentVolumeClaim": {"claimName": "c"}}),
        json!({"csi": {"driver": "d.example"}}),
        json!({"ephemeral": {"volumeClaimTemplate": claim}}),
        json!({"image": {"reference": "a/b:latest"}}),
        json!({"image": {"reference": "a/b:1"}}),
    ] {
        let mut volume = source.clone();
        volume["name"] = json!("v");
        let pod = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "web"},
            "spec": {
                "automountServiceAccountToken": false,
                "containers": [{
                    "name": "web",
                    "image": "i",
                    "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": field}, {"name": "C", "valueFrom": resource}],
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                }],
                "volumes": [volume],
            },
        });
        let stored = created(&client, &pod).await.unwrap();
        let container = &pod["spec"]["containers"][0];
        let preset = all_pods(&json!({
            "volumes": pod["spec"]["volumes"],
            "env": container["env"],
            "volumeMounts": container["volumeMounts"],
        }));
        let injection = inject(&stored, &[&preset]);
        let differ: Vec<String> = injection
            .conflicts
            .iter()
            .map(Conflict::explanation)
            .collect();
        assert_eq!(differ, [""; 0], "{source}");
        assert_eq!(injection.applied[0].added, [], "{source}");
        compared += 1;
    }
    assert_eq!(compared, 18);
}

/// What presets add is what the API server takes.
#[tokio::test]
async fn the_pods_of_the_proposal_can_be_created_after_it() {
    let client = client().await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proposal");
    let mut tried = 0;
    for file in test_support::yaml_files(&folder).unwrap() {
        let text = std::fs::read_to_string(&file).unwrap();
        let documents = test_support::documents(&text).unwrap();
        let [pod, presets @ .., _] = &documents[..] else {
            panic!("{} has no pods", file.display());
        };
        for preset in presets {
            created(&client, preset).await.unwrap();
        }
        let presets: Vec<Preset> = presets
            .iter()
            .map(|it| Preset::compile(it).unwrap())
            .collect();
        let presets: Vec<&Preset> = presets.iter().collect();
        let injection = inject(pod, &presets);
        let after = injection.pod.as_ref().unwrap_or(pod);
        let stored = created(&client, after).await.unwrap();
        // Stored, it has what was added, so that a second look finds nothing to do.
        assert_eq!(inject(&stored, &presets).pod, None, "{}", file.display());
        tried += 1;
    }
    assert_eq!(tried, 5);
}
