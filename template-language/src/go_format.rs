//! Text as Go writes it, where users or their tests compare it.
//!
//! Conditions of the Go Cartographer show values as its language prints them, and a tag inside a text is
//! written as its JSON encoder writes a value. Both are repeated here to the letter.
//!
//! | function | Go | `{"a": [1.0, null, "x<"]}` |
//! |---|---|---|
//! | [`json`] | `json.Marshal` | `{"a":[1,null,"x\u003c"]}` |
//! | [`display`] | `%v` of what `json.Unmarshal` decodes | `map[a:[1 <nil> x<]]` |
//! | [`display_exact`] | `%v` of an unstructured object | the same, but 1000000 is not `1e+06` |
//! | [`quoted`], [`quoted_ascii`] | `%q` and `%+q` of a string | |
//! | [`string_slice`] | `%#v` of a `[]string` | |
//! | [`character`] | `%#U` | |
//! | [`type_name`] | `%T` | `map[string]interface {}` |
//! | [`shortest`], [`json_number`] | a `float64` in `%v` and in JSON | |
//!
//! Maps are printed in the order of their keys, by bytes, as Go does since 1.12.

mod doubles;

use std::fmt::Write as _;

use serde_json::{Number, Value};
use unicode_general_category::{GeneralCategory, get_general_category};

use crate::digest::by_key;

pub use doubles::{json_number, shortest};

/// `%v` of a value that Go decoded without a type: `map[a:b]`, `[a b]`, `<nil>`. All numbers are doubles
/// there, such as `1e+06`.
///
/// ```
/// use serde_json::json;
/// use template_language::go_format::display;
/// assert_eq!(display(&json!({"b": 1_000_000, "a": [true, null]})), "map[a:[true <nil>] b:1e+06]");
/// ```
pub fn display(value: &Value) -> String {
    let mut text = String::new();
    write_display(&mut text, value, &|number| {
        number.as_f64().map_or_else(|| number.to_string(), shortest)
    });
    text
}

/// `%v` of a Kubernetes object without a type, where integers are none of them doubles.
///
/// ```
/// use serde_json::json;
/// use template_language::go_format::display_exact;
/// assert_eq!(display_exact(&json!([1_000_000, 1e6, 0.5])), "[1000000 1e+06 0.5]");
/// ```
pub fn display_exact(value: &Value) -> String {
    let mut text = String::new();
    write_display(&mut text, value, &|number| match number.as_f64() {
        Some(double) if number.as_i64().is_none() => shortest(double),
        _ => number.to_string(),
    });
    text
}

/// Writes a value, and its numbers by the given function.
fn write_display(text: &mut String, value: &Value, number: &dyn Fn(&Number) -> String) {
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(value) => text.push_str(&number(value)),
        Value::String(value) => text.push_str(value),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { " " });
                write_display(text, item, number);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push_str("map[");
            for (index, (key, value)) in by_key(fields).into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { " " });
                text.push_str(key);
                text.push(':');
                write_display(text, value, number);
            }
            text.push(']');
        }
    }
}

/// Compact JSON as Go's encoder writes it: keys sorted, `<`, `>`, `&` and two line separators escaped,
/// doubles without fraction as integers.
///
/// ```
/// use serde_json::json;
/// let text = template_language::go_format::json(&json!({"b": [1.0, "a&b"], "a": null}));
/// assert_eq!(text, r#"{"a":null,"b":[1,"a\u0026b"]}"#);
/// ```
pub fn json(value: &Value) -> String {
    let mut text = String::new();
    write_json(&mut text, value);
    text
}

/// Writes a value.
fn write_json(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&match number.as_f64() {
            Some(double) if number.is_f64() => json_number(double),
            _ => number.to_string(),
        }),
        Value::String(value) => write_quoted(text, value),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                write_json(text, item);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in by_key(fields).into_iter().enumerate() {
                text.push_str(if index == 0 { "" } else { "," });
                write_quoted(text, key);
                text.push(':');
                write_json(text, value);
            }
            text.push('}');
        }
    }
}

/// Writes a text in quotes, escaped so that it can stand in HTML, too.
fn write_quoted(text: &mut String, value: &str) {
    text.push('"');
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(character));
            }
            other => text.push(other),
        }
    }
    text.push('"');
}

/// `%#U`: `U+0028 '('`, without the character if it cannot be printed.
///
/// ```
/// use template_language::go_format::character;
/// assert_eq!(character('('), "U+0028 '('");
/// assert_eq!(character('\n'), "U+000A");
/// ```
pub fn character(character: char) -> String {
    let code = format!("U+{:04X}", u32::from(character));
    if is_printable(character) {
        format!("{code} '{character}'")
    } else {
        code
    }
}

/// What `unicode.IsLetter` says; Rust counts some marks and numerals as alphabetic, too.
///
/// ```
/// use template_language::go_format::is_letter;
/// assert!(is_letter('é') && is_letter('字'));
/// assert!(!is_letter('Ⅷ') && 'Ⅷ'.is_alphabetic());
/// ```
pub fn is_letter(character: char) -> bool {
    use GeneralCategory as Category;
    match character {
        'a'..='z' | 'A'..='Z' => true,
        '\0'..='\x7f' => false,
        _ => matches!(
            get_general_category(character),
            Category::UppercaseLetter
                | Category::LowercaseLetter
                | Category::TitlecaseLetter
                | Category::ModifierLetter
                | Category::OtherLetter
        ),
    }
}

/// What `unicode.IsDigit` says: decimal digits of any script.
pub fn is_digit(character: char) -> bool {
    character.is_ascii_digit()
        || (!character.is_ascii()
            && get_general_category(character) == GeneralCategory::DecimalNumber)
}

