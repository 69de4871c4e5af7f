//! Digests as text.

use std::fmt::Write as _;

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
