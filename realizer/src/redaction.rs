//! Keeping Secret values out of everything that is shown.

use serde_json::Value;

/// What is shown instead.
pub(crate) const REDACTED: &str = "<redacted>";

/// Shorter texts are not searched for: they would tear holes into unrelated words, and are no secrets.
const SHORTEST: usize = 4;

/// Whether an object is a core/v1 Secret, whose values must not be shown.
pub(crate) fn is_secret(object: &Value) -> bool {
    object.get("apiVersion").and_then(Value::as_str) == Some("v1")
        && object.get("kind").and_then(Value::as_str) == Some("Secret")
}

/// A message of someone else (ytt, the API server) without the texts that occur in secret values.
///
/// The API server quotes the value of an invalid field, and ytt the line that failed. What a Secret's base64 stands for
/// is taken out as well: ytt can decode it.
pub(crate) fn scrub<'v>(message: &str, secrets: impl IntoIterator<Item = &'v Value>) -> String {
    let mut texts = Vec::new();
    for secret in secrets {
        collect_texts(secret, &mut texts);
    }
    let decoded: Vec<String> = texts.iter().filter_map(|text| decoded(text)).collect();
    texts.extend(
        decoded
            .iter()
            .map(String::as_str)
            .filter(|text| text.len() >= SHORTEST),
    );
    // The longest first: a text may be part of another.
    texts.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    texts.into_iter().fold(message.to_owned(), |message, text| {
        message.replace(text, REDACTED)
    })
}

/// The text that padded standard base64 stands for, if it is one.
fn decoded(base64: &str) -> Option<String> {
    if !base64.len().is_multiple_of(4) {
        return None;
    }
    let digits = base64.trim_end_matches('=');
    let mut bytes = Vec::with_capacity(digits.len());
    let (mut bits, mut count) = (0_u32, 0);
    for digit in digits.bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = ((bits << 6) | u32::from(value)) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xff).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}

fn collect_texts<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) if text.len() >= SHORTEST => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect_texts(item, texts)),
        Value::Object(entries) => entries.values().for_each(|item| collect_texts(item, texts)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests;
