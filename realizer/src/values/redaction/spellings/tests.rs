use super::*;

fn spelled(meaning: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    spellings(meaning, &mut found);
    found
}

#[test]
fn texts_are_quoted_as_go_quotes_them() {
    // Left what was given to Go's strconv.Quote, right what it printed.
    for (text, quoted) in [
        ("plain text", "plain text"),
        ("a\"b\\c", r#"a\"b\\c"#),
        (
            "\u{7}\u{8}\u{c}\n\r\t\u{b}\0\u{1f}\u{7f}",
            r"\a\b\f\n\r\t\v\x00\x1f\x7f",
        ),
        ("é日本😀", "é日本😀"),
        (
            "\u{a0}\u{2028}\u{200b}\u{feff}",
            r"\u00a0\u2028\u200b\ufeff",
        ),
        ("\u{e000}\u{10ffff}", r"\ue000\U0010ffff"),
        ("<&>'", "<&>'"),
    ] {
        assert_eq!(go_quoted(text), quoted, "{text:?}");
    }
    assert_eq!(go_quoted_ascii("é😀 a"), r"\u00e9\U0001f600 a");
}

#[test]
fn texts_are_escaped_as_json_encoders_escape_them() {
    let text = "<a href=\"x\">&\u{2028}\u{8}\u{1}";
    assert_eq!(json(text), "<a href=\\\"x\\\">&\u{2028}\\b\\u0001");
    assert_eq!(
        json_for_html(text),
        r#"\u003ca href=\"x\"\u003e\u0026\u2028\b\u0001"#
    );
    assert_eq!(
        json_for_html_of_old(text),
        r#"\u003ca href=\"x\"\u003e\u0026\u2028\u0008\u0001"#
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
        ("", None),
    ];
    for (base64, expected) in cases {
        assert_eq!(decoded(base64).as_deref(), expected, "{base64}");
    }
}

#[test]
fn what_is_packed_in_a_text_is_a_meaning_of_it() {
    // The .dockerconfigjson of a pull secret, as the API server holds it.
    let auth = STANDARD.encode("robot:s3cr3t-pass");
    let config = format!(r#"{{"auths":{{"r.io":{{"password":"s3cr3t-pass","auth":"{auth}"}}}}}}"#);
    let meanings = meanings(&STANDARD.encode(format!("{config}\n")));
    for meaning in [&*config, &auth, "robot:s3cr3t-pass", "s3cr3t-pass"] {
        assert!(meanings.contains(meaning), "{meaning} in {meanings:?}");
    }
    assert!(!meanings.contains("r.io"), "a key is no value");
}

#[test]
fn lines_are_searched_for_where_they_are_long_enough() {
    let spelled = spelled("first: line\r\n  second \"line\"\nshort\n");
    for line in ["first: line", "second \"line\"", r#"second \"line\""#] {
        assert!(spelled.contains(line), "{line}");
    }
    assert!(!spelled.contains("short"));
}

#[test]
fn plain_texts_have_few_spellings_and_short_ones_none() {
    assert_eq!(spelled("abc"), BTreeSet::new());
    let few = spelled("hunter2-hunter2");
    assert_eq!(few.len(), 4, "{few:?}");
}

#[test]
fn a_text_is_found_in_base64_of_something_longer() {
    let spelled = spelled("hunter2-hunter2");
    for before in ["", "a", "ab", "abc", "robot:"] {
        for after in ["", "x", "xy", "xyz"] {
            let whole = STANDARD.encode(format!("{before}hunter2-hunter2{after}"));
            assert!(
                spelled.iter().any(|part| whole.contains(part.as_str())),
                "{before}…{after}"
            );
        }
    }
}
