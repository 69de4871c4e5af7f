use proptest::prelude::*;
use serde_json::json;

use super::*;

fn check(spec: &Value) -> String {
    match POD_SPEC.check(spec, "spec") {
        Ok(()) => "stored".to_owned(),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn what_the_api_server_refuses_is_found() {
    let with = |field: Value| {
        let mut container = json!({"name": "a"});
        container
            .as_object_mut()
            .unwrap()
            .extend(field.as_object().unwrap().clone());
        json!({"containers": [container]})
    };
    for (spec, said) in [
        (json!({"containers": []}), "stored"),
        (json!({}), "spec.containers: Required value"),
        (
            json!({"containers": null}),
            "spec.containers: Required value",
        ),
        (
            json!({"containers": {}}),
            r#"spec.containers: Invalid value: "object": must be of type array: "object""#,
        ),
        (
            json!({"containers": [null]}),
            r#"spec.containers[0]: Invalid value: "null": must be of type object: "null""#,
        ),
        (
            json!({"containers": [{}]}),
            "spec.containers[0].name: Required value",
        ),
        (
            json!({"containers": [{"name": "a"}, {"name": "a"}]}),
            r#"spec.containers[1]: Duplicate value: {"name":"a"}"#,
        ),
        (
            json!({"containers": [], "initContainers": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}),
            r#"spec.initContainers[2]: Duplicate value: {"name":"a"}"#,
        ),
        (
            json!({"containers": [], "volumes": [{"name": "a"}, {"name": "a"}]}),
            r#"spec.volumes[1]: Duplicate value: {"name":"a"}"#,
        ),
        (
            with(json!({"env": [{"name": "A"}, {"name": "A", "value": "private"}]})),
            r#"spec.containers[0].env[1]: Duplicate value: {"name":"A"}"#,
        ),
        (
            with(json!({"env": [{"name": "A", "value": 1}]})),
            r#"spec.containers[0].env[0].value: Invalid value: "integer": must be of type string: "integer""#,
        ),
        (
            with(
                json!({"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}),
            ),
            "stored",
        ),
        (
            with(
                json!({"ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "TCP"}]}),
            ),
            r#"spec.containers[0].ports[1]: Duplicate value: {"containerPort":80,"protocol":"TCP"}"#,
        ),
        (
            with(json!({"ports": [{"containerPort": "80"}]})),
            r#"spec.containers[0].ports[0].containerPort: Invalid value: "string": must be of type integer: "string""#,
        ),
        (
            with(json!({"ports": [{"containerPort": 80.5}]})),
            r#"spec.containers[0].ports[0].containerPort: Invalid value: "number": must be of type integer: "number""#,
        ),
        (
            with(json!({"ports": [{"protocol": "TCP"}]})),
            "spec.containers[0].ports[0].containerPort: Required value",
        ),
        (
            with(json!({"tty": "yes"})),
            r#"spec.containers[0].tty: Invalid value: "string": must be of type boolean: "string""#,
        ),
        (
            with(json!({"resources": {"limits": {"cpu": "0.5", "memory": 1}}})),
            "stored",
        ),
        (
            with(json!({"resources": {"limits": {"cpu": 0.5}}})),
            r#"spec.containers[0].resources.limits.cpu: Invalid value: "number": must be of type integer or string: "number""#,
        ),
        (
            with(json!({"resources": {"limits": {"cpu": "half"}}})),
            "spec.containers[0].resources.limits.cpu: Invalid value: must be a quantity",
        ),
        (
            with(json!({"resources": {"limits": {"cpu": null}}})),
            "stored",
        ),
        (
            with(json!({"livenessProbe": {"httpGet": {"port": "http"}}, "args": null})),
            "stored",
        ),
        (
            with(json!({"livenessProbe": {"httpGet": {"port": true}}})),
            r#"spec.containers[0].livenessProbe.httpGet.port: Invalid value: "boolean": must be of type integer or string: "boolean""#,
        ),
        (
            with(json!({"livenessProbe": {"grpc": {}}})),
            "spec.containers[0].livenessProbe.grpc.port: Required value",
        ),
        (with(json!({"notYetKnown": [null, {"a": 1.5}]})), "stored"),
        (
            json!({"containers": [], "notYetKnown": {"a": null}}),
            "stored",
        ),
        (
            json!({"containers": [], "imagePullSecrets": [{}, {"name": ""}]}),
            r#"spec.imagePullSecrets[1]: Duplicate value: {"name":""}"#,
        ),
        (
            json!({"containers": [], "nodeSelector": {"a": 1}}),
            r#"spec.nodeSelector.a: Invalid value: "integer": must be of type string: "integer""#,
        ),
    ] {
        assert_eq!(check(&spec), said, "{spec}");
    }
}

#[test]
fn what_must_differ_as_a_whole_does() {
    let rule = |values: Value| json!({"containers": [{"name": "a", "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": values}}]}]});
    assert_eq!(check(&rule(json!([1, 2]))), "stored");
    assert_eq!(
        check(&rule(json!([1, 2, 1]))),
        "spec.containers[0].restartPolicyRules[0].exitCodes.values[2]: Duplicate value: 1"
    );
}

#[test]
fn quantities_have_the_form_that_the_pattern_says() {
    for quantity in [
        "0", "1", "1.", ".5", "1.5", "-1", "+1", "1Ki", "1.5Gi", "100m", "1k", "1E", "1e3", "1E3",
        "1e-3", "1.5e+3", "1n", "1u", "2e1.5", "1Ei",
    ] {
        assert!(is_quantity(quantity), "{quantity}");
    }
    for other in [
        "", ".", "-", "+", "m", "1K", "1mi", "1 Gi", " 1", "1 ", "one", "1e", "--1", "1.2.3",
        "1Kim", "0x1", "1e3m", "é", "1é",
    ] {
        assert!(!is_quantity(other), "{other}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_check_panic(text in "[-+.0-9eEmKi]{0,8}|\\PC{0,6}") {
        let _ = is_quantity(&text);
    }
}
