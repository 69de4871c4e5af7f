//! How a text may be written.
//!
//! | style | when |
//! |---|---|
//! | plain | nothing in it means something to YAML, and it reads back as a string |
//! | single quotes | it has signs of YAML, or blanks at its ends |
//! | double quotes | it has characters that cannot be printed, or would read as something else |
//! | literal | it has line breaks, is no key, and lines do not end in blanks |
//!
//! The Go library goes through the characters once and notes what it sees; so does [`Shape::of`].

use super::plain::reads_as_other;

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// Behind `|`, line by line.
    Literal,
}

/// Which styles the characters of a text allow.
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts about a text"
)]
pub(super) struct Shape {
    lines: bool,
    plain: bool,
    single_quoted: bool,
    literal: bool,
}

impl Shape {
    /// What the characters of a text allow.
    pub(super) fn of(text: &str) -> Self {
        let mut indicators = text.starts_with("---") || text.starts_with("...");
        let (mut special, mut tabs, mut lines) = (false, false, false);
        let (mut break_space, mut space_break) = (false, false);
        let mut previous = None;
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            let before_blank = characters
                .peek()
                .is_none_or(|next| matches!(next, ' ' | '\t'));
            indicators |= is_indicator(character, previous, before_blank);
            tabs |= character == '\t';
            special |= character != '\t' && !is_printable(character);
            lines |= is_break(character);
            break_space |= character == ' ' && previous.is_some_and(is_break);
            space_break |= is_break(character) && previous == Some(' ');
            previous = Some(character);
        }
        let at_edge = |edge: char| edge == ' ' || is_break(edge);
        let edges = text.starts_with(at_edge) || text.ends_with(at_edge);
        let odd = space_break || tabs || special;
        Self {
            lines,
            plain: !(edges || break_space || odd || lines || indicators),
            single_quoted: !(break_space || odd),
            literal: !(text.is_empty() || text.ends_with(' ') || space_break || special),
        }
    }

    /// The style for the text, as a key in one line or as a value.
    pub(super) fn style(&self, text: &str, key: bool) -> Style {
        if text.contains('\n') {
            let literal = self.literal && !key;
            return if literal {
                Style::Literal
            } else {
                Style::DoubleQuoted
            };
        }
        if reads_as_other(text) || (key && self.lines) {
            return Style::DoubleQuoted;
        }
        match (self.plain, self.single_quoted) {
            (true, _) => Style::Plain,
            (false, true) => Style::SingleQuoted,
            (false, false) => Style::DoubleQuoted,
        }
    }
}

/// Whether YAML takes a character for the end of a line; there are more than JSON knows.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// The writer knows no character beyond the first plane, and takes all of those for unprintable.
fn is_printable(character: char) -> bool {
    matches!(character, '\n' | ' '..='~' | '\u{a0}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
}

/// Characters that mean something to YAML where they stand, outside of `[]` and `{}`.
fn is_indicator(character: char, previous: Option<char>, before_blank: bool) -> bool {
    let first = previous.is_none();
    match character {
        // A NUL counts as white space, too.
        '#' => previous
            .is_none_or(|previous| matches!(previous, ' ' | '\t' | '\0') || is_break(previous)),
        ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
        | '`' => first,
        '?' | '-' => first && before_blank,
        ':' => before_blank,
        _ => false,
    }
}

/// Hands out the text as it stands between double quotes, piece by piece.
pub(super) fn escape(text: &str, mut write: impl FnMut(&str)) {
    // The writer looks for a byte order mark at the start of the text at each character, and escapes it all.
    let all = text.starts_with('\u{feff}');
    for character in text.chars() {
        let as_it_is =
            is_printable(character) && !is_break(character) && !matches!(character, '"' | '\\');
        if as_it_is && !all {
            write(character.encode_utf8(&mut [0; 4]));
        } else {
            write(&escaped(character));
        }
    }
}

/// A character as an escape: a letter where there is one, else its code.
fn escaped(character: char) -> String {
    let short = match character {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' => '"',
        '\\' => '\\',
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        other => {
            return match u32::from(other) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            };
        }
    };
    format!("\\{short}")
}
