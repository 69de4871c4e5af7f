//! Texts of others, made fit for a condition, an event or a log.

/// A text in one line that no terminal obeys, at most so many bytes of it.
///
/// ```
/// use conventions::told::in_a_line;
///
/// assert_eq!(in_a_line("no\nsuch \u{1b}[31mthing ", 100), r"no\nsuch \u{1b}[31mthing");
/// assert_eq!(in_a_line("much too long", 8), "much too…");
/// ```
pub fn in_a_line(text: &str, most_bytes: usize) -> String {
    let mut line = String::new();
    for c in text.trim().chars() {
        let before = line.len();
        if is_harmless(c) {
            line.push(c);
        } else {
            line.extend(c.escape_default());
        }
        if line.len() > most_bytes {
            line.truncate(before);
            line.push('…');
            break;
        }
    }
    line
}

/// Whether a reader sees the character as what it is, where it stands.
fn is_harmless(c: char) -> bool {
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    let turns = matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let hides = matches!(c, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}');
    !(c.is_control() || breaks || turns || hides)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_of_others_stays_one_line() {
        assert_eq!(
            in_a_line(" no\r\n\u{1b}[31m \u{202e}x\n", 100),
            r"no\r\n\u{1b}[31m \u{202e}x"
        );
        assert_eq!(in_a_line("größe \"a\" \\ 猫", 100), "größe \"a\" \\ 猫");
    }

    proptest! {
        #[test]
        fn no_text_is_long_or_has_a_control_character(
            text in any::<String>(),
            times in 1..400_usize,
            most in 0..3000_usize,
        ) {
            let told = in_a_line(&text.repeat(times), most);
            prop_assert!(told.len() <= most + '…'.len_utf8());
            prop_assert!(told.chars().all(is_harmless));
        }
    }
}
