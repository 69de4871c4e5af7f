//! How a secret text may stand in a message or in another value: what it means, and how that is written down.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use template_language::go_format;

/// Shorter texts are not searched for: they would tear holes into unrelated words.
pub(super) const SHORTEST: usize = 4;

/// Shorter lines of a text are not searched for on their own.
const SHORTEST_LINE: usize = 8;

/// Of longer texts only the common spellings are searched for: their lines are searched for as well.
const LONG: usize = 4096;

/// How often base64 and JSON are unpacked from one another: `.dockerconfigjson` is base64 of JSON with base64 in it.
const DEPTH: u8 = 3;

/// The text itself, and what is packed in it: what base64 stands for, the texts of a JSON document, each without space at
/// its ends.
pub(super) fn meanings(text: &str) -> BTreeSet<String> {
    let mut meanings = BTreeSet::new();
    unpack(text, DEPTH, &mut meanings);
    meanings
}

fn unpack(text: &str, depth: u8, meanings: &mut BTreeSet<String>) {
    if text.is_empty() || !meanings.insert(text.to_owned()) {
        return;
    }
    let trimmed = text.trim();
    if !trimmed.is_empty() {
        meanings.insert(trimmed.to_owned());
    }
    if depth == 0 {
        return;
    }
    if let Some(decoded) = decoded(trimmed) {
        unpack(&decoded, depth - 1, meanings);
    }
    if trimmed.starts_with(['{', '['])
        && let Ok(document) = serde_json::from_str::<Value>(trimmed)
    {
        for_each_text(&document, &mut |text| unpack(text, depth - 1, meanings));
    }
}

/// The text that padded standard base64 stands for, if it is one.
fn decoded(base64: &str) -> Option<String> {
    if base64.is_empty() || !base64.len().is_multiple_of(4) {
        return None;
    }
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

/// Calls `seen` with every text of a value; keys of objects are none.
pub(super) fn for_each_text<'v>(value: &'v Value, seen: &mut dyn FnMut(&'v str)) {
    match value {
        Value::String(text) => seen(text),
        Value::Array(items) => items.iter().for_each(|item| for_each_text(item, seen)),
        Value::Object(fields) => fields.values().for_each(|item| for_each_text(item, seen)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// All that is searched for because of one meaning.
pub(super) fn spellings(meaning: &str, found: &mut BTreeSet<String>) {
    if meaning.len() < SHORTEST {
        return;
    }
    written(meaning, found);
    encoded(meaning, found);
    if meaning.contains(['\n', '\r']) {
        let lines = meaning.split(['\n', '\r']).map(str::trim);
        for line in lines.filter(|line| line.len() >= SHORTEST_LINE) {
            written(line, found);
        }
    }
}

/// As it is; quoted as Go, JSON and Rust do; and what was quoted quoted again, as where an API server quotes JSON.
fn written(text: &str, found: &mut BTreeSet<String>) {
    found.insert(text.to_owned());
    if !text.chars().any(is_escaped_by_anyone) {
        return;
    }
    let inner = [go_quoted, json, json_for_html].map(|quote| quote(text));
    if text.len() < LONG {
        let twice = inner.iter().flat_map(|once| [go_quoted(once), json(once)]);
        found.extend(twice);
    }
    found.extend(inner);
    found.extend([go_quoted_ascii, json_for_html_of_old, rust_quoted].map(|quote| quote(text)));
}

fn is_escaped_by_anyone(char: char) -> bool {
    !matches!(char, ' '..='~') || matches!(char, '"' | '\'' | '\\' | '<' | '>' | '&')
}

/// Base64 of the text, and of the text as a part of something longer: what of it does not depend on its neighbours.
fn encoded(text: &str, found: &mut BTreeSet<String>) {
    found.insert(STANDARD.encode(text));
    if text.len() >= LONG || text.len() < SHORTEST_LINE {
        return;
    }
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(text.as_bytes());
        let whole = STANDARD.encode(&bytes);
        let inner = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        found.extend(whole.get(inner).map(str::to_owned));
    }
}

/// `%q` of Go, without the quotes.
fn go_quoted(text: &str) -> String {
    inner(&go_format::quoted(text))
}

/// `%+q` of Go, without the quotes.
fn go_quoted_ascii(text: &str) -> String {
    inner(&go_format::quoted_ascii(text))
}

/// A JSON string, without the quotes.
fn json(text: &str) -> String {
    // A string always serialises; the fallback keeps the function total.
    inner(&serde_json::to_string(text).unwrap_or_default())
}

/// As Go's encoder writes it: fit to stand in HTML.
fn json_for_html(text: &str) -> String {
    inner(&go_format::json(&Value::from(text)))
}

/// A quoted text without its quotes.
fn inner(quoted: &str) -> String {
    let inner = quoted.get(1..quoted.len().saturating_sub(1));
    inner.unwrap_or_default().to_owned()
}

/// As Go's encoder wrote it before it knew `\b` and `\f`.
fn json_for_html_of_old(text: &str) -> String {
    let parts = text.split_inclusive(['\u{8}', '\u{c}']);
    parts.fold(String::new(), |mut escaped, part| {
        let plain = part.trim_end_matches(['\u{8}', '\u{c}']);
        escaped.push_str(&json_for_html(plain));
        for char in part[plain.len()..].chars() {
            // Writing to a String cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(char));
        }
        escaped
    })
}

/// `{:?}` of Rust, without the quotes: errors of our own libraries quote so.
fn rust_quoted(text: &str) -> String {
    inner(&format!("{text:?}"))
}

#[cfg(test)]
mod tests;
