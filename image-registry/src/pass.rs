//! What is remembered for one look at an object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use conventions::image::Digest;
use parking_lot::Mutex;

use crate::contents::ContentKey;
use crate::error::Cause;
use crate::resolved::StoredBom;
use crate::who::Fingerprint;

/// The most values in the configurations of all images of an object.
const VALUES: usize = 100_000;
/// The most bytes of the configurations of all images of an object.
const CONFIG_BYTES: usize = 16 << 20;
/// The most bytes of the names of all their bills of materials.
const NAMES_BYTES: usize = 4 << 20;
/// What a bill takes in memory beside its name.
const BOM: usize = 100;
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
    values: Count,
    configs: Count,
    names: Count,
}

/// Of something that all images have together.
#[derive(Debug, Default)]
struct Count(Mutex<usize>);

impl Count {
    /// Whether there may be so many more; if so, they are counted.
    fn add(&self, number: usize, most: usize) -> bool {
        let mut count = self.0.lock();
        let all = count.saturating_add(number);
        let fits = all <= most;
        if fits {
            *count = all;
        }
        fits
    }
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

    /// Counts a configuration that is given.
    ///
    /// # Errors
    ///
    /// If all together have too many values, or too many bytes. Who wrote the template takes fewer
    /// images.
    pub(crate) fn config(&self, what: &str, values: usize, bytes: usize) -> Result<(), Cause> {
        let too_many = |most: String| Cause::Image {
            what: what.to_owned(),
            fault: format!("has, with the configurations of the other images, more than {most}"),
        };
        if !self.values.add(values, VALUES) {
            return Err(too_many(format!("{VALUES} values")));
        }
        if !self.configs.add(bytes, CONFIG_BYTES) {
            return Err(too_many(format!("{} MiB", CONFIG_BYTES >> 20)));
        }
        Ok(())
    }

    /// Counts bills of materials that are given, by their names.
    ///
    /// # Errors
    ///
    /// If all together take too much memory. Who wrote the template takes fewer images.
    pub(crate) fn boms(&self, boms: &[StoredBom]) -> Result<(), Cause> {
        let bytes = boms.iter().map(|bom| bom.name.len() + BOM).sum();
        if self.names.add(bytes, NAMES_BYTES) {
            return Ok(());
        }
        Err(Cause::Image {
            what: "bills of materials of all images together".to_owned(),
            fault: format!("have names of more than {} MiB", NAMES_BYTES >> 20),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn configurations_are_bounded_by_their_values_and_their_bytes() {
        let held = Held::default();
        for _ in 0..16 {
            held.config("it", 6000, 1 << 20).unwrap();
        }
        let told = held.config("it", 1, 1).unwrap_err().to_string();
        assert!(told.ends_with("more than 16 MiB"), "{told}");
        let told = held.config("it", 4001, 0).unwrap_err().to_string();
        assert!(told.ends_with("more than 100000 values"), "{told}");
    }

    #[test]
    fn bills_are_bounded_by_their_names() {
        let file = Arc::new(File::open("/dev/null").unwrap());
        let bom = |name: String| StoredBom {
            name,
            file: file.clone(),
            offset: 0,
            length: 0,
        };
        let (held, many) = (Held::default(), vec![bom("x".repeat(156)); 4096]);
        for _ in 0..3 {
            held.boms(&many).unwrap();
        }
        let told = held.boms(&vec![bom(String::new()); 1000]).map(drop);
        assert_eq!(told, Ok(()), "there is room for some");
        let told = held.boms(&many).unwrap_err().to_string();
        assert!(
            told.starts_with("bills of materials of all images"),
            "{told}"
        );
    }
}
