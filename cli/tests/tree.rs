//! Golden tests: an owner and its blueprint in `golden/*.yaml`, the lines in `*.txt`. `UPDATE_GOLDEN=1` writes them.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test may fail, and has no command line of its own"
)]

use std::fs;
use std::path::{Path, PathBuf};

use cli::tree::{Colors, State, Tree, render};
use realizer::Family;
use serde_json::Value;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(golden())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    cases.sort();
    cases
}

fn tree(case: &Path) -> Tree {
    let objects: Value = serde_saphyr::from_str(&fs::read_to_string(case).unwrap()).unwrap();
    if objects["owner"]["kind"] == "Runnable" {
        return Tree::read_runnable(&objects["owner"]).unwrap();
    }
    let family = if objects["owner"]["kind"] == "Deliverable" {
        Family::Delivery
    } else {
        Family::SupplyChain
    };
    Tree::read(family, &objects["owner"], objects.get("blueprint")).unwrap()
}

fn named(case: &str) -> Tree {
    tree(&golden().join(case).with_extension("yaml"))
}

#[test]
fn every_tree_is_as_in_its_golden_file() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    assert!(cases().len() > 10, "the cases are gone");
    for case in cases() {
        let lines = render(&tree(&case), Colors::Off).join("\n") + "\n";
        let expected = case.with_extension("txt");
        if update {
            fs::write(&expected, &lines).unwrap();
        }
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(
            lines,
            expected,
            "{}: UPDATE_GOLDEN=1 writes it anew",
            case.display()
        );
    }
}

#[test]
fn no_secret_value_is_in_lines_or_json() {
    let tree = named("secret-values-are-never-shown");
    let shown = render(&tree, Colors::On).join("\n") + &serde_json::to_string(&tree).unwrap();
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("<redacted>"), "{shown}");
}

#[test]
fn colours_are_all_that_differs_on_a_terminal() {
    for case in cases() {
        let tree = tree(&case);
        let colored = render(&tree, Colors::On).join("\n");
        assert!(colored.contains("\u{1b}["), "{}", case.display());
        let mut plain = colored;
        for code in ["32", "31", "33", "2", "1", "0"] {
            plain = plain.replace(&format!("\u{1b}[{code}m"), "");
        }
        let trimmed = |text: &str| {
            text.lines()
                .map(|line| line.trim_end().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            trimmed(&plain),
            trimmed(&render(&tree, Colors::Off).join("\n")),
            "{}",
            case.display()
        );
    }
}

#[test]
fn scripts_get_the_root_cause_as_fields() {
    let tree = serde_json::to_value(named("root-cause-is-the-first-step-with-its-inputs")).unwrap();
    assert_eq!(tree["ready"], false);
    assert_eq!(tree["headline"]["state"], "failing");
    assert_eq!(tree["headline"]["step"], "source");
    assert_eq!(tree["headline"]["reason"], "ReadyCondition");
    assert_eq!(
        tree["steps"][3]["inputs"][1],
        serde_json::json!({"name": "settings", "slot": "config", "from": "config"})
    );
    assert_eq!(tree["steps"][1]["object"]["name"], "web-app");
}

#[test]
fn ready_means_ready_for_the_present_generation() {
    let stale = named("latest-change-not-looked-at");
    assert!(!stale.ready);
    assert_eq!(stale.headline.state, State::Waiting);
    assert!(named("everything-is-ready").ready);
}

#[test]
fn an_object_of_another_shape_is_an_error_and_no_panic() {
    for owner in [
        serde_json::json!({}),
        serde_json::json!({"metadata": {"name": 1}}),
        serde_json::json!([]),
    ] {
        assert!(
            Tree::read(Family::SupplyChain, &owner, None).is_err(),
            "{owner}"
        );
    }
}
