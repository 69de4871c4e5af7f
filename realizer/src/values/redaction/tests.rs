use serde_json::json;

use super::*;

#[test]
fn only_core_secrets_are_secrets() {
    assert!(is_secret(&json!({"apiVersion": "v1", "kind": "Secret"})));
    for other in [
        json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        json!({"apiVersion": "example.com/v1", "kind": "Secret"}),
        json!({"kind": "Secret"}),
        json!(null),
    ] {
        assert!(!is_secret(&other), "{other}");
    }
}

#[test]
fn a_secret_has_texts_wherever_its_values_stand() {
    let annotation = "kubectl.kubernetes.io/last-applied-configuration";
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "shown-name", "annotations": {annotation: "{\"data\":{\"old\":\"b2xkLXZhbHVl\"}}"}},
        "data": {"token": "aHVudGVyMg=="}, "stringData": {"other": "plain-value"},
    });
    assert_eq!(
        of_object(&secret).scrub("shown-name: hunter2, plain-value, old-value"),
        "shown-name: <redacted>, <redacted>, <redacted>"
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"token": "hunter2"}});
    assert!(of_object(&map).is_none());
}
