//! The commands that build and test.

use crate::repository::{files, read};

const COMPILING: [&str; 5] = ["build", "check", "clippy", "run", "test"];
/// The lint that wants just that: one crate, with the features of no other.
const ALONE: &str = r#"cargo check --quiet --package "$crate""#;

/// Whether a line of a script compiles with the features of some crates only. A release is meant to have no others, nor is a
/// crate that is checked alone, nor what is compiled with other flags into a folder of its own.
fn is_partial(line: &str) -> bool {
    let compiles = COMPILING
        .iter()
        .any(|command| line.contains(&format!("cargo {command} ")));
    let whole = ["--workspace", "--release", "--version", "--target-dir"];
    let meant = line.contains(ALONE) || whole.iter().any(|flag| line.contains(flag));
    compiles && !line.trim_start().starts_with('#') && !meant
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
    assert!(!is_partial(ALONE));
    assert!(is_partial("cargo check --package api-types"));
}

/// What is published, deployed or used by others, by `ALONE=all make lint` and by the workspace.
#[test]
fn every_crate_but_those_for_tests_is_checked_alone() {
    let lint = read("hack/lint.sh");
    let list = |name: &str| {
        let start = format!("readonly {name}=\"");
        let list = lint.lines().find_map(|line| line.strip_prefix(&start));
        let list = list.unwrap_or_else(|| panic!("hack/lint.sh has no {name}"));
        list.trim_end_matches('"').split(' ')
    };
    let mut checked: Vec<&str> = list("BUILT_BY_OTHERS")
        .chain(list("BUILT_TOGETHER"))
        .collect();
    checked.sort_unstable();
    let manifests = files(&["Cargo.toml"]);
    let for_tests = ["e2e", "test-support"];
    let mut members: Vec<&str> = manifests
        .iter()
        .filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"))
        .filter(|member| !member.contains('/') && !for_tests.contains(member))
        .collect();
    members.sort_unstable();
    assert_eq!(checked, members);
}
