//! Text as Go writes it, where users or their tests compare it.

use serde_json::Value;

/// `%v` of a decoded JSON value: `map[a:b]`, `[a b]`, `<nil>`, doubles such as `1e+06`.
pub fn display(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), shortest),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(display).collect::<Vec<_>>().join(" ")
        ),
        Value::Object(fields) => {
            let mut pairs: Vec<(&String, &Value)> = fields.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            let pairs: Vec<String> = pairs
                .into_iter()
                .map(|(key, value)| format!("{key}:{}", display(value)))
                .collect();
            format!("map[{}]", pairs.join(" "))
        }
    }
}

/// A double in its shortest form, with an exponent below 1e-4 and from a million on (`%v`, and YAML).
pub fn shortest(number: f64) -> String {
    scientific_unless(number, |exponent| (-4..6).contains(&exponent))
}

/// A double as Go's JSON encoder writes it: an exponent only below 1e-6 and from 1e21 on.
pub fn json_number(number: f64) -> String {
    let text = scientific_unless(number, |exponent| (-6..21).contains(&exponent));
    // JSON drops the zero that pads a negative exponent.
    match text.split_once("e-0") {
        Some((digits, exponent)) => format!("{digits}e-{exponent}"),
        None => text,
    }
}

fn scientific_unless(number: f64, plain: impl Fn(i32) -> bool) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number == 0.0 || plain(exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Compact JSON as Go's encoder writes it: keys sorted, `<`, `>`, `&` and two line separators escaped.
pub fn json(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => number.to_string(),
            (None, Some(number), _) => number.to_string(),
            (None, None, Some(number)) => json_number(number),
            (None, None, None) => number.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(json).collect::<Vec<_>>().join(","))
        }
        Value::Object(fields) => {
            let mut pairs: Vec<(&String, &Value)> = fields.iter().collect();
            pairs.sort_by_key(|(key, _)| *key);
            let pairs: Vec<String> = pairs
                .into_iter()
                .map(|(key, value)| format!("{}:{}", quoted(key), json(value)))
                .collect();
            format!("{{{}}}", pairs.join(","))
        }
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// The name of the Go type that a JSON value decodes to.
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
}
