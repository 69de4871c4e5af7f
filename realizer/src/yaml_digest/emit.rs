//! Writing YAML in block style.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::plain::reads_as_other;
use crate::go_format;

const INDENT: usize = 4;
/// A longer key needs the `? key` form.
const LONGEST_SIMPLE_KEY: usize = 128;

pub(super) fn document(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(fields) if !fields.is_empty() => mapping(&mut out, fields, 0),
        Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0),
        scalar_or_empty => {
            out.push_str(&scalar(scalar_or_empty, INDENT, false));
            end_line(&mut out);
        }
    }
    out
}

fn end_line(out: &mut String) {
    if !out.ends_with('\n') {
        out.push('\n');
    }
}

/// The next multiple of four: what is nested in a mapping aligns to it, wherever the mapping starts.
fn aligned(indent: usize) -> usize {
    (indent + INDENT) / INDENT * INDENT
}

fn mapping(out: &mut String, fields: &Map<String, Value>, indent: usize) {
    let mut keys: Vec<&String> = fields.keys().collect();
    keys.sort_by(|left, right| natural(left, right));
    for (position, key) in keys.into_iter().enumerate() {
        if position > 0 {
            out.push_str(&" ".repeat(indent));
        }
        let Some(value) = fields.get(key) else {
            continue;
        };
        if key.len() > LONGEST_SIMPLE_KEY
            || key.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}'])
        {
            out.push_str("? ");
            out.push_str(&text(key, aligned(indent), false));
            end_line(out);
            out.push_str(&" ".repeat(indent));
            out.push(':');
        } else {
            out.push_str(&text(key, indent, true));
            out.push(':');
        }
        nested(out, value, aligned(indent));
    }
}

fn nested(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            mapping(out, fields, indent);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            sequence(out, items, indent);
        }
        scalar_or_empty => {
            out.push(' ');
            out.push_str(&scalar(scalar_or_empty, indent, false));
            end_line(out);
        }
    }
}

/// Items start behind `- `, so what is nested in one is two columns further, not four.
fn sequence(out: &mut String, items: &[Value], indent: usize) {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => mapping(out, fields, indent + 2),
            Value::Array(items) if !items.is_empty() => sequence(out, items, indent + 2),
            scalar_or_empty => {
                out.push_str(&scalar(scalar_or_empty, indent + 2, false));
                end_line(out);
            }
        }
    }
}

fn scalar(value: &Value, indent: usize, key: bool) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number
            .as_f64()
            .map_or_else(|| number.to_string(), go_format::shortest),
        Value::String(value) => text(value, indent, key),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// What a text contains decides how it may be written.
#[derive(Default)]
struct Contents {
    lines: bool,
    plain: bool,
    single_quoted: bool,
    block: bool,
}

