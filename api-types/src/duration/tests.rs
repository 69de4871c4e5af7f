//! Durations.

use super::*;

#[test]
fn durations_are_read_as_go_writes_them() {
    let cases = [
        ("0", 0),
        ("0s", 0),
        ("250ms", 250),
        ("90s", 90_000),
        ("1h", 3_600_000),
        ("1h0m0s", 3_600_000),
        ("0.5h", 1_800_000),
        ("2h45m10s", 9_910_000),
    ];
    for (text, milliseconds) in cases {
        assert_eq!(
            parse_duration(text),
            Some(Duration::from_millis(milliseconds)),
            "{text}"
        );
    }
}

#[test]
fn what_is_no_duration_is_refused() {
    for text in [
        "", "1", "-1h", "h", "1d", "1 h", "1.h", ".5h", "1h ", "1hm", "1..5h", "0x1h",
    ] {
        assert_eq!(parse_duration(text), None, "{text}");
    }
}

#[test]
fn a_duration_too_long_to_be_held_is_the_longest() {
    let text = format!("{}h", "9".repeat(400));
    assert_eq!(parse_duration(&text), Some(Duration::MAX));
}
