//! Whether two values mean the same to Kubernetes.

use conventions::quantity::is_same_amount;
use serde_json::{Map, Value, json};

/// Fields that hold quantities, and fields whose fields do.
const QUANTITIES: [&str; 2] = ["divisor", "sizeLimit"];
const OF_QUANTITIES: [&str; 2] = ["limits", "requests"];

/// Whether two values mean the same, defaults being filled in: what is missing is what is empty, false or zero, and the words
/// of a quantity do not matter.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    same_at(left, right, Place::Anything)
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Anything,
    Quantity,
    Quantities,
}

impl Place {
    fn below(self, field: &str) -> Self {
        match self {
            Self::Quantities => Self::Quantity,
            _ if QUANTITIES.contains(&field) => Self::Quantity,
            _ if OF_QUANTITIES.contains(&field) => Self::Quantities,
            _ => Self::Anything,
        }
    }
}

fn same_at(left: &Value, right: &Value, place: Place) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => same_fields(left, right, place),
        (Value::Array(left), Value::Array(right)) => {
            let pairs = left.iter().zip(right);
            left.len() == right.len() && { pairs }.all(|(left, right)| same_at(left, right, place))
        }
        _ if place == Place::Quantity && is_same_amount(left, right) => true,
        _ if left == right => true,
        _ => is_nothing(left, place) && is_nothing(right, place),
    }
}

fn same_fields(left: &Map<String, Value>, right: &Map<String, Value>, place: Place) -> bool {
    let of = |name: &str, fields: &Map<String, Value>| fields.get(name).is_some();
    let both_or_left = left.iter().all(|(name, value)| {
        let other = right.get(name).unwrap_or(&Value::Null);
        same_at(value, other, place.below(name))
    });
    let mut right_only = right.iter().filter(|(name, _)| !of(name, left));
    both_or_left && right_only.all(|(name, value)| is_nothing(value, place.below(name)))
}

/// Whether a value says no more than its absence does.
fn is_nothing(value: &Value, place: Place) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => {
            text.is_empty() || place == Place::Quantity && is_same_amount(value, &json!("0"))
        }
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => {
            let mut fields = fields.iter();
            fields.all(|(name, value)| is_nothing(value, place.below(name)))
        }
    }
}