fn text(value: &str, indent: usize, key: bool) -> String {
    let contents = analyse(value);
    if value.contains('\n') && contents.block && !key {
        return literal(value, indent);
    }
    let quoted = value.contains('\n') || reads_as_other(value);
    if !quoted && contents.plain {
        return value.to_owned();
    }
    if !quoted && contents.single_quoted && !(key && contents.lines) {
        return format!("'{}'", value.replace('\'', "''"));
    }
    double_quoted(value)
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_break(character: char) -> bool {
    matches!(character, ' ' | '\t') || is_break(character)
}

fn is_printable(character: char) -> bool {
    match u32::from(character) {
        0x0a | 0x20..=0x7e => true,
        0xfeff | 0xfffe | 0xffff => false,
        code => (0xa0..=0xffff).contains(&code),
    }
}

fn analyse(value: &str) -> Contents {
    if value.is_empty() {
        return Contents {
            plain: true,
            single_quoted: true,
            ..Contents::default()
        };
    }
    let characters: Vec<char> = value.chars().collect();
    let last = characters.len() - 1;
    let mut indicators = value.starts_with("---") || value.starts_with("...");
    let (mut special, mut tabs, mut lines) = (false, false, false);
    let (mut edge, mut trailing_space, mut break_space, mut space_break) =
        (false, false, false, false);
    let (mut after_space, mut after_break, mut after_blank) = (false, false, true);
    for (at, &character) in characters.iter().enumerate() {
        let before_blank = characters
            .get(at + 1)
            .is_none_or(|next| is_blank_or_break(*next));
        indicators |= is_indicator(character, at == 0, after_blank, before_blank);
        tabs |= character == '\t';
        special |= character != '\t' && !is_printable(character);
        if character == ' ' {
            edge |= at == 0 || at == last;
            trailing_space |= at == last;
            break_space |= after_break;
        } else if is_break(character) {
            lines = true;
            edge |= at == 0 || at == last;
            space_break |= after_space;
        }
        (after_space, after_break) = (character == ' ', is_break(character));
        after_blank = is_blank_or_break(character);
    }
    let odd = space_break || tabs || special;
    Contents {
        lines,
        plain: !edge && !break_space && !odd && !lines && !indicators,
        single_quoted: !break_space && !odd,
        block: !trailing_space && !space_break && !special,
    }
}

/// Characters that mean something to YAML where they stand, in block context.
fn is_indicator(character: char, first: bool, after_blank: bool, before_blank: bool) -> bool {
    match character {
        '#' => first || after_blank,
        ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@'
        | '`' => first,
        '?' | '-' => first && before_blank,
        ':' => before_blank,
        _ => false,
    }
}

fn literal(value: &str, indent: usize) -> String {
    let mut out = String::from("|");
    if value.starts_with([' ', '\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        out.push_str(&INDENT.to_string());
    }
    let mut backwards = value.chars().rev();
    match (backwards.next().is_some_and(is_break), backwards.next()) {
        (false, _) => out.push('-'),
        (true, None) => out.push('+'),
        (true, Some(before)) if is_break(before) => out.push('+'),
        (true, Some(_)) => {}
    }
    out.push('\n');
    for line in value.split_inclusive('\n') {
        if line != "\n" {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(line);
    }
    out
}

fn double_quoted(value: &str) -> String {
    let mut out = String::from("\"");
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push_str("\\0"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            '\u{1b}' => out.push_str("\\e"),
            '\u{85}' => out.push_str("\\N"),
            '\u{2028}' => out.push_str("\\L"),
            '\u{2029}' => out.push_str("\\P"),
            printable if is_printable(printable) => out.push(printable),
            other => out.push_str(&match u32::from(other) {
                code @ 0..=0xff => format!("\\x{code:02X}"),
                code @ 0x100..=0xffff => format!("\\u{code:04X}"),
                code => format!("\\U{code:08X}"),
            }),
        }
    }
    out.push('"');
    out
}

/// Letters before digits, digits by their number: `a2` comes before `a10`.
fn natural(left: &str, right: &str) -> Ordering {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut in_digits = false;
    for (at, (&one, &other)) in left.iter().zip(&right).enumerate() {
        if one == other {
            in_digits = one.is_numeric();
            continue;
        }
        return match (one.is_alphabetic(), other.is_alphabetic()) {
            (true, true) => one.cmp(&other),
            (true, false) => {
                if in_digits {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (false, true) => {
                if in_digits {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (false, false) => numbers(&left, &right, at),
        };
    }
    left.len().cmp(&right.len())
}

fn numbers(left: &[char], right: &[char], at: usize) -> Ordering {
    // Zeros in the middle of a number are digits of it; at its start they are not.
    let zero = left[at] == '0' || right[at] == '0';
    let within = zero
        && left[..at]
            .iter()
            .rev()
            .take_while(|digit| digit.is_numeric())
            .any(|digit| *digit != '0');
    let number = |characters: &[char]| {
        let digits = characters[at..]
            .iter()
            .take_while(|digit| digit.is_numeric());
        let start = i64::from(within);
        digits.fold((start, 0_usize), |(number, length), digit| {
            (
                number
                    .wrapping_mul(10)
                    .wrapping_add(i64::from(u32::from(*digit)) - i64::from(u32::from('0'))),
                length + 1,
            )
        })
    };
    number(left)
        .cmp(&number(right))
        .then_with(|| left[at].cmp(&right[at]))
}
