//! As whom a registry is asked.

use std::fmt;

use conventions::credentials::Credential;
use sha2::{Digest, Sha256};

/// Tells credentials apart without being one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; 32]);

/// As whom.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// Somebody.
    Known(Credential),
    /// Nobody in particular.
    Nobody,
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint(<redacted>)")
    }
}

impl Who {
    /// The credential, or nobody if it is empty: a Secret may hold an entry without anything.
    pub(crate) fn of(credential: &Credential) -> Self {
        let empty = credential.username.is_empty()
            && credential.password.is_empty()
            && credential
                .identity_token
                .as_deref()
                .unwrap_or_default()
                .is_empty();
        if empty {
            Self::Nobody
        } else {
            Self::Known(credential.clone())
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        if let Self::Known(credential) = self {
            let token = credential.identity_token.as_deref();
            for text in [
                &credential.username,
                &credential.password,
                token.unwrap_or_default(),
            ] {
                hash.update((text.len() as u64).to_be_bytes());
                hash.update(text.as_bytes());
            }
        }
        Fingerprint(hash.finalize().into())
    }
}
