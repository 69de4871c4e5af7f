//! The tables of condition types, reasons, labels and annotations in `docs/behaviour` are those of the code.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test says what went wrong by panicking, and is told by a variable to write what it compares with"
)]

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use api_types::{ConditionType, Reason};
use test_support::{hold_generated, table_row};

fn hold(page: &str, name: &str, head: [&str; 2], rows: impl Iterator<Item = (String, String)>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/behaviour");
    let page = folder.join(page);
    let rows =
        rows.map(|(text, meaning)| table_row([format!("`{text}`").as_str(), meaning.as_str()]));
    let head = [table_row(head), table_row(["---", "---"])];
    let lines: Vec<String> = head.into_iter().chain(rows).collect();
    let rewrite = env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1");
    hold_generated(&page, name, &lines, rewrite);
}

/// The lines of a comment as a document has them, where a link to another item is none.
fn told(comment: &[&str]) -> String {
    let lines = comment.iter().filter(|line| !line.is_empty());
    let text = lines.copied().collect::<Vec<_>>().join(" ");
    text.replace("[`", "`").replace("`]", "`")
}

/// What the source says of each variant of an enum.
fn comments(source: &str, name: &str) -> BTreeMap<String, String> {
    let (_, body) = source.split_once(&format!("pub enum {name} {{\n")).unwrap();
    let (body, _) = body.split_once("\n}\n").unwrap();
    let mut comments = BTreeMap::new();
    let mut comment: Vec<&str> = Vec::new();
    for line in body.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
        } else if let Some(variant) = line.strip_suffix(',') {
            let variant = variant.split(['(', ' ']).next().unwrap();
            comments.insert(variant.to_owned(), told(&comment));
            comment.clear();
        }
    }
    comments
}

fn comment_of(comments: &BTreeMap<String, String>, variant: &str) -> String {
    let comment = comments.get(variant);
    let comment = comment.unwrap_or_else(|| panic!("{variant} has no comment"));
    comment.replace("ConditionType::", "")
}

#[test]
fn every_condition_type_and_every_reason_is_in_the_reference() {
    let types = comments(include_str!("../src/condition.rs"), "ConditionType");
    let rows = ConditionType::ALL.into_iter().map(|type_| {
        let comment = comment_of(&types, &format!("{type_:?}"));
        (type_.as_str().to_owned(), comment)
    });
    hold("reasons.md", "types", ["type", "says"], rows);

    let reasons = comments(include_str!("../src/condition/reason.rs"), "Reason");
    let rows = Reason::NAMED.iter().map(|reason| {
        let comment = comment_of(&reasons, &format!("{reason:?}"));
        (reason.as_str().into_owned(), comment)
    });
    hold("reasons.md", "reasons", ["reason", "because"], rows);
}

/// Keys and comments of the constants of a module.
fn keys(source: &str) -> Vec<(String, String)> {
    let mut keys = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    for line in source.lines() {
        if let Some(text) = line.strip_prefix("///") {
            comment.push(text.trim());
        } else if let Some((_, key)) = line.split_once(": &str = \"") {
            let key = key.split('"').next().unwrap();
            keys.push((key.to_owned(), told(&comment)));
            comment.clear();
        }
    }
    keys
}

#[test]
fn every_label_and_annotation_is_in_the_reference() {
    let keys = keys(include_str!("../src/labels.rs"));
    assert!(keys.len() > 15, "{keys:?}");
    let head = ["label or annotation", "says"];
    hold("stamping.md", "labels", head, keys.into_iter());
}
