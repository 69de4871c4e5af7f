use serde_json::json;

use super::*;

#[test]
fn digest_does_not_depend_on_the_order_of_keys() {
    let one: Value =
        serde_json::from_str(r#"{"b": [1, {"y": null, "x": "é\n"}], "a": true}"#).unwrap();
    let two: Value =
        serde_json::from_str(r#"{"a": true, "b": [1, {"x": "é\n", "y": null}]}"#).unwrap();
    assert_eq!(digest(&one), digest(&two));
}

#[test]
fn digest_is_that_of_the_compact_text() {
    let text = r#"{"a":true,"b":[1,{"x":"é\n","y":null}],"c":1.5}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    assert_eq!(digest(&value), digest_bytes(text.as_bytes()));
}

#[test]
fn digest_tells_values_apart() {
    let values = [
        json!(null),
        json!(""),
        json!("null"),
        json!([]),
        json!({}),
        json!([null]),
        json!({"a": null}),
        json!(0),
        json!("0"),
        json!(false),
        json!(["a", "b"]),
        json!(["a,b"]),
        json!(["a\",\"b"]),
    ];
    for (index, one) in values.iter().enumerate() {
        for other in &values[index + 1..] {
            assert_ne!(digest(one), digest(other), "{one} {other}");
        }
    }
}

#[test]
fn digest_of_bytes_has_its_prefix() {
    assert_eq!(
        digest_bytes(b""),
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    );
}

/// RFC 4231, test cases 1, 2 and 6 (a key longer than a block).
#[test]
fn keyed_digest_is_hmac_sha256() {
    let cases: [(&[u8], &[u8], &str); 3] = [
        (
            &[0x0b; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ];
    for (key, message, expected) in cases {
        assert_eq!(keyed_digest(key, message), format!("sha256:{expected}"));
    }
}
