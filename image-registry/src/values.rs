//! JSON of others, as values. A value takes far more memory than its text.

use std::fmt;

use convention_protocol::count_values;
use serde_json::Value;

/// The most values in a document: far more than anybody writes.
pub(crate) const VALUES: usize = 10_000;

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// It is no JSON.
    Broken,
    /// It has more than [`VALUES`].
    Flood,
}

/// The document, and the most values that it may have.
///
/// # Errors
///
/// If it is none, or has more values than anybody writes.
pub(crate) fn value_in(bytes: &[u8]) -> Result<(Value, usize), NoValue> {
    let number = count_values(bytes, VALUES).ok_or(NoValue::Flood)?;
    let value = serde_json::from_slice(bytes).map_err(|_| NoValue::Broken)?;
    Ok((value, number))
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => f.write_str("is no JSON"),
            Self::Flood => write!(f, "has more than {VALUES} values"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn values(value: &Value) -> usize {
        match value {
            Value::Array(values) => 1 + values.iter().map(self::values).sum::<usize>(),
            Value::Object(fields) => 1 + fields.values().map(|it| 1 + values(it)).sum::<usize>(),
            _ => 1,
        }
    }

    proptest! {
        #[test]
        fn there_are_no_more_values_than_were_counted(
            text in "[\\[\\]{}:,\"\\\\ a0]{0,60}",
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = value_in(&bytes);
            for text in [text.clone(), format!("[{text}]"), format!("{{\"a\": [{text}]}}")] {
                if let Ok((value, number)) = value_in(text.as_bytes()) {
                    // The first one has no sign before it.
                    prop_assert!(values(&value) <= number + 1, "{text}");
                }
            }
        }
    }

    #[test]
    fn a_document_is_read_unless_it_is_a_flood_of_values() {
        let text = format!(
            r#"{{"a": ["{}", "\\",  "\""], "b": 1}}"#,
            ",".repeat(VALUES)
        );
        assert!(value_in(text.as_bytes()).is_ok());
        for flood in ["[", "[0,", "{\"\":"] {
            let flood = flood.repeat(VALUES + 1);
            assert_eq!(value_in(flood.as_bytes()), Err(NoValue::Flood));
        }
        let flood = format!("[{}0]", "0,".repeat(VALUES));
        assert_eq!(value_in(flood.as_bytes()), Err(NoValue::Flood));
        for broken in [&b"{"[..], b"\\\""] {
            assert_eq!(value_in(broken), Err(NoValue::Broken));
        }
    }
}
