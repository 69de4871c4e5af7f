//! Texts of others, made fit for a condition.

/// How many bytes of what a server said are told.
const MOST_BYTES: usize = 2048;

/// A text in one line that no terminal obeys, at most 2 kB of it.
pub(crate) fn told(text: &str) -> String {
    let mut line = String::new();
    for c in text.trim().chars() {
        let before = line.len();
        if is_harmless(c) {
            line.push(c);
        } else {
            line.extend(c.escape_default());
        }
        if line.len() > MOST_BYTES {
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
    fn a_text_of_a_server_stays_one_line() {
        assert_eq!(
            told(" no\r\n\u{1b}[31m \u{202e}x\n"),
            r"no\r\n\u{1b}[31m \u{202e}x"
        );
        assert_eq!(told("größe \"a\" \\ 猫"), "größe \"a\" \\ 猫");
    }

    proptest! {
        #[test]
        fn no_text_is_long_or_has_a_control_character(text in any::<String>(), times in 1..400_usize) {
            let told = told(&text.repeat(times));
            prop_assert!(told.len() <= MOST_BYTES + '…'.len_utf8());
            prop_assert!(told.chars().all(is_harmless));
        }
    }
}
