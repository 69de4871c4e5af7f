//! Digests of JSON values.

use serde_json::Value;
use sha2::{Digest, Sha256};
use template_language::digest::{by_key, sha256_text};

/// `sha256:<hex>` of the value as compact JSON with sorted keys.
///
/// Keys are sorted here, because whether `serde_json` keeps insertion order depends on a feature any crate of the
/// workspace may switch on.
pub(crate) fn digest(value: &Value) -> String {
    let mut hasher = Sha256::new();
    feed(&mut hasher, value);
    sha256_text(&hasher.finalize())
}

/// The first 128 bits of such a digest, in hexadecimal digits, as provenances have them.
pub(crate) fn short(digest: &str) -> String {
    const DIGITS: usize = 32;
    let hex = digest.strip_prefix("sha256:").unwrap_or(digest);
    hex.chars().take(DIGITS).collect()
}

/// `sha256:<hex>` of bytes.
pub(crate) fn digest_bytes(bytes: &[u8]) -> String {
    sha256_text(&Sha256::digest(bytes))
}

/// `sha256:<hex>` of the HMAC of bytes under a key.
///
/// A plain digest of a short secret can be guessed; a keyed one only by who knows the key.
pub(crate) fn keyed_digest(key: &[u8], bytes: &[u8]) -> String {
    sha256_text(&hmac(key, &[bytes]))
}

/// The HMAC (RFC 2104) with SHA-256 of all parts, one after the other.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = parts
        .iter()
        .fold(
            Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)),
            Sha256::chain_update,
        )
        .finalize();
    Sha256::new()
        .chain_update(block.map(|byte| byte ^ 0x5c))
        .chain_update(inner)
        .finalize()
        .into()
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hasher.update(b"null"),
        Value::Bool(bool) => hasher.update(if *bool { "true" } else { "false" }),
        Value::Number(number) => hasher.update(number.to_string()),
        Value::String(string) => feed_string(hasher, string),
        Value::Array(items) => {
            hasher.update(b"[");
            for (index, item) in items.iter().enumerate() {
                hasher.update(if index == 0 { "" } else { "," });
                feed(hasher, item);
            }
            hasher.update(b"]");
        }
        Value::Object(entries) => {
            hasher.update(b"{");
            for (index, (key, item)) in by_key(entries).into_iter().enumerate() {
                hasher.update(if index == 0 { "" } else { "," });
                feed_string(hasher, key);
                hasher.update(b":");
                feed(hasher, item);
            }
            hasher.update(b"}");
        }
    }
}

fn feed_string(hasher: &mut Sha256, string: &str) {
    // A string always serialises; the fallback keeps the function total.
    hasher.update(serde_json::to_vec(string).unwrap_or_default());
}

#[cfg(test)]
mod tests;
