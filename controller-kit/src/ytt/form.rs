//! What goes to ytt and comes from it, as text.

use std::fmt::{Display, Write as _};

use serde_json::Value;

/// In which form ytt writes. JSON leaves no doubt of what is text and what is a number; YAML can have keys like `8080`.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Json,
    Yaml,
}

impl Form {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }

    /// Only the first document counts (docs/behaviour/ytt.md#rendering).
    pub(super) fn first_document(self, output: &[u8]) -> Result<Value, String> {
        let unreadable = |error: &dyn Display| format!("the output cannot be read: {error}");
        match self {
            Self::Json => {
                let mut documents = serde_json::Deserializer::from_slice(output).into_iter();
                match documents.next() {
                    Some(Ok(document)) => Ok(document),
                    Some(Err(error)) => Err(unreadable(&error)),
                    None => Ok(Value::Null),
                }
            }
            Self::Yaml => {
                let text = String::from_utf8_lossy(output);
                let documents: Vec<Value> =
                    serde_saphyr::from_multiple(&text).map_err(|error| unreadable(&error))?;
                Ok(documents.into_iter().next().map(whole).unwrap_or_default())
            }
        }
    }
}

/// As ytt writes JSON: a double without a fraction looks like an integer.
fn whole(value: Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = number.as_f64().map(|double| format!("{double}"));
            let integer = text.and_then(|text| text.parse::<i64>().ok());
            integer.map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => items.into_iter().map(whole).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (key, whole(value)))
            .collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

/// JSON takes control characters that YAML refuses, or takes for line breaks and folds; they can only stand in strings, where both know the escape.
pub(super) fn escape_controls(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        match character {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "\\u{:04x}", u32::from(character));
            }
            other => escaped.push(other),
        }
    }
    escaped
}
