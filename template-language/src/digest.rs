//! Digests as text.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The entries of a map by the bytes of their keys: a digest does not depend on the order in which they were read.
///
/// ```
/// let map = serde_json::json!({"b": 1, "a": 2});
/// let entries = template_language::digest::by_key(map.as_object().unwrap());
/// assert_eq!(entries[0].0, "a");
/// ```
pub fn by_key(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<(&String, &Value)> = fields.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Bytes as lower-case hexadecimal digits.
///
/// ```
/// assert_eq!(template_language::digest::hex(&[0x0f, 0xa0]), "0fa0");
/// ```
pub fn hex(bytes: &[u8]) -> String {
    let room = String::with_capacity(2 * bytes.len());
    bytes.iter().fold(room, |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// `sha256:` and the digits of a SHA-256, as digests stand in statuses and annotations.
///
/// ```
/// assert_eq!(template_language::digest::sha256_text(&[0x0f; 2]), "sha256:0f0f");
/// ```
pub fn sha256_text(hash: &[u8]) -> String {
    format!("sha256:{}", hex(hash))
}
