//! What is known about an image.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use conventions::image::Digest;
use serde_json::Value;

/// What is known about an image.
#[derive(Clone, Debug)]
pub struct ResolvedImage {
    /// The reference with its digest; the tag is kept.
    pub reference: String,
    /// The digest in it.
    pub digest: Digest,
    /// The digest of the configuration.
    pub config_digest: Digest,
    /// The configuration, as it was stored.
    pub config: Value,
    /// Bills of materials, in the order in which they are stored.
    pub boms: Vec<StoredBom>,
}

/// A bill of materials on disk. It can be read as long as it is held, whatever becomes of the
/// cache.
#[derive(Clone, Debug)]
pub struct StoredBom {
    /// Where it comes from, and its name there.
    pub name: String,
    /// The file that has it.
    pub file: Arc<File>,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes.
    pub length: u64,
}

impl StoredBom {
    /// All of its bytes. They may be many: [`crate::Settings::sbom_file_bytes`].
    ///
    /// # Errors
    ///
    /// If the disk cannot be read.
    pub fn read(&self) -> std::io::Result<Vec<u8>> {
        let length = usize::try_from(self.length).map_err(std::io::Error::other)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, self.offset)?;
        Ok(bytes)
    }
}
