use serde_json::json;

use super::*;

#[expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]
fn of(value: Value) -> Taint {
    Taint::of([&value])
}

#[test]
fn texts_of_secret_values_are_taken_out_of_messages() {
    let secret =
        of(json!({"user": "admin", "list": ["hunter2", "hunter22"], "short": "a", "number": 5}));
    assert_eq!(
        secret.scrub("a: admin may not use hunter22 or hunter2 5 times"),
        "a: <redacted> may not use <redacted> or <redacted> 5 times"
    );
    assert_eq!(Taint::NONE.scrub("nothing to hide"), "nothing to hide");
}

#[test]
fn what_base64_stands_for_is_taken_out_too() {
    let secret = of(json!({"a": "aHVudGVyMg==", "b": "c2VjcmV0LXRva2Vu"}));
    assert_eq!(
        secret.scrub("hunter2 and secret-token and aHVudGVyMg=="),
        "<redacted> and <redacted> and <redacted>"
    );
    let decoded = of(json!("secret-token"));
    assert_eq!(decoded.scrub("c2VjcmV0LXRva2Vu"), "<redacted>");
}

#[test]
fn quoted_texts_are_taken_out() {
    let secret = of(json!("a\"b\\c\n<d>&é\u{1}"));
    for quoted in [
        r#"Invalid value: "a\"b\\c\n<d>&é\x01""#,
        r#"Invalid value: "a\"b\\c\n<d>&\u00e9\x01""#,
        r#"Invalid value: "a\"b\\c\n<d>&é\u0001""#,
        r#"Invalid value: "a\"b\\c\n\u003cd\u003e\u0026é\u0001""#,
    ] {
        assert_eq!(secret.scrub(quoted), r#"Invalid value: "<redacted>""#);
    }
    assert_eq!(
        secret
            .scrub(r#"Invalid value: "{\"k\":\"a\\\"b\\\\c\\n\\u003cd\\u003e\\u0026é\\u0001\"}""#),
        r#"Invalid value: "{\"k\":\"<redacted>\"}""#
    );
}

#[test]
fn overlapping_texts_leave_nothing_of_either() {
    let secret = of(json!(["xx-abc", "abc-defgh", "fgh-tail"]));
    assert_eq!(secret.scrub("<xx-abc-defgh-tail>"), "<<redacted>>");
    let both = of(json!("xx-abc")).and(&of(json!("abc-defgh")));
    assert_eq!(both.scrub("xx-abc-defgh"), "<redacted>");
}

#[test]
fn a_long_text_is_found_whole_and_cut_off() {
    let parts: Vec<String> = (0..2000).map(|number| format!("é{number}")).collect();
    let long = parts.join("-");
    let secret = of(json!(long));
    assert_eq!(secret.scrub(format!("<{long}>")), "<<redacted>>");
    let mut end = long.len() / 2;
    while !long.is_char_boundary(end) {
        end += 1;
    }
    let told = secret.scrub(&long[..end]);
    assert!(told.starts_with(REDACTED), "{told}");
    assert!(told.len() < REDACTED.len() + 2 * PIECE, "{told}");
}

#[test]
fn too_many_texts_make_everything_secret() {
    let many: Vec<String> = (0..30_000).map(|number| format!("text-{number}")).collect();
    let secret = of(json!(many));
    assert_eq!(secret.scrub("anything"), REDACTED);
    assert_eq!(secret.scrub(""), "");
    assert!(!secret.carried_by([&json!("anything")]).is_none());
}

#[test]
fn a_value_is_tainted_by_a_text_in_any_spelling() {
    let secret = of(json!({"token": "aHVudGVyMi1odW50ZXIy"}));
    for value in [
        json!("hunter2-hunter2"),
        json!({"url": ["https://user:hunter2-hunter2@host/"]}),
        json!({"hunter2-hunter2": null}),
        json!("aHVudGVyMi1odW50ZXIy"),
        // base64 of "robot:hunter2-hunter2"
        json!("cm9ib3Q6aHVudGVyMi1odW50ZXIy"),
        json!("hunter2-h"),
        json!("odW50ZX"),
    ] {
        assert!(!secret.carried_by([&value]).is_none(), "{value}");
    }
    for value in [
        json!("hunter3-hunter3"),
        json!({"r2-h": 1}),
        json!(["", "abc"]),
        json!(null),
        json!(true),
    ] {
        assert!(secret.carried_by([&value]).is_none(), "{value}");
    }
}

#[test]
fn short_texts_taint_where_they_stand_alone() {
    let secret = of(json!({"pin": "123", "decoded": "YWI="}));
    for value in [json!("123"), json!(123), json!("pin: 123!"), json!("(ab)")] {
        assert!(!secret.carried_by([&value]).is_none(), "{value}");
    }
    for value in [json!("0123"), json!("cab"), json!(1234)] {
        assert!(secret.carried_by([&value]).is_none(), "{value}");
    }
}

#[test]
fn what_is_carried_on_is_still_known_a_step_later() {
    let secret = of(json!("first-half/second-half"));
    let part = secret.carried_by([&json!("second-half")]);
    let again = part.carried_by([&json!("<second-half>")]);
    assert!(!again.is_none());
    assert_eq!(again.scrub("it is second-half"), "it is <redacted>");
    assert!(part.carried_by([&json!("third")]).is_none());
}

#[test]
fn nothing_is_told_by_debug() {
    assert_eq!(
        format!("{:?}", of(json!(["one-text", "other"]))),
        "Taint([2 texts of Secrets])"
    );
}
