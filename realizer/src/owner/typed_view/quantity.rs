//! Quantities, such as the limits of `spec.resources`, as Go writes them.
//!
//! The Go controller reads them into a type of their own, so that templates see text in canonical form: a number 1 is
//! `"1"`, `1024Mi` is `1Gi`, `0.5` is `500m`. A quantity that looks canonical stays as it was written.

use serde_json::Value;

/// The smallest part that a quantity can have, as a power of ten.
const NANO: i32 = -9;
/// Digits that an `i64` holds for sure.
const SURE_DIGITS: usize = 18;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    /// `n u m k M G T P E`, or nothing.
    Decimal,
    /// `e3`.
    Exponent,
    /// `Ki Mi Gi Ti Pi Ei`.
    Binary,
}

/// A quantity as it was written.
struct Written<'t> {
    negative: bool,
    /// Before the point, without leading zeros; `0` if nothing is left.
    whole: &'t str,
    /// Behind the point.
    fraction: &'t str,
    form: Form,
    /// Of ten, or of two where the form is binary.
    exponent: i32,
}

/// A quantity as templates see it; what is none, or too large to be one, stays as it is.
pub(super) fn shown(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return value.clone(),
    };
    let text = text.trim();
    let Some(written) = Written::of(text) else {
        return value.clone();
    };
    if written.looks_canonical() {
        return Value::from(text);
    }
    match written.canonical() {
        Some(canonical) => Value::from(canonical),
        None => value.clone(),
    }
}

impl<'t> Written<'t> {
    fn of(text: &'t str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (digits, suffix) = unsigned.split_at(
            unsigned
                .find(|next: char| !next.is_ascii_digit() && next != '.')
                .unwrap_or(unsigned.len()),
        );
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return None;
        }
        let whole = whole.trim_start_matches('0');
        let (form, exponent) = read_suffix(suffix)?;
        Some(Self {
            negative: text.starts_with('-'),
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            form,
            exponent,
        })
    }

    /// Whether Go keeps the text: it does not look closely.
    fn looks_canonical(&self) -> bool {
        let digits = self.whole.len() + self.fraction.len();
        if self.form == Form::Binary {
            let sure = usize::try_from(14 - self.exponent * 3 / 10).unwrap_or(0);
            let odd = |whole: u64| whole & 7 != 0;
            return self.fraction.is_empty() && digits <= sure && self.whole.parse().is_ok_and(odd);
        }
        let scale = self.scale();
        digits <= SURE_DIGITS
            && scale.is_some_and(|scale| scale >= NANO && scale % 3 == 0)
            && !format!("{}{}", self.whole, self.fraction).ends_with("000")
            && !self.whole.starts_with('0')
    }

    /// The power of ten that the digits are to be taken with.
    fn scale(&self) -> Option<i32> {
        let exponent = if self.form == Form::Binary {
            0
        } else {
            self.exponent
        };
        exponent.checked_sub(i32::try_from(self.fraction.len()).ok()?)
    }

    /// In the largest unit that leaves no fraction; `None` for what is out of bounds.
    fn canonical(&self) -> Option<String> {
        let mut nanos = self.nanos()?;
        let one = 10_i128.pow(NANO.unsigned_abs());
        if self.form == Form::Binary {
            nanos = nanos.min(i128::from(i64::MAX) * one);
        }
        let sign = if self.negative { "-" } else { "" };
        if nanos == 0 {
            return Some("0".to_owned());
        }
        if self.form == Form::Binary && nanos % one == 0 && nanos / one >= 1024 {
            let (amount, times) = without_factor(nanos / one, 1024);
            let unit = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].get(times)?;
            return Some(format!("{sign}{amount}{unit}"));
        }
        let (amount, times) = without_factor(nanos, 10);
        let exponent = NANO + i32::try_from(times).ok()?;
        let rest = exponent.rem_euclid(3);
        let amount = amount * 10_i128.pow(rest.unsigned_abs());
        let unit = self.decimal_unit(exponent - rest)?;
        Some(format!("{sign}{amount}{unit}"))
    }

    /// The amount in billionths, rounded up.
    fn nanos(&self) -> Option<i128> {
        let digits: i128 = format!("{}{}", self.whole, self.fraction).parse().ok()?;
        let binary = if self.form == Form::Binary {
            1_i128 << self.exponent
        } else {
            1
        };
        let amount = digits.checked_mul(binary)?;
        let shift = self.scale()?.checked_sub(NANO)?;
        let power = 10_i128.checked_pow(shift.unsigned_abs());
        if shift >= 0 {
            return amount.checked_mul(power?);
        }
        // Whoever asks for some gets some, however little.
        Some(match power {
            Some(power) => amount / power + i128::from(amount % power != 0),
            None => i128::from(amount > 0),
        })
    }

    fn decimal_unit(&self, exponent: i32) -> Option<String> {
        if self.form == Form::Exponent {
            return Some(if exponent == 0 {
                String::new()
            } else {
                format!("e{exponent}")
            });
        }
        let units = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
        let place = usize::try_from((exponent - NANO) / 3).ok()?;
        units.get(place).map(|unit| (*unit).to_owned())
    }
}

fn read_suffix(suffix: &str) -> Option<(Form, i32)> {
    let exponent = match suffix {
        "n" => -9,
        "u" => -6,
        "m" => -3,
        "" => 0,
        "k" => 3,
        "M" => 6,
        "G" => 9,
        "T" => 12,
        "P" => 15,
        "E" => 18,
        "Ki" => return Some((Form::Binary, 10)),
        "Mi" => return Some((Form::Binary, 20)),
        "Gi" => return Some((Form::Binary, 30)),
        "Ti" => return Some((Form::Binary, 40)),
        "Pi" => return Some((Form::Binary, 50)),
        "Ei" => return Some((Form::Binary, 60)),
        other => {
            let exponent = other.strip_prefix(['e', 'E'])?.parse().ok()?;
            return Some((Form::Exponent, exponent));
        }
    };
    Some((Form::Decimal, exponent))
}

/// The amount divided by the factor as often as that leaves no rest, and how often that was.
fn without_factor(mut amount: i128, factor: i128) -> (i128, usize) {
    let mut times = 0;
    while amount % factor == 0 {
        amount /= factor;
        times += 1;
    }
    (amount, times)
}

#[cfg(test)]
mod tests;
