//! Real exchanges, asked again.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::difference::difference;
use crate::answer::answer;
use crate::convention::Convention;

/// What a server records of an exchange.
#[derive(Deserialize)]
struct Exchange {
    path: String,
    request: Value,
    answer: Value,
}

/// What was asked again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// How many exchanges were asked again.
    pub exchanges: usize,
    /// By the file, what is answered otherwise now.
    pub changed: Vec<(String, String)>,
}

/// Asks a convention again what a server recorded from real requests at one path
/// (`Server::builder().record_to(…)`), and says what it answers otherwise now. What a template
/// holds stands in the files, so have a look before you commit them.
///
/// # Errors
///
/// The directory or a file cannot be read, or holds no exchange.
pub async fn replay(
    directory: impl AsRef<Path>,
    path: &str,
    convention: &impl Convention,
) -> io::Result<Replayed> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let file = entry?.path();
        if file.extension().is_some_and(|ending| ending == "json") {
            files.push(file);
        }
    }
    files.sort_unstable();
    let mut replayed = Replayed::default();
    for file in files {
        let exchange: Exchange = serde_json::from_slice(&fs::read(&file)?)?;
        if exchange.path != path {
            continue;
        }
        let request = exchange.request.to_string();
        let now = answer(convention, request.as_bytes()).await;
        let now: Value = serde_json::from_slice(&now.body).unwrap_or_default();
        let lines = difference(&exchange.answer, &now);
        if !lines.is_empty() {
            let name = file.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned();
            replayed.changed.push((name, lines));
        }
        replayed.exchanges += 1;
    }
    Ok(replayed)
}
