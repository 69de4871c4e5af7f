//! Quantities that are the same amount in other words.
//!
//! A webhook in Go writes each quantity of a template anew: `0.5` comes back as `500m`, though nobody meant to change it. The
//! words of the author are kept for an amount that is the same.

use std::collections::HashMap;

use convention_protocol::PodTemplate;
use serde_json::{Map, Value};

use crate::schema::shape::{List, POD_SPEC, Shape, after_number, is_quantity};

/// Gives quantities of a template the words that they had before, where they are the same amount.
///
/// Containers, variables and the like are known again by their names, wherever they stand now.
///
/// ```
/// use conventions::quantity::keep_wording;
/// use convention_protocol::PodTemplate;
/// use serde_json::{Value, from_value, json, to_value};
///
/// let with = |cpu: &str, memory: &str| -> PodTemplate {
///     let limits = json!({"cpu": cpu, "memory": memory});
///     from_value(json!({"spec": {"containers": [{"name": "a", "resources": {"limits": limits}}]}})).unwrap()
/// };
/// let mut answered = with("500m", "2Gi");
/// keep_wording(&with("0.5", "1Gi"), &mut answered);
/// assert_eq!(answered, with("0.5", "2Gi"));
/// ```
pub fn keep_wording(before: &PodTemplate, after: &mut PodTemplate) {
    let Shape::Object(pod) = &*POD_SPEC else {
        return;
    };
    if let (Some(before), Some(after)) = (&before.spec, &mut after.spec) {
        keep_in_fields(|field| pod.fields.get(field), before, after);
    }
}

fn keep_in_fields<'s>(
    shape_of: impl Fn(&str) -> Option<&'s Shape>,
    before: &Map<String, Value>,
    after: &mut Map<String, Value>,
) {
    for (field, after) in after {
        if let (Some(shape), Some(before)) = (shape_of(field), before.get(field)) {
            keep(shape, before, after);
        }
    }
}

fn keep(shape: &Shape, before: &Value, after: &mut Value) {
    match (shape, before, after) {
        (Shape::Quantity, before, after) if before != after && is_same_amount(before, after) => {
            *after = before.clone();
        }
        (Shape::Map(shape), Value::Object(before), Value::Object(after)) => {
            keep_in_fields(|_| Some(shape), before, after);
        }
        (Shape::Object(object), Value::Object(before), Value::Object(after)) => {
            keep_in_fields(|field| object.fields.get(field), before, after);
        }
        (Shape::List(list), Value::Array(before), Value::Array(after)) => {
            keep_in_list(list, before, after);
        }
        _ => {}
    }
}

/// Items that have keys are known by them, others by their place.
fn keep_in_list(list: &List, before: &[Value], after: &mut [Value]) {
    let mut by_key = HashMap::new();
    for item in before {
        if let Some(key) = list.key_of(item) {
            by_key.entry(key).or_insert(item);
        }
    }
    for (index, after) in after.iter_mut().enumerate() {
        let same = match list.key_of(after) {
            Some(key) => by_key.get(&key).copied(),
            None => before.get(index),
        };
        if let Some(before) = same {
            keep(&list.item, before, after);
        }
    }
}

/// Whether two values are quantities of the same amount, in whatever words.
///
/// ```
/// use conventions::quantity::is_same_amount;
/// use serde_json::json;
///
/// assert!(is_same_amount(&json!("1Gi"), &json!("1024Mi")));
/// assert!(!is_same_amount(&json!("1Gi"), &json!("1G")));
/// assert!(!is_same_amount(&json!("much"), &json!("much")));
/// ```
pub fn is_same_amount(left: &Value, right: &Value) -> bool {
    let amount = |value: &Value| match value {
        Value::String(text) => amount(text),
        Value::Number(number) => amount(&number.to_string()),
        _ => None,
    };
    matches!((amount(left), amount(right)), (Some(left), Some(right)) if left == right)
}

/// A billionth: Kubernetes knows nothing smaller.
const PARTS: i128 = 1_000_000_000;

