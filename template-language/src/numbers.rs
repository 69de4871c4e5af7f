//! Numbers as Go's JSON writes them.
//!
//! The Go controller decodes objects without a type, so that all its numbers are doubles, and encodes
//! `1.0` as `1`. Here a number keeps what it was read as, integer or double. A field of type integer
//! refuses `5.0`, so doubles without a fraction become integers before anything is submitted.
//!
//! Doubles hold whole numbers exactly up to 2^53. Above it a double may stand for several integers,
//! and stays what it is.

use std::borrow::Cow;

use serde_json::Value;

/// Doubles hold whole numbers exactly up to here; greater ones stay doubles.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The value with integral doubles as integers, at any depth.
///
/// A value without such doubles, which nearly all are, is not copied.
///
/// ```
/// use std::borrow::Cow;
/// use serde_json::json;
/// use template_language::numbers::plain;
///
/// let value = json!({"replicas": 2.0, "ratio": 0.5, "list": [1e3]});
/// let plain = plain(Cow::Owned(value)).into_owned();
/// assert_eq!(plain, json!({"replicas": 2, "ratio": 0.5, "list": [1000]}));
/// ```
pub fn plain(value: Cow<'_, Value>) -> Cow<'_, Value> {
    if is_plain(&value) {
        return value;
    }
    let mut value = value.into_owned();
    make_plain(&mut value);
    Cow::Owned(value)
}

/// Whether there is nothing to do.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(_) => integral(value).is_none(),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(entries) => entries.values().all(is_plain),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

/// Replaces them where they stand.
fn make_plain(value: &mut Value) {
    if let Some(integer) = integral(value) {
        *value = integer.into();
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(make_plain),
        Value::Object(entries) => entries.values_mut().for_each(make_plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What a number becomes, if it is a double that stands for exactly one integer.
#[expect(
    clippy::cast_possible_truncation,
    reason = "checked: integral, and 2^53 at the most"
)]
fn integral(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else {
        return None;
    };
    let double = number.as_f64().filter(|_| number.is_f64())?;
    (double.fract() == 0.0 && double.abs() <= LARGEST).then_some(double as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integral_doubles_become_integers_and_nothing_else_changes() {
        let cases = [
            ("1.0", "1"),
            ("-3.0", "-3"),
            ("1.5", "1.5"),
            ("7", "7"),
            ("1e21", "1e21"),
            ("9007199254740992.0", "9007199254740992"),
            ("9007199254740994.0", "9007199254740994.0"),
            (
                r#"{"a":[2.0,{"b":-0.5}],"c":"1.0"}"#,
                r#"{"a":[2,{"b":-0.5}],"c":"1.0"}"#,
            ),
            ("18446744073709551615", "18446744073709551615"),
        ];
        for (input, expected) in cases {
            let value: Value = serde_json::from_str(input).unwrap();
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(plain(Cow::Owned(value)).into_owned(), expected, "{input}");
        }
    }

    #[test]
    fn plain_values_are_not_copied() {
        let value = serde_json::json!({"a": [1, "x"]});
        assert!(matches!(plain(Cow::Borrowed(&value)), Cow::Borrowed(_)));
    }
}
