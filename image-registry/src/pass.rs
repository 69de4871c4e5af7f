//! What is remembered for one look at an object.

use std::collections::HashMap;

use conventions::image::Digest;
use parking_lot::Mutex;

use crate::who::Fingerprint;

/// Remembers within one look at an object what a tag meant, so that all that is told about an image
/// is about the same one.
///
/// ```
/// let pass = image_registry::Pass::default();
/// // For each convention: `images.resolve("ubuntu", &keyring, &pass).await`.
/// # drop(pass);
/// ```
#[derive(Debug, Default)]
pub struct Pass {
    digests: Mutex<HashMap<(String, Vec<Fingerprint>), Digest>>,
}

impl Pass {
    pub(crate) fn digest(&self, name: &str, who: &[Fingerprint]) -> Option<Digest> {
        let key = (name.to_owned(), who.to_vec());
        self.digests.lock().get(&key).cloned()
    }

    pub(crate) fn remember(&self, name: &str, who: &[Fingerprint], digest: &Digest) {
        let key = (name.to_owned(), who.to_vec());
        self.digests.lock().insert(key, digest.clone());
    }
}