/// A quantity in billionths; nothing if it is none, or has no exact number of them.
fn amount(text: &str) -> Option<i128> {
    if !is_quantity(text) {
        return None;
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let suffix = after_number(unsigned)?;
    let number = &unsigned[..unsigned.len() - suffix.len()];
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("0{whole}{fraction}").parse::<i128>().ok()?;
    let (base, exponent) = unit(suffix)?;
    let scaled = digits.checked_mul(PARTS)?;
    let decimals = i32::try_from(fraction.len()).ok()?;
    let (scaled, shift) = match base {
        2 => (
            scaled.checked_mul(1_i128.checked_shl(exponent.unsigned_abs())?)?,
            0,
        ),
        _ => (scaled, exponent),
    };
    let scaled = by_ten(scaled, shift.checked_sub(decimals)?)?;
    Some(if text.starts_with('-') {
        -scaled
    } else {
        scaled
    })
}

fn by_ten(number: i128, exponent: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 {
        return number.checked_mul(factor);
    }
    (number % factor == 0).then_some(number / factor)
}

/// Base and exponent that a suffix stands for.
fn unit(suffix: &str) -> Option<(u8, i32)> {
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let exponents = (-9..).step_by(3);
    if let Some((_, exponent)) = decimal
        .iter()
        .zip(exponents)
        .find(|(unit, _)| **unit == suffix)
    {
        return Some((10, exponent));
    }
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let exponents = (10..).step_by(10);
    if let Some((_, exponent)) = binary
        .iter()
        .zip(exponents)
        .find(|(unit, _)| **unit == suffix)
    {
        return Some((2, exponent));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((10, exponent.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use convention_protocol::PodTemplate;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_those_of_kubernetes() {
        for (left, right) in [
            ("0.5", "500m"),
            ("1", "1000m"),
            ("1Gi", "1024Mi"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("1E3", "1000"),
            ("100e-3", "0.1"),
            ("+1", "1"),
            (".5", "0.50"),
            ("1.", "1"),
            ("-0.5", "-500m"),
            ("0", "-0"),
            ("1n", "0.000000001"),
            ("1000n", "1u"),
            ("8Ei", "8192Pi"),
            ("1E", "1000P"),
        ] {
            assert_eq!(amount(left), amount(right), "{left} {right}");
            assert!(amount(left).is_some(), "{left}");
        }
        for (left, right) in [("1", "1m"), ("1Ki", "1k"), ("1", "-1"), ("1M", "1m")] {
            assert_ne!(amount(left), amount(right), "{left} {right}");
        }
        let huge = "9".repeat(60);
        for none in [
            "",
            "one",
            "0.0000000001",
            "1e99",
            "1e-99",
            "1e999999999999",
            "2e1.5",
            &huge,
        ] {
            assert_eq!(amount(none), None, "{none}");
        }
        assert!(!is_same_amount(&json!("one"), &json!("two")));
        assert!(is_same_amount(&json!(1), &json!("1000m")));
    }

    fn template(containers: &Value) -> PodTemplate {
        serde_json::from_value(json!({"spec": {"containers": containers}})).unwrap()
    }

    #[test]
    fn a_quantity_is_found_again_wherever_its_container_stands() {
        let limits = |cpu: Value| json!({"limits": {"cpu": cpu}});
        let before = template(&json!([
            {"name": "a", "resources": limits(json!("0.5"))},
            {"name": "b", "resources": limits(json!(2)), "env": [{"name": "X", "valueFrom":
                {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}}]},
        ]));
        let mut after = template(&json!([
            {"name": "sidecar", "resources": limits(json!("500m"))},
            {"name": "b", "resources": limits(json!("2")), "env": [{"name": "W"}, {"name": "X", "valueFrom":
                {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}}]},
            {"name": "a", "resources": limits(json!("500m"))},
        ]));
        keep_wording(&before, &mut after);
        let expected = template(&json!([
            {"name": "sidecar", "resources": limits(json!("500m"))},
            {"name": "b", "resources": limits(json!(2)), "env": [{"name": "W"}, {"name": "X", "valueFrom":
                {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1000m"}}}]},
            {"name": "a", "resources": limits(json!("0.5"))},
        ]));
        assert_eq!(after, expected);
    }

    #[test]
    fn nothing_but_quantities_is_put_back() {
        let before = template(&json!([{"name": "a", "args": ["0.5"], "notYetKnown": "0.5"}]));
        let changed = template(&json!([{"name": "a", "args": ["500m"], "notYetKnown": "500m"}]));
        let mut after = changed.clone();
        keep_wording(&before, &mut after);
        assert_eq!(after, changed);
    }

    proptest! {
        #[test]
        fn a_thousand_thousandths_are_one_whole(number in 0_i64..1_000_000_000) {
            let thousandths = format!("{number}000m");
            prop_assert_eq!(amount(&thousandths), amount(&number.to_string()));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+.0-9eEmKi]{0,30}|\\PC{0,6}") {
            let _ = amount(&text);
        }
    }
}
