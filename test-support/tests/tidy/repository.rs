//! Reading the repository: files, tables in documents, and what these refer to.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// A file by its path from the root.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Path from the root and text of every file with one of these endings; all files when there are none. What Git does not
/// know is nobody else's: notes, settings of an editor, what is built.
pub(crate) fn files(endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in tracked() {
        if !endings.is_empty() && !endings.iter().any(|ending| path.ends_with(ending)) {
            continue;
        }
        // A file may be removed and still be known.
        if let Ok(bytes) = fs::read(root().join(&path)) {
            found.push((path, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    assert!(!found.is_empty(), "no file ends with {endings:?}");
    found
}

fn tracked() -> Vec<String> {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(listed.status.success(), "{said}");
    let paths = String::from_utf8(listed.stdout).unwrap();
    let paths = paths.split_terminator('\0');
    paths.map(str::to_owned).collect()
}

/// The rows of the first table below a heading, cell by cell; without the head of the table.
pub(crate) fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let below = document.lines().skip_while(|line| *line != heading).skip(1);
    let rows: Vec<Vec<String>> = below
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        })
        .collect();
    assert!(!rows.is_empty(), "no table below {heading:?}");
    rows
}

/// What stands between backticks.
pub(crate) fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// What a cell refers to and is not there: paths, and test functions in the file named before them.
///
/// Whatever has a slash or a dot is a path from the root; anything else is a test.
pub(crate) fn dangling(cell: &str) -> Vec<String> {
    let mut missing = Vec::new();
    let mut file = None;
    for reference in quoted(cell) {
        if reference.contains(['/', '.']) {
            file = Some(reference);
            if !root().join(reference).exists() {
                missing.push(format!("{reference} does not exist"));
            }
        } else if !file.is_some_and(|file| has_test(file, reference)) {
            missing.push(format!(
                "{} has no test {reference}",
                file.unwrap_or("no file")
            ));
        }
    }
    missing
}

/// The first path of a cell.
pub(crate) fn names_a_path(cell: &str) -> bool {
    quoted(cell).any(|reference| reference.contains(['/', '.']))
}

fn has_test(file: &str, name: &str) -> bool {
    let Ok(text) = fs::read_to_string(root().join(file)) else {
        return false;
    };
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let declares = |line: &&str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    };
    let Some(at) = lines.iter().position(declares) else {
        return false;
    };
    let above = lines[..at].iter().rev();
    above
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .any(|line| line.starts_with("#[test") || line.starts_with("#[tokio::test"))
}

#[test]
fn references_to_nothing_are_noticed() {
    let here = "test-support/tests/tidy/repository.rs";
    let fine = format!("`{here}`: `references_to_nothing_are_noticed`, `Cargo.toml`");
    assert_eq!(dangling(&fine), Vec::<String>::new());
    let not_a_test = format!("`{here}`: `has_test`; `no/such/file.rs`; `anything`");
    assert_eq!(
        dangling(&not_a_test),
        [
            format!("{here} has no test has_test"),
            "no/such/file.rs does not exist".to_owned(),
            "no/such/file.rs has no test anything".to_owned(),
        ]
    );
    assert_eq!(dangling("`alone`"), ["no file has no test alone"]);
}

#[test]
fn tables_are_read_cell_by_cell() {
    let document =
        "## One\n\ntext\n\n| a | b |\n|---|---|\n| 1 | `x/y` |\n\n## Two\n\n| c |\n|---|\n| 2 |\n";
    assert_eq!(table(document, "## One"), [["1", "`x/y`"]]);
    assert_eq!(table(document, "## Two"), [["2"]]);
}
