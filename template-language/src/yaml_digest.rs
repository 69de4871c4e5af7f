//! Digest and preview of an output: of its YAML, as Go's `yaml.v3` writes it (spec 4.6).
//!
//! Users compare digests that the Go controller made, so every choice of that writer is repeated: which
//! strings are quoted and how, the order of keys, indentation, and that all numbers are doubles.

mod emit;
mod key_order;
mod plain;
mod scalar;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use std::fmt::Write as _;

/// Longest preview, in bytes.
const PREVIEW: usize = 1024;

/// The YAML of a value, with a line break at its end.
pub fn to_yaml(value: &Value) -> String {
    emit::document(value)
}

/// `sha256:` and the hexadecimal digest of the YAML.
///
/// ```
/// let digest = template_language::yaml_digest::digest(&serde_json::json!("5"));
/// assert_eq!(digest, "sha256:11fd182657d58787e0e5b61c5da79195f8715fef7f957b9cdba2d8a581b2ca33");
/// ```
pub fn digest(value: &Value) -> String {
    let hash = Sha256::digest(to_yaml(value).as_bytes());
    hash.iter().fold("sha256:".to_owned(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The first 1024 bytes of the YAML, less what is left of a character that the cut splits: a status is
/// valid UTF-8.
pub fn preview(value: &Value) -> String {
    let mut yaml = to_yaml(value);
    let mut end = yaml.len().min(PREVIEW);
    while !yaml.is_char_boundary(end) {
        end -= 1;
    }
    yaml.truncate(end);
    yaml
}

#[cfg(test)]
mod tests;
