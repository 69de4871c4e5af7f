//! What stands in brackets: slices, and the parts of a filter.

use super::super::ast::{Bound, Slice};

/// Where the parenthesis of a filter closes: outside of the first quoted text in it.
pub(super) fn filter_end(body: &str) -> Result<usize, String> {
    let mut opened: Option<char> = None;
    let mut closed = false;
    let mut previous = '(';
    for (at, character) in body.char_indices() {
        match character {
            '\n' => break,
            '"' | '\'' => match opened {
                None => opened = Some(character),
                Some(quote) => closed |= previous != '\\' && character == quote,
            },
            ')' if opened.is_some() == closed => return Ok(at),
            _ => {}
        }
        previous = character;
    }
    Err("unterminated filter".into())
}

/// `<left><operator><right>`, none of them empty; operator characters cannot stand in the left part.
pub(super) fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |character: char| matches!(character, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let length = text[start..]
        .find(|next| !is_operator(next))
        .unwrap_or(text.len() - start);
    // The right part needs a character, if need be the operator's last one.
    let length = if start + length == text.len() {
        length - 1
    } else {
        length
    };
    if length == 0 {
        return None;
    }
    Some((
        &text[..start],
        &text[start..start + length],
        &text[start + length..],
    ))
}

/// A single index, or up to three of them with colons.
pub(super) fn slice(text: &str) -> Result<Slice, String> {
    let parts: Vec<&str> = text.split(':').collect();
    let is_index = |part: &&str| {
        part.strip_prefix('-')
            .unwrap_or(part)
            .chars()
            .all(|digit| digit.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(is_index) {
        return Err(format!("invalid array index {text}"));
    }
    let index = |part: &str| {
        part.parse::<i64>()
            .map_err(|_| format!("array index {part} is not a number"))
    };
    let optional = |part: Option<&&str>| {
        part.filter(|part| !part.is_empty())
            .map(|part| index(part))
            .transpose()
    };
    let start = optional(parts.first())?;
    let end = match parts.get(1) {
        // A single index is the slice of one element; from the end it is derived when it is evaluated.
        None => Bound::After(start.unwrap_or(0).wrapping_add(1)),
        Some(part) => optional(Some(part))?.map_or(Bound::Length, Bound::Given),
    };
    Ok(Slice {
        start: start.unwrap_or(0),
        end,
        step: optional(parts.get(2))?,
    })
}
