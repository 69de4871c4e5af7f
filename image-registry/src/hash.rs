//! Digests of what was read.

use conventions::image::Digest;
use sha2::{Digest as _, Sha256};

/// The digest of bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> Digest {
    digest_of_hash(Sha256::new_with_prefix(bytes))
}

/// The digest of all that went into a hash.
pub(crate) fn digest_of_hash(hash: Sha256) -> Digest {
    let text = format!("sha256:{}", hex(&hash.finalize()));
    text.parse().expect("it was just written as one")
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    let digits = bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    digits.collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_digest_of_nothing_is_the_known_one() {
        let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::digest_of(b"").as_str(), digest);
    }
}
