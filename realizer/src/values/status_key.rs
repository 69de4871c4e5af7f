//! The key of the installation, under which something of secret values may be shown.

use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use crate::values::canonical;

/// A random key that only the controllers know, or none; passed in as the clock is.
///
/// A plain digest of a secret value can be guessed offline: whoever reads it tries values. One under this key confirms
/// nothing to who does not know the key. Without a key no digest of a secret value is shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct StatusKey(Option<Arc<[u8]>>);

/// Bytes of the value by which a sealed text is told from a forged one.
const TAG: usize = 16;

impl StatusKey {
    /// No key is known.
    pub const NONE: Self = Self(None);

    /// This key; an empty one is none.
    ///
    /// ```
    /// use realizer::StatusKey;
    ///
    /// assert!(StatusKey::new(b"").is_none());
    /// assert!(!StatusKey::new(b"32 random bytes, of a Secret").is_none());
    /// ```
    pub fn new(bytes: &[u8]) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }

    /// Whether there is no key.
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Digest of a secret text for a purpose; none without a key.
    pub(crate) fn digest(&self, purpose: &str, text: &str) -> Option<String> {
        let message = [purpose.as_bytes(), b"\0", text.as_bytes()].concat();
        Some(canonical::keyed_digest(self.0.as_deref()?, &message))
    }

    /// A text that only the controllers can read, the same for the same text; none without a key.
    ///
    /// This is the SIV construction (RFC 5297) with HMAC-SHA256 for both its parts: the tag of the text is the start of the
    /// key stream. The engine has no source of randomness, and needs none for it.
    pub(crate) fn seal(&self, text: &str) -> Option<String> {
        let tag = self.tag(text.as_bytes())?;
        let mut sealed = tag.to_vec();
        sealed.extend(self.crypted(&tag, text.as_bytes())?);
        Some(STANDARD_NO_PAD.encode(sealed))
    }

    /// What was sealed; none if it was sealed with another key, or by somebody else.
    pub(crate) fn open(&self, sealed: &str) -> Option<String> {
        let bytes = STANDARD_NO_PAD.decode(sealed).ok()?;
        let (tag, hidden) = bytes.split_at_checked(TAG)?;
        let text = self.crypted(tag, hidden)?;
        (self.tag(&text)? == tag).then_some(())?;
        String::from_utf8(text).ok()
    }

    fn tag(&self, text: &[u8]) -> Option<[u8; TAG]> {
        let mac = canonical::hmac(self.0.as_deref()?, &[b"tag", text]);
        mac.first_chunk().copied()
    }

    fn crypted(&self, tag: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let key = self.0.as_deref()?;
        let blocks = text.chunks(32).zip(0_u64..);
        let crypted = blocks.flat_map(|(block, number)| {
            let stream = canonical::hmac(key, &[b"stream", tag, &number.to_be_bytes()]);
            let pairs = block.iter().zip(stream);
            pairs.map(|(byte, key)| byte ^ key).collect::<Vec<u8>>()
        });
        Some(crypted.collect())
    }
}

/// Without the key: whatever prints this must not tell it.
impl fmt::Debug for StatusKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_none() { "no key" } else { "a key" })
    }
}

#[cfg(test)]
mod tests;
