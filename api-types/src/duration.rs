//! Durations as text.

use std::time::Duration;

/// What [`parse_duration`] reads, as a pattern for schemas.
pub(crate) const DURATION_PATTERN: &str = r"^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$";

/// Reads a duration as Go writes it, without a sign and nothing smaller than milliseconds: `0`, or numbers with the units
/// `ms`, `s`, `m` and `h`. One that is too long to be held counts as the longest.
///
/// ```
/// use api_types::duration::parse_duration;
/// use std::time::Duration;
///
/// assert_eq!(parse_duration("1h30m"), Some(Duration::from_secs(5400)));
/// assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
/// assert_eq!(parse_duration("0"), Some(Duration::ZERO));
/// assert_eq!(parse_duration("5 minutes"), None);
/// ```
pub fn parse_duration(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    if text.is_empty() {
        return None;
    }
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        sum = sum.saturating_add(amount(number, unit_seconds(unit)?)?);
        rest = after;
    }
    Some(sum)
}

fn unit_seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    })
}

fn amount(number: &str, seconds: f64) -> Option<Duration> {
    let digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let well_formed = match number.split_once('.') {
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => digits(number),
    };
    if !well_formed {
        return None;
    }
    let number: f64 = number.parse().ok()?;
    Some(Duration::try_from_secs_f64(number * seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests;
