//! Fuzz targets: what holds for any text that an author may write and any data that it may meet.
//!
//! `cargo test -p template-language --test fuzz` tries each with random bytes for a second. A fuzzer that
//! is led by coverage goes on from there, as long as one likes:
//! `cargo bolero test -p template-language --test fuzz any_path_is_evaluated_without_a_panic`.

use std::time::Duration;

use bolero::check;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use template_language::digest::sha256_text;
use template_language::interpolate::{Compiled, Found};
use template_language::jsonpath::{Path, check_field, check_unwrapped};
use template_language::vocabulary::Vocabulary::{self, Names, Open};
use template_language::{go_format, numbers, tags, yaml_digest};

/// Of each target, when nothing leads it. Debug builds try some thousand inputs meanwhile.
const TIME: Duration = Duration::from_secs(1);

/// Pieces of which paths and templates are made. Bytes alone hardly ever make one that parses.
const PIECES: [&str; 64] = [
    ".a",
    ".a",
    ".a",
    ".b",
    ".b",
    ".status",
    ".status",
    "[0]",
    "[0]",
    "[1]",
    "[-1]",
    "[*]",
    "..",
    ".*",
    "[1:3]",
    "[::2]",
    "[?(@.a==1)]",
    "[?(@.b)]",
    "['a']",
    "[0,1]",
    "{.a}",
    "$.a",
    "$.status",
    "[?@.a]",
    "$..a",
    "a",
    "b",
    "status",
    "params",
    ".",
    "[",
    "]",
    "*",
    "?(",
    "@",
    "@.a",
    ")",
    "==",
    "<",
    "!=",
    "'x'",
    "\"x\"",
    "'",
    "\"",
    "\\",
    "1",
    "-2.5",
    "true",
    ",",
    ":",
    "$",
    "{",
    "}",
    "range",
    "end",
    " ",
    "\n",
    "é",
    "$(",
    "$(",
    ")$",
    ")$",
    "#(",
    "\u{0}",
];

/// Names that paths ask for.
const KEYS: [&str; 5] = ["a", "b", "status", "params", "x"];

static NAMES: Vocabulary = Names(&[("params", Open), ("a", Names(&[("b", Open)]))]);

/// A text of pieces and single characters.
fn text(bytes: &[u8]) -> String {
    let pieces = bytes
        .iter()
        .map(|byte| match PIECES.get(usize::from(*byte)) {
            Some(piece) => (*piece).to_owned(),
            None => char::from(*byte).to_string(),
        });
    pieces.collect()
}

/// A value that the bytes stand for, not deeper than a parser of JSON goes.
fn value(bytes: &mut std::slice::Iter<'_, u8>, depth: usize) -> Value {
    let Some(byte) = bytes.next() else {
        return Value::Null;
    };
    let size = usize::from(byte >> 4);
    match byte % 8 {
        0 => [Value::Null, true.into(), false.into()][size % 3].clone(),
        1 => (i64::from(*byte) / 16).into(),
        2 => (f64::from(*byte) / 16.0).into(),
        3 => text(&bytes.by_ref().take(size).copied().collect::<Vec<_>>()).into(),
        4 | 5 if depth > 0 => (0..size).map(|_| value(bytes, depth - 1)).collect(),
        _ if depth > 0 => {
            let entries = (0..size).map(|_| {
                let key = bytes.next().map_or(0, |byte| usize::from(*byte));
                (KEYS[key % KEYS.len()].to_owned(), value(bytes, depth - 1))
            });
            Value::Object(entries.collect())
        }
        _ => "leaf".into(),
    }
}

/// A text, and an object with some of the entries that texts ask for. The first bytes are for the text.
fn inputs(bytes: &[u8]) -> (String, Value) {
    let (length, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let (left, right) = rest.split_at(rest.len().min(usize::from(length % 8)));
    let mut right = right.iter();
    let entries = KEYS.map(|key| (key.to_owned(), value(&mut right, 8)));
    (text(left), Value::Object(entries.into_iter().collect()))
}

#[test]
fn any_path_is_evaluated_without_a_panic_and_the_same_twice() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let (source, data) = inputs(bytes);
        let path = Path::compile(&source);
        assert_eq!(path, Path::compile(&source));
        let found = path.evaluate(&data);
        assert_eq!(found, path.evaluate(&data));
        if let Some(error) = path.dead_end() {
            let said = found.expect_err("a path that is a dead end has a value");
            assert_eq!(said.is_absent(), error.is_absent());
        }
        let _ = (check_field(&source), check_unwrapped(&source));
    });
}

