//! The manifests that users apply, as they are in the repository.

use std::fs;

use anyhow::Context;
use serde_json::Value;

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
        let entries = fs::read_dir(&path).with_context(|| path.display().to_string())?;
        files = entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|file| {
            file.extension()
                .is_some_and(|extension| extension == "yaml")
        });
        files.sort();
    }
    let mut documents = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let parsed: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| file.display().to_string())?;
        documents.extend(parsed.into_iter().filter(|document| !document.is_null()));
    }
    Ok(documents)
}

/// The documents as one text again. JSON is YAML.
pub fn text<'a>(documents: impl IntoIterator<Item = &'a Value>) -> String {
    documents
        .into_iter()
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join("\n---\n")
}