/// What `unicode.IsPrint` says: the ASCII space is the only one that is.
fn is_printable(character: char) -> bool {
    use GeneralCategory as Category;
    is_printable_ascii(character)
        || !matches!(
            get_general_category(character),
            Category::Control
                | Category::Format
                | Category::Surrogate
                | Category::PrivateUse
                | Category::Unassigned
                | Category::SpaceSeparator
                | Category::LineSeparator
                | Category::ParagraphSeparator
        )
}

fn is_printable_ascii(character: char) -> bool {
    matches!(character, ' '..='~')
}

/// A string as `%q` prints it.
///
/// The API server quotes so what it refuses, and whoever looks for a text in its messages must look for
/// this form of it, too.
///
/// ```
/// use template_language::go_format::quoted;
/// assert_eq!(quoted("a\n\"b\"\u{7f}"), r#""a\n\"b\"\x7f""#);
/// ```
pub fn quoted(text: &str) -> String {
    quoted_but(text, is_printable)
}

/// A string as `%+q` prints it, in ASCII alone.
///
/// ```
/// use template_language::go_format::quoted_ascii;
/// assert_eq!(quoted_ascii("é\n"), r#""\u00e9\n""#);
/// ```
pub fn quoted_ascii(text: &str) -> String {
    quoted_but(text, is_printable_ascii)
}

/// In quotes, with escapes for all but what is plain.
fn quoted_but(text: &str, is_plain: fn(char) -> bool) -> String {
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
            c if is_plain(c) => out.push(c),
            c if c < ' ' || c == '\u{7f}' => push_hex(&mut out, 'x', 2, c),
            c if u32::from(c) < 0x1_0000 => push_hex(&mut out, 'u', 4, c),
            c => push_hex(&mut out, 'U', 8, c),
        }
    }
    out.push('"');
    out
}

/// An escape of so many hexadecimal digits.
fn push_hex(out: &mut String, letter: char, width: usize, c: char) {
    // Writing to a String never fails.
    let _ = write!(out, "\\{letter}{:0width$x}", u32::from(c));
}

/// A `[]string` as `%#v` prints it; an empty one is nil there.
///
/// ```
/// use template_language::go_format::string_slice;
/// assert_eq!(string_slice(&["a".into(), "b".into()]), r#"[]string{"a", "b"}"#);
/// assert_eq!(string_slice(&[]), "[]string(nil)");
/// ```
pub fn string_slice(values: &[String]) -> String {
    if values.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = values.iter().map(|value| quoted(value)).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

/// The name of the Go type that a JSON value of a Kubernetes object decodes to.
///
/// ```
/// use serde_json::json;
/// use template_language::go_format::type_name;
/// assert_eq!(type_name(&json!(1)), "int64");
/// assert_eq!(type_name(&json!(1.5)), "float64");
/// assert_eq!(type_name(&json!([])), "[]interface {}");
/// ```
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_print_as_go_prints_them() {
        for (value, expected) in [
            (
                json!({"b": 1, "a": [true, null, "x"]}),
                "map[a:[true <nil> x] b:1]",
            ),
            (json!(1_000_000), "1e+06"),
            (json!(100_000), "100000"),
            (json!(1.5), "1.5"),
            (json!(0.00001), "1e-05"),
            (json!(123_456_789), "1.23456789e+08"),
            (json!(0), "0"),
        ] {
            assert_eq!(display(&value), expected);
        }
    }

    #[test]
    fn json_is_escaped_for_html_and_sorted() {
        assert_eq!(
            super::json(&json!({"z": 1, "a": "<&>"})),
            r#"{"a":"\u003c\u0026\u003e","z":1}"#
        );
        assert_eq!(super::json(&json!(1e21)), "1e+21");
        assert_eq!(super::json(&json!(1e-7)), "1e-7");
        assert_eq!(super::json(&json!(1_000_000.0)), "1000000");
        assert_eq!(super::json(&json!("a\u{2028}\u{1}")), "\"a\\u2028\\u0001\"");
    }

    #[test]
    fn doubles_have_the_digits_of_go() {
        for (number, in_text, in_json) in [
            // A tie between two shortest forms: Go takes the even one.
            (
                -835_735_618_606_991.2,
                "-8.357356186069912e+14",
                "-835735618606991.2",
            ),
            (0.000_1, "0.0001", "0.0001"),
            (0.000_01, "1e-05", "0.00001"),
            (0.5, "0.5", "0.5"),
            (100.25, "100.25", "100.25"),
            (999_999.5, "999999.5", "999999.5"),
            (1e20, "1e+20", "100000000000000000000"),
            (1e21, "1e+21", "1e+21"),
            (1.5e-7, "1.5e-07", "1.5e-7"),
            (1e-10, "1e-10", "1e-10"),
            (5e-324, "5e-324", "5e-324"),
            (-0.0, "-0", "-0"),
        ] {
            assert_eq!(shortest(number), in_text);
            assert_eq!(json_number(number), in_json);
        }
    }

    #[test]
    fn integers_of_an_object_are_no_doubles() {
        let value = json!({"n": 1_000_000, "f": 1e6, "l": [null, true]});
        assert_eq!(
            display_exact(&value),
            "map[f:1e+06 l:[<nil> true] n:1000000]"
        );
    }

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
    fn characters_are_shown_if_they_can_be_printed() {
        for (shown, expected) in [
            ('(', "U+0028 '('"),
            (' ', "U+0020 ' '"),
            ('\u{a0}', "U+00A0"),
            ('\t', "U+0009"),
            ('é', "U+00E9 'é'"),
            ('😀', "U+1F600 '😀'"),
        ] {
            assert_eq!(character(shown), expected);
        }
        assert!(is_letter('é') && !is_letter('Ⅷ') && is_digit('٣') && !is_digit('²'));
    }
}
