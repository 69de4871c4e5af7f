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
/// The API server quotes the value of an invalid field, and ytt the line that failed.
pub(crate) fn scrub<'v>(message: &str, secrets: impl IntoIterator<Item = &'v Value>) -> String {
    let mut texts = Vec::new();
    for secret in secrets {
        collect_texts(secret, &mut texts);
    }
    // The longest first: a text may be part of another.
    texts.sort_unstable_by_key(|text| std::cmp::Reverse(text.len()));
    texts.into_iter().fold(message.to_owned(), |message, text| {
        message.replace(text, REDACTED)
    })
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
