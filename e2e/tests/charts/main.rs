//! The charts as files: their values, the schema and the table that are made from these, what helm makes of them, and the
//! manifests in deploy that are rendered from them. `UPDATE_GOLDEN=1` writes what is made.
//!
//! What an API server says of them is in `tests/e2e/charts.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by panicking, and is told by a variable to write what it compares with"
)]

mod manifests;
mod queries;
mod refusals;
mod renders;
mod values;

use std::fs;
use std::path::Path;

fn rewrites() -> bool {
    std::env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1")
}

/// Writes what a file is to hold where that is asked for, and compares it.
fn hold(file: &Path, wanted: &str) {
    if rewrites() {
        fs::write(file, wanted).unwrap();
    }
    let found = fs::read_to_string(file).unwrap_or_default();
    let shown = file.display();
    assert_eq!(found, wanted, "{shown}: `make generate` writes it");
}
