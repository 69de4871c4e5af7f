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
fn texts_of_secret_values_are_taken_out_of_messages() {
    let secret =
        json!({"user": "admin", "list": ["hunter2", "hunter22"], "short": "a", "number": 5});
    assert_eq!(
        scrub(
            "a: admin may not use hunter22 or hunter2 5 times",
            [&secret]
        ),
        "a: <redacted> may not use <redacted> or <redacted> 5 times"
    );
    assert_eq!(scrub("nothing to hide", []), "nothing to hide");
}
