//! `make generate` writes every generated file.

use std::collections::BTreeSet;

use crate::repository::{files, read};

/// The words after the name of a variable of the Makefile.
fn variable(makefile: &str, name: &str) -> BTreeSet<String> {
    let line = makefile
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(" := "));
    let words = line.unwrap().split_whitespace();
    words
        .map(|word| word.trim_matches('\'').to_owned())
        .collect()
}

/// The incident: a filter by the names of tests left out those that write the engine's golden files, and nothing noticed.
#[test]
fn every_test_that_compares_with_golden_files_is_run_to_write_them() {
    let makefile = read("Makefile");
    let run = variable(&makefile, "GOLDEN_TESTS");
    let switch = ["UPDATE", "_GOLDEN\")"].concat();
    let mut targets = BTreeSet::new();
    for (path, text) in files(&[".rs"])
        .iter()
        .filter(|(_, text)| text.contains(&switch))
    {
        // A variable that is empty, or 0, must not write files in one crate and none in another.
        let on = format!("var(\"{switch}.is_ok_and(|update| update == \"1\")");
        assert!(text.contains(&on), "{path} does not ask for {on}");
        let (_, below) = path.split_once("/tests/").unwrap();
        targets.insert(below.split(['/', '.']).next().unwrap().to_owned());
    }
    assert!(targets.len() > 2, "{targets:?}");
    // This one compares with the CRDs, which are written by the example.
    assert!(targets.remove("crds") && makefile.contains("--example generate-crds"));
    for target in targets {
        assert!(run.contains(&target), "{target} is not among {run:?}");
    }
}
