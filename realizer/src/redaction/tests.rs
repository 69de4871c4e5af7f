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

#[test]
fn what_base64_stands_for_is_taken_out_too() {
    let secret = json!({"a": "aHVudGVyMg==", "b": "c2VjcmV0LXRva2Vu"});
    assert_eq!(
        scrub("hunter2 and secret-token and aHVudGVyMg==", [&secret]),
        "<redacted> and <redacted> and <redacted>"
    );
}

#[test]
fn only_padded_base64_of_text_is_decoded() {
    let cases = [
        ("aHVudGVyMg==", Some("hunter2")),
        ("YWJj", Some("abc")),
        ("w6k=", Some("é")),
        ("aHVudGVyMg", None),
        ("not base64!!", None),
        ("/////w==", None),
    ];
    for (base64, expected) in cases {
        assert_eq!(decoded(base64).as_deref(), expected, "{base64}");
    }
}
