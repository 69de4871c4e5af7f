//! Which strings would read back as something else than a string if they were written plain.
//!
//! A reader resolves a plain text by the first rule that fits:
//!
//! | reads as | texts |
//! |---|---|
//! | null | `~`, `null`, `Null`, `NULL`, and the empty text |
//! | boolean | `true`, `false` in three spellings each |
//! | boolean of YAML 1.1 | `y`, `yes`, `on`, `n`, `no`, `off`; quoted for older readers |
//! | integer | decimal, `0x`, `0o`, `0b`, octal with a leading zero; `_` between digits |
//! | double | `1.5`, `1e3`, `.5`, `.inf`, `.nan` |
//! | number to the base of 60 | `1:30`, of YAML 1.1 |
//! | time | `2020-01-01`, `2020-01-01T10:00:00Z` |
//!
//! The first character tells which rules can apply at all, as it does for the Go library. Its slips are
//! here, too: a text that begins with `.` is a number only if its underscores separate digits.

/// Whether the plain text would be read as null, a boolean, a number or a time.
pub(super) fn reads_as_other(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return true;
    };
    match first {
        '~' | 'n' | 'N' | 't' | 'T' | 'f' | 'F' | 'y' | 'Y' | 'o' | 'O' => {
            is_word(text) || is_old_bool(text)
        }
        '.' => {
            is_special_float(text) || (separates_digits(text) && is_float(&text.replace('_', "")))
        }
        '+' | '-' | '0'..='9' => {
            is_special_float(text) || is_number(text) || is_time(text) || is_base60(text)
        }
        _ => false,
    }
}

/// Words of YAML 1.2.
fn is_word(text: &str) -> bool {
    matches!(
        text,
        "~" | "null" | "Null" | "NULL" | "true" | "True" | "TRUE" | "false" | "False" | "FALSE"
    )
}

/// Booleans of YAML 1.1, quoted for older readers.
fn is_old_bool(text: &str) -> bool {
    matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    )
}

/// Infinities, and what is no number.
fn is_special_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// An integer or a double, without the underscores in it.
fn is_number(text: &str) -> bool {
    let text = text.replace('_', "");
    is_integer(&text) || is_float(&text)
}

/// Whether every underscore stands between two digits.
fn separates_digits(text: &str) -> bool {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let mut underscores = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_');
    underscores
        .all(|(at, _)| is_digit(bytes.get(at.wrapping_sub(1))) && is_digit(bytes.get(at + 1)))
}

/// Decimal, `0x`, `0o`, `0b` or octal with a leading zero; the range does not matter, since a decimal
/// that is out of range reads as a double, but the others do not.
fn is_integer(text: &str) -> bool {
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let fits = |digits: &str, radix: u32| {
        !digits.starts_with(['+', '-'])
            && u64::from_str_radix(digits, radix).is_ok_and(|number| !negative || number <= 1 << 63)
    };
    let lower = unsigned.to_ascii_lowercase();
    // A sign behind the prefix is a slip of the reader.
    for (prefix, radix) in [("0o", 8), ("0b", 2)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && i64::from_str_radix(digits, radix).is_ok()
        {
            return true;
        }
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            return fits(digits, radix);
        }
    }
    match unsigned.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => fits(octal, 8),
        _ => fits(unsigned, 10),
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, and not too large for a double.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (
            mantissa,
            Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)),
        ),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some((whole, fraction)) => {
            digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty())
        }
        None => !mantissa.is_empty() && digits(mantissa),
    };
    mantissa_fits
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent))
        && text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `1:30:00` was a number in YAML 1.1.
fn is_base60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut groups = unsigned.split(':');
    let Some(first) = groups.next() else {
        return false;
    };
    let head = first.starts_with(|next: char| next.is_ascii_digit())
        && first
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut rest: Vec<&str> = groups.collect();
    let Some(last) = rest.pop() else { return false };
    let (last, fraction) = last.split_once('.').unwrap_or((last, ""));
    let sixty = |group: &str| match group.as_bytes() {
        [unit] => unit.is_ascii_digit(),
        [ten, unit] => (b'0'..=b'5').contains(ten) && unit.is_ascii_digit(),
        _ => false,
    };
    head && rest.into_iter().chain([last]).all(sixty)
        && fraction
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
}

/// A date, alone or with a time of day.
fn is_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 5 || bytes[4] != b'-' || !bytes[..4].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, rest) = text.split_at(end);
    if !is_date(date) {
        return false;
    }
    match rest.chars().next() {
        None => true,
        Some(' ') => is_time_of_day(rest.trim_start_matches(' ')).is_some_and(str::is_empty),
        Some(_) => is_time_of_day(&rest[1..]).is_some_and(is_zone),
    }
}

/// A day that there is in the calendar.
fn is_date(date: &str) -> bool {
    let parts: Vec<&str> = date.split('-').collect();
    let [year, month, day] = parts[..] else {
        return false;
    };
    let (Ok(year), Some(month), Some(day)) = (year.parse::<u32>(), short(month), short(day)) else {
        return false;
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// One or two digits.
fn short(text: &str) -> Option<u32> {
    ((1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())?
}

/// `15:4:5.999`; what follows it.
fn is_time_of_day(text: &str) -> Option<&str> {
    let mut groups = text.splitn(3, ':');
    let (hour, minute, rest) = (
        short(groups.next()?)?,
        short(groups.next()?)?,
        groups.next()?,
    );
    let end = rest
        .find(|next: char| !next.is_ascii_digit())
        .unwrap_or(rest.len());
    let second = short(&rest[..end])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = &rest[end..];
    let Some(fraction) = rest.strip_prefix(['.', ',']) else {
        return Some(rest);
    };
    let end = fraction
        .find(|next: char| !next.is_ascii_digit())
        .unwrap_or(fraction.len());
    (end > 0).then(|| &fraction[end..])
}

/// `Z`, or hours and minutes from Greenwich.
fn is_zone(text: &str) -> bool {
    if text == "Z" {
        return true;
    }
    let Some(offset) = text.strip_prefix(['+', '-']) else {
        return false;
    };
    let Some((hours, minutes)) = offset.split_once(':') else {
        return false;
    };
    let two =
        |text: &str, most: u32| text.len() == 2 && short(text).is_some_and(|number| number <= most);
    two(hours, 24) && two(minutes, 60)
}
