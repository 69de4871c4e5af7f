//! Digest and preview of an output: of its YAML, as Go's `yaml.v3` writes it.
//!
//! Users compare digests that the Go controller made, so every choice of that writer is repeated: which
//! strings are quoted and how, the order of keys, indentation, and that all numbers are doubles.
//!
//! | rule | example |
//! |---|---|
//! | block style, indented by four; a map in a list by two | `a:\n    b: 1\n` |
//! | a string that would read as something else is quoted | `"5"`, `"true"`, `"yes"`, `"2020-01-01"` |
//! | a string of several lines is literal | `\|-` |
//! | numbers in the fewest digits, with an exponent from a million on | `1e+06` |
//! | keys by letters, numbers in them by value | `a2` before `a10` |
//! | empty lists and maps | `[]`, `{}` |
//!
//! A differential test compares all of this with the Go library on many thousand generated documents.
//!
//! ```
//! use serde_json::json;
//! let yaml = template_language::yaml_digest::to_yaml(&json!({"b": ["x", "5"], "a": {"max": 1_000_000}}));
//! assert_eq!(yaml, "a:\n    max: 1e+06\nb:\n    - x\n    - \"5\"\n");
//! ```

mod emit;
mod key_order;
mod plain;
mod scalar;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::digest::sha256_text;

/// Longest preview, in bytes.
const PREVIEW: usize = 1024;

/// The YAML of a value, with a line break at its end.
///
/// ```
/// use serde_json::json;
/// use template_language::yaml_digest::to_yaml;
/// assert_eq!(to_yaml(&json!("main")), "main\n");
/// assert_eq!(to_yaml(&json!("a\nb\n")), "|\n    a\n    b\n");
/// assert_eq!(to_yaml(&json!({})), "{}\n");
/// ```
pub fn to_yaml(value: &Value) -> String {
    emit::document(value)
}

/// `sha256:` and the hexadecimal digest of the YAML.
///
/// It says whether two outputs are the same, and nothing of where they come from. It is no secret: who
/// can guess the value can test the guess, so it is not for values of Secrets.
///
/// ```
/// let digest = template_language::yaml_digest::digest(&serde_json::json!("5"));
/// assert_eq!(digest, "sha256:11fd182657d58787e0e5b61c5da79195f8715fef7f957b9cdba2d8a581b2ca33");
/// ```
pub fn digest(value: &Value) -> String {
    sha256_text(&Sha256::digest(to_yaml(value).as_bytes()))
}

/// The first 1024 bytes of the YAML, less what is left of a character that the cut splits: a status is
/// valid UTF-8.
///
/// ```
/// let preview = template_language::yaml_digest::preview(&"ä".repeat(1000).into());
/// assert_eq!(preview.len(), 1024);
/// ```
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
