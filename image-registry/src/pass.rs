//! What is remembered for one look at an object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use conventions::image::Digest;
use parking_lot::Mutex;

use crate::contents::ContentKey;
use crate::error::Cause;
use crate::who::Fingerprint;

/// The most values in the configurations of all images of an object.
const VALUES: usize = 100_000;
/// The flag of [`crate::Settings::sbom_layer_bytes`], of which there may be two.
const FLAG: &str = " (twice --max-sbom-layer-size)";

/// Remembers within one look at an object what a tag meant, so that all that is told about an image
/// is about the same one. What all its images together may have is bounded.
///
/// ```
/// let pass = image_registry::Pass::default();
/// // For each convention: `images.resolve("ubuntu", &keyring, &pass).await`.
/// # drop(pass);
/// ```
#[derive(Debug, Default)]
pub struct Pass {
    digests: Mutex<HashMap<(String, Vec<Fingerprint>), Digest>>,
    pub(crate) held: Arc<Held>,
}

/// What is held for all images of an object until the look at it is over.
#[derive(Debug, Default)]
pub(crate) struct Held {
    files: Mutex<Files>,
    values: Mutex<usize>,
}

#[derive(Debug, Default)]
struct Files {
    /// Whoever has the same file again holds nothing more.
    counted: HashSet<ContentKey>,
    bytes: u64,
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

impl Held {
    /// Counts a file with bills of materials that is held open.
    ///
    /// # Errors
    ///
    /// If all together are too many bytes. Who wrote the template takes fewer images, or the
    /// operator raises the flag.
    pub(crate) fn file(&self, key: &ContentKey, bytes: u64, limit: u64) -> Result<(), Cause> {
        let mut files = self.files.lock();
        if files.counted.contains(key) {
            return Ok(());
        }
        let all = files.bytes.saturating_add(bytes);
        if all > limit {
            return Err(Cause::TooLarge {
                what: "bills of materials of all images together".to_owned(),
                size: Some(all),
                limit,
                flag: FLAG,
            });
        }
        files.bytes = all;
        files.counted.insert(key.clone());
        Ok(())
    }

    /// Counts the values of a configuration that is given.
    ///
    /// # Errors
    ///
    /// If all together are too many.
    pub(crate) fn values(&self, what: &str, number: usize) -> Result<(), Cause> {
        let mut values = self.values.lock();
        let all = values.saturating_add(number);
        if all > VALUES {
            return Err(Cause::Image {
                what: what.to_owned(),
                fault: format!(
                    "has, with the configurations of the other images, more than {VALUES} values"
                ),
            });
        }
        *values = all;
        Ok(())
    }
}
