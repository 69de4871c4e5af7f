//! Values as literals of CEL, whatever is in them.

use std::fmt::Write as _;

use serde_json::Value;

/// A text in quotes.
pub(crate) fn text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            control if control.is_control() => {
                // All of them are below U+FFFF.
                let _ = write!(quoted, "\\u{:04x}", u32::from(control));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// Any value. CEL wants the values of one map or list to be of one type, so each is said to be of any.
pub(crate) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(number) => number_of(number),
        Value::String(it) => text(it),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(of_any_type).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> = fields
                .map(|(key, value)| format!("{}: {}", text(key), of_any_type(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

fn of_any_type(value: &Value) -> String {
    format!("dyn({})", literal(value))
}

fn number_of(number: &serde_json::Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        // A number without a point would be a whole one, which it is too large for.
        (None, Some(fraction)) => format!("{fraction:?}"),
        (None, None) => "null".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Reads a literal of a text as CEL does, as far as it was written here.
    fn read(literal: &str) -> Option<String> {
        let inner = literal.strip_prefix('"')?.strip_suffix('"')?;
        let (mut text, mut rest) = (String::new(), inner.chars());
        while let Some(character) = rest.next() {
            match character {
                '"' | '\n' | '\r' => return None,
                '\\' => match rest.next()? {
                    'u' => {
                        let digits: String = rest.by_ref().take(4).collect();
                        let code = u32::from_str_radix(&digits, 16).ok()?;
                        text.push(char::from_u32(code)?);
                    }
                    escaped @ ('"' | '\\') => text.push(escaped),
                    _ => return None,
                },
                plain => text.push(plain),
            }
        }
        Some(text)
    }

    proptest! {
        #[test]
        fn whatever_is_in_a_text_stays_in_it(text in any::<String>()) {
            prop_assert_eq!(read(&super::text(&text)), Some(text));
        }
    }

    #[test]
    fn values_of_all_kinds_are_literals() {
        let value = json!({"a": [1, -1.5, null, true, "\"x\n"], "b": {}});
        let written = r#"{"a": dyn([dyn(1), dyn(-1.5), dyn(null), dyn(true), dyn("\"x\u000a")]), "b": dyn({})}"#;
        assert_eq!(literal(&value), written);
        assert_eq!(literal(&json!(u64::MAX)), "1.8446744073709552e19");
    }
}