#[test]
fn a_root_that_is_borrowed_gives_what_the_whole_object_gives() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let (source, data) = inputs(bytes);
        let root: Map<String, Value> =
            [("a".to_owned(), data.clone()), ("status".to_owned(), data)]
                .into_iter()
                .collect();
        let path = Path::compile(&source);
        let whole = Value::Object(root.clone());
        assert_eq!(path.evaluate_root(&root), path.evaluate(&whole), "{source}");
    });
}

#[test]
fn what_is_kept_for_the_prefix_of_a_path_is_enough_for_it() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let (source, data) = inputs(bytes);
        let path = Path::compile(&source);
        let prefix = path.static_prefix();
        let kept = prefix.iter().try_fold(&data, |data, name| data.get(name));
        let Some(kept) = kept.filter(|_| !prefix.is_empty()) else {
            return;
        };
        let alone = prefix.iter().rev().fold(kept.clone(), |below, name| {
            Value::Object(Map::from_iter([(name.clone(), below)]))
        });
        assert_eq!(path.evaluate(&alone), path.evaluate(&data), "{source}");
    });
}

#[test]
fn any_template_is_rendered_without_a_panic_and_reads_no_tag_twice() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let mut rest = bytes.iter();
        let (template, context) = (value(&mut rest, 6), value(&mut rest, 6));
        let compiled = Compiled::compile(&template);
        let rendered = compiled.render(&mut |path| path.evaluate(&context));
        if compiled.paths().is_empty() {
            let plain = numbers::plain(std::borrow::Cow::Owned(template)).into_owned();
            assert_eq!(rendered, Ok(plain));
        }
    });
}

#[test]
fn a_fault_is_told_of_no_tag_that_some_context_fills() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let (source, data) = inputs(bytes);
        let compiled = Compiled::compile(&Value::from(source));
        let context = Map::from_iter([("params".to_owned(), data.clone())]);
        let faults = tags::faults(&compiled, &NAMES);
        let is_broken = |fault: &tags::TagFault| !fault.problem.contains("stays text");
        if faults.iter().any(is_broken) {
            assert!(compiled.render_root(&context).is_err(), "{faults:?}");
        }
        compiled.visit(&mut |_, found| {
            if let Found::Tag(path) = found {
                let _ = path.dead_end();
            }
        });
    });
}

#[test]
fn any_value_is_written_as_json_that_reads_back() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let value = value(&mut bytes.iter(), 12);
        let read: Value = serde_json::from_str(&go_format::json(&value)).expect("it is JSON");
        let plain = |value| numbers::plain(std::borrow::Cow::Owned(value)).into_owned();
        assert_eq!(plain(read), plain(value.clone()));
        let _ = (go_format::display(&value), go_format::display_exact(&value));
    });
}

#[test]
fn any_value_has_a_digest_and_a_preview_that_begins_its_yaml() {
    check!().with_test_time(TIME).for_each(|bytes| {
        let mut rest = bytes.iter();
        let (value, other) = (value(&mut rest, 12), value(&mut rest, 12));
        let yaml = yaml_digest::to_yaml(&value);
        assert!(yaml.ends_with('\n'));
        assert!(yaml.starts_with(&yaml_digest::preview(&value)));
        let digest = sha256_text(&Sha256::digest(&yaml));
        assert_eq!(yaml_digest::digest(&value), digest);
        // What differs behind the preview differs, too, and nothing but the text counts.
        let behind = |value| Value::Array(vec!["x".repeat(2000).into(), value]);
        let (one, other) = (behind(value), behind(other));
        let is_same = yaml_digest::to_yaml(&one) == yaml_digest::to_yaml(&other);
        let digests = [one, other].map(|value| yaml_digest::digest(&value));
        assert_eq!(digests[0] == digests[1], is_same);
    });
}
