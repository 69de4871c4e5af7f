//! The manifests that users apply, as they are in the repository.

use std::fs;

use anyhow::Context;
use serde_json::Value;
use test_support::yaml_files;

use crate::binaries::workspace;

/// Every document of a manifest, or of all manifests in a folder in order of their names. The path is relative to the
/// repository.
///
/// # Errors
///
/// When a file cannot be read or is not YAML.
pub fn documents(path: &str) -> anyhow::Result<Vec<Value>> {
    let path = workspace().join(path);
    let mut files = vec![path.clone()];
    if path.is_dir() {
        files = yaml_files(&path)?;
    }
    let mut documents = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let parsed = test_support::documents(&text);
        documents.extend(parsed.with_context(|| file.display().to_string())?);
    }
    Ok(documents)
}
