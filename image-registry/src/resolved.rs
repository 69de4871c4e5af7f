//! What is known about an image.

use std::fs::File;
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
pub type StoredBom = conventions::StoredBom<Arc<File>>;
