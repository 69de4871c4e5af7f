//! Texts as Go's formatting verbs print them; messages that existing users compare contain them.

use std::fmt::Write as _;

use serde_json::Value;

/// A string as `%q` prints it.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            c if is_printable(c) => out.push(c),
            c if c < ' ' || c == '\u{7f}' => push_hex(&mut out, 'x', 2, c),
            c if u32::from(c) < 0x1_0000 => push_hex(&mut out, 'u', 4, c),
            c => push_hex(&mut out, 'U', 8, c),
        }
    }
    out.push('"');
    out
}

/// Go counts letters, marks, numbers, punctuation, symbols and the ASCII space as printable.
fn is_printable(c: char) -> bool {
    // `escape_debug` on a lone character also escapes combining marks, which Go prints; they are not control
    // characters or spaces, so that a text with them reads the same.
    c == ' ' || !(c.is_control() || c.is_whitespace() || is_format_or_private(c))
}

fn is_format_or_private(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..)
}

fn push_hex(out: &mut String, letter: char, width: usize, c: char) {
    // Writing to a String never fails.
    let _ = write!(out, "\\{letter}{:0width$x}", u32::from(c));
}

/// A `[]string` as `%#v` prints it; an empty one is nil there.
pub(crate) fn string_slice(values: &[String]) -> String {
    if values.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

/// JSON as Go's encoder writes it: keys sorted, compact, `<`, `>`, `&` and the two line separators escaped.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    for c in value.to_string().chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => push_hex(&mut out, 'u', 4, c),
            c => out.push(c),
        }
    }
    out
}

/// JSON as `%v` prints it after Go has read it: `map[a:1 b:[x y]]`, `<nil>`.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(bool) => bool.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(self::value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let sorted: std::collections::BTreeMap<_, _> = fields.iter().collect();
            let fields: Vec<String> = sorted
                .into_iter()
                .map(|(key, field)| format!("{key}:{}", self::value(field)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_does() {
        for (text, expected) in [
            ("plain é 世", "\"plain é 世\""),
            ("a\"b\\c", r#""a\"b\\c""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\u{1}\u{7f}", r#""\x01\x7f""#),
            ("\u{a0}\u{200b}\u{feff}", r#""\u00a0\u200b\ufeff""#),
            ("\u{e0001}", r#""\U000e0001""#),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }

    #[test]
    fn slices_print_as_go_syntax() {
        assert_eq!(string_slice(&[]), "[]string(nil)");
        assert_eq!(
            string_slice(&["a".into(), "b\"".into()]),
            r#"[]string{"a", "b\""}"#
        );
    }

    #[test]
    fn json_is_escaped_for_html_and_sorted() {
        assert_eq!(
            json(&json!({"b": "<&>", "a": [1, null]})),
            r#"{"a":[1,null],"b":"\u003c\u0026\u003e"}"#
        );
    }

    #[test]
    fn values_print_as_go_maps() {
        let given = json!({"b": {"x": null, "a": [1, "t"]}, "a": true});
        assert_eq!(value(&given), "map[a:true b:map[a:[1 t] x:<nil>]]");
    }
}
