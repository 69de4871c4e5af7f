use serde_json::{Value, json};

use super::{Options, validate, warnings};

/// A preset that is fine, with these fields of its spec.
fn preset(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "settings.carto.run/v1alpha1",
        "kind": "PodPreset",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}},
    });
    let fields = object["spec"].as_object_mut().unwrap();
    fields.extend(spec.as_object().unwrap().clone());
    object
}

fn texts(object: &Value) -> Vec<String> {
    let errors = validate(object, None, Options::default());
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn something_must_be_injected() {
    let missing =
        "spec.volumes.env.envFrom.volumeMounts: Required value: must specify at least one";
    assert_eq!(texts(&preset(&json!({}))), [missing]);
    let empty = json!({"env": [], "envFrom": [], "volumes": [], "volumeMounts": []});
    assert_eq!(texts(&preset(&empty)), [missing]);
    let null = json!({"env": null});
    assert_eq!(texts(&preset(&null)), [missing]);
}

#[test]
fn a_mount_names_a_volume_of_the_same_preset() {
    let volume = json!({"name": "v", "emptyDir": {}});
    let mount = |name: &str| json!({"name": name, "mountPath": "/v"});
    assert_eq!(texts(&preset(&json!({"volumes": [volume]}))), [""; 0]);
    let mounted = json!({"volumes": [volume], "volumeMounts": [mount("v")]});
    assert_eq!(texts(&preset(&mounted)), [""; 0]);
    let other = json!({"volumes": [volume], "volumeMounts": [mount("w")]});
    assert_eq!(
        texts(&preset(&other)),
        [r#"spec.volumeMounts[0].name: Not found: "w""#]
    );
    let unmounted = warnings(&preset(&json!({"volumes": [volume]})));
    assert_eq!(
        unmounted,
        ["spec.volumes[0]: no volumeMount of this preset mounts it"]
    );
}
