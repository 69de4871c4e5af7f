//! The commands that build and test.

use crate::repository::files;

const COMPILING: [&str; 5] = ["build", "check", "clippy", "run", "test"];

/// Whether a line of a script compiles with the features of some crates only. A release is meant to have no others.
fn is_partial(line: &str) -> bool {
    let compiles = COMPILING
        .iter()
        .any(|command| line.contains(&format!("cargo {command} ")));
    let whole = ["--workspace", "--release", "--version"];
    compiles && !line.trim_start().starts_with('#') && !whole.iter().any(|flag| line.contains(flag))
}

/// Cargo unites the features of the crates that one command is for, so tokio, kube and all above them were compiled three
/// times on the way through lint, verify and test.
#[test]
fn every_command_that_compiles_is_for_the_whole_workspace() {
    let scripts = files(&["Makefile", ".sh", ".ci/run"]);
    let lines = scripts
        .iter()
        .flat_map(|(path, text)| text.lines().map(move |line| format!("{path}: {line}")));
    let partial: Vec<String> = lines.filter(|line| is_partial(line)).collect();
    assert_eq!(partial, Vec::<String>::new());
}

#[test]
fn a_command_for_some_crates_is_noticed() {
    assert!(is_partial("	cargo test -q -p api-types --test crds"));
    assert!(is_partial("X=1 cargo build --bins"));
    assert!(!is_partial("cargo build -q --workspace --example x"));
    assert!(!is_partial("# cargo build -p x"));
    assert!(!is_partial("cargo run --release -p bench"));
}
