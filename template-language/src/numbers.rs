//! Numbers as Go's JSON writes them.

use std::borrow::Cow;

use serde_json::Value;

/// Doubles hold whole numbers exactly up to here; greater ones stay doubles.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// The value with integral doubles as integers: to the Go controller all numbers are doubles, and it writes `1.0` as
/// `1` (spec 3.3).
pub fn plain(value: Cow<'_, Value>) -> Cow<'_, Value> {
    if is_plain(&value) {
        return value;
    }
    let mut value = value.into_owned();
    make_plain(&mut value);
    Cow::Owned(value)
}

fn is_plain(value: &Value) -> bool {
    match value {
        Value::Number(_) => integral(value).is_none(),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(entries) => entries.values().all(is_plain),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

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
