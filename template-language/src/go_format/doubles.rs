//! Doubles as Go writes them.

use serde_json::Number;

/// A double in the fewest digits that give it back, as `%v` and YAML have it: with an exponent below 1e-4
/// and from 1e6 on.
///
/// ```
/// use template_language::go_format::shortest;
/// let texts = [0.1, 5.0, 100_000.0, 1e6, 0.000_01, -2.5e-7].map(shortest);
/// assert_eq!(texts, ["0.1", "5", "100000", "1e+06", "1e-05", "-2.5e-07"]);
/// ```
pub fn shortest(number: f64) -> String {
    let digits = Decimal::of(number);
    if (-4..6).contains(&digits.exponent) {
        digits.fixed()
    } else {
        digits.scientific()
    }
}

/// A double as Go's JSON encoder writes it: an exponent only below 1e-6 and from 1e21 on.
///
/// ```
/// use template_language::go_format::json_number;
/// let texts = [1e6, 1e20, 1e21, 0.000_001, 0.000_000_1].map(json_number);
/// assert_eq!(texts, ["1000000", "100000000000000000000", "1e+21", "0.000001", "1e-7"]);
/// ```
pub fn json_number(number: f64) -> String {
    let digits = Decimal::of(number);
    if (-6..21).contains(&digits.exponent) {
        digits.fixed()
    } else {
        // JSON drops the zero that pads a negative exponent.
        digits.scientific().replace("e-0", "e-")
    }
}

/// The fewest digits that give a double back.
struct Decimal {
    negative: bool,
    /// Without leading or trailing zeros, unless it is the zero.
    digits: String,
    /// Of the first digit.
    exponent: i32,
}

impl Decimal {
    /// Of several shortest ones Go takes the nearest, and of two as near the even one. So does `serde_json`; the
    /// standard library takes the greater one.
    fn of(number: f64) -> Self {
        let text =
            Number::from_f64(number).map_or_else(|| "0".to_owned(), |number| number.to_string());
        let unsigned = text.strip_prefix('-').unwrap_or(&text);
        let (mantissa, exponent) = unsigned.split_once('e').unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let leading = all.len() - all.trim_start_matches('0').len();
        let digits = all.trim_matches('0');
        let place = |length: usize| i32::try_from(length).unwrap_or(i32::MAX);
        let exponent = exponent.parse().unwrap_or(0) + place(whole.len()) - place(leading) - 1;
        let zero = digits.is_empty();
        Self {
            negative: text.starts_with('-'),
            digits: if zero {
                "0".to_owned()
            } else {
                digits.to_owned()
            },
            exponent: if zero { 0 } else { exponent },
        }
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// Without an exponent.
    fn fixed(&self) -> String {
        let (sign, digits) = (self.sign(), &self.digits);
        let Ok(before) = usize::try_from(self.exponent + 1) else {
            let zeros = "0".repeat(self.exponent.unsigned_abs() as usize - 1);
            return format!("{sign}0.{zeros}{digits}");
        };
        match digits.split_at_checked(before) {
            Some(("", fraction)) => format!("{sign}0.{fraction}"),
            Some((whole, "")) => format!("{sign}{whole}"),
            Some((whole, fraction)) => format!("{sign}{whole}.{fraction}"),
            None => format!("{sign}{digits}{}", "0".repeat(before - digits.len())),
        }
    }

    /// With an exponent of two digits at the least.
    fn scientific(&self) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if self.exponent < 0 { '-' } else { '+' };
        let exponent = self.exponent.unsigned_abs();
        format!(
            "{}{first}{point}{rest}e{exponent_sign}{exponent:02}",
            self.sign()
        )
    }
}
