//! Comparisons inside filters: typed, as Go's templates compare.
//!
//! | left and right | `==`, `!=` | `<`, `<=`, `>`, `>=` |
//! |---|---|---|
//! | two texts | by bytes | by bytes |
//! | two integers | by value | by value |
//! | two doubles | by value | by value |
//! | two booleans | by value | an error |
//! | an integer and a double, or any other pair | an error | an error |
//! | a null, a list or a map on either side | an error | an error |
//!
//! So `[?(@.port==80.0)]` fails for an integer port: the author must write `80`.

use std::cmp::Ordering;

use serde_json::Value;

/// A value that can be compared.
enum Basic<'v> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'v str),
}

/// The value, as one that can be compared.
fn basic(value: &Value) -> Result<Basic<'_>, String> {
    match value {
        Value::Bool(value) => Ok(Basic::Bool(*value)),
        Value::String(text) => Ok(Basic::Text(text)),
        // Kubernetes reads an integer that i64 cannot hold as a double.
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Ok(Basic::Int(number)),
            (None, Some(number)) => Ok(Basic::Float(number)),
            (None, None) => Err("invalid type for comparison".into()),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err("invalid type for comparison".into())
        }
    }
}

/// Whether two values stand in the relation that the operator names.
///
/// # Errors
/// They cannot be compared, or there is no such operator. The text is upstream's.
pub(super) fn compare(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let passes: fn(Ordering) -> bool = match operator {
        "==" => Ordering::is_eq,
        "!=" => Ordering::is_ne,
        "<" => Ordering::is_lt,
        "<=" => Ordering::is_le,
        ">" => Ordering::is_gt,
        ">=" => Ordering::is_ge,
        _ => return Err(format!("unrecognized filter operator {operator}")),
    };
    let ordered = !matches!(operator, "==" | "!=");
    let ordering = match (basic(left)?, basic(right)?) {
        (Basic::Bool(_), Basic::Bool(_)) if ordered => {
            return Err("invalid type for comparison".into());
        }
        (Basic::Bool(left), Basic::Bool(right)) => left.cmp(&right),
        (Basic::Int(left), Basic::Int(right)) => left.cmp(&right),
        // JSON has no NaN, so two numbers always compare.
        (Basic::Float(left), Basic::Float(right)) => {
            left.partial_cmp(&right).unwrap_or(Ordering::Less)
        }
        (Basic::Text(left), Basic::Text(right)) => left.cmp(right),
        _ => return Err("incompatible types for comparison".into()),
    };
    Ok(passes(ordering))
}
