//! Bills of materials of images.

/// A bill of materials that is a part of a file. What a file is, those say who read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBom<File> {
    /// Where it comes from, and its name there, as the webhook is told it.
    pub name: String,
    /// Where it lies. It may be removed from its folder meanwhile, and must not be written.
    pub file: File,
    /// Its first byte in the file.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
}
