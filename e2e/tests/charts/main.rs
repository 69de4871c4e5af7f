//! The charts as files: their values, the schema and the table that are made from these, and what
//! helm makes of them. `UPDATE_GOLDEN=1` writes what is made.
//!
//! What an API server says of them is in `tests/e2e/charts.rs`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by panicking, and is told by a variable to write what it compares with"
)]

mod refusals;
mod renders;
mod values;

use std::path::PathBuf;

/// The charts that there are.
fn charts() -> Vec<PathBuf> {
    let folder = e2e::helm::chart("");
    let entries = std::fs::read_dir(folder).unwrap();
    let mut charts: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    charts.sort();
    assert!(!charts.is_empty());
    charts
}

fn rewrites() -> bool {
    std::env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1")
}
