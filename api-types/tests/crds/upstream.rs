//! Reads the short form of the Go controller's schemas; see `upstream/README.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::facts::{Facts, Fields};

/// A definition of the Go controller.
#[derive(Debug, Default)]
pub(crate) struct Upstream {
    /// `scope`, `plural`, `singular`, `shortName`, `category`.
    pub(crate) head: BTreeMap<String, String>,
    /// Whether there is a status subresource.
    pub(crate) status: bool,
    /// Name, type and path of the printer columns.
    pub(crate) columns: Vec<(String, String, String)>,
    pub(crate) fields: Fields,
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crds/upstream")
}

pub(crate) fn read(kind: &str) -> Upstream {
    let mut upstream = Upstream::default();
    for line in lines(&directory().join(kind)) {
        let (word, rest) = line
            .split_once(' ')
            .map_or((line.as_str(), ""), |(word, rest)| (word, rest.trim()));
        match word {
            "scope" | "plural" | "singular" | "shortName" | "category" => {
                upstream.head.insert(word.to_owned(), rest.to_owned());
            }
            "status" if rest.is_empty() => upstream.status = true,
            "column" => {
                let mut parts = rest.splitn(3, ' ').map(str::to_owned);
                let mut next = || parts.next().expect("a column has name, type and path");
                upstream.columns.push((next(), next(), next()));
            }
            path => field(path, rest, &mut upstream.fields),
        }
    }
    upstream
}

fn lines(file: &Path) -> Vec<String> {
    let text =
        std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(str::to_owned)
        .collect()
}

fn field(path: &str, rest: &str, fields: &mut Fields) {
    if let Some(shared) = rest.strip_prefix('@') {
        for line in lines(&directory().join("shared").join(shared)) {
            let (below, rest) = line.split_once(' ').expect("a path and a type");
            field(&format!("{path}{below}"), rest.trim(), fields);
        }
        return;
    }
    let mut words = rest.split_whitespace();
    let mut facts = Facts {
        kind: words.next().expect("a type").to_owned(),
        ..Facts::default()
    };
    for word in words {
        fact(word, &mut facts);
    }
    let previous = fields.insert(path.to_owned(), facts);
    assert_eq!(previous, None, "{path} is described twice");
}

fn fact(word: &str, facts: &mut Facts) {
    let number = |text: &str| Some(text.parse().expect("a number"));
    match word.split_once('=') {
        None if word == "required" => facts.required = true,
        None if word == "atomic" => facts.atomic = true,
        Some(("enum", texts)) => facts.one_of = texts.split('|').map(str::to_owned).collect(),
        Some(("min", text)) => facts.min = Some(text.parse().expect("a number")),
        Some(("max", text)) => facts.max = Some(text.parse().expect("a number")),
        Some(("minLength", text)) => facts.min_length = number(text),
        Some(("maxLength", text)) => facts.max_length = number(text),
        Some(("minItems", text)) => facts.min_items = number(text),
        Some(("pattern", text)) => facts.pattern = Some(text.to_owned()),
        Some(("default", json)) => facts.default = Some(serde_json::from_str(json).expect("JSON")),
        Some(("listKey", key)) => facts.list_key = Some(key.to_owned()),
        _ => panic!("unknown fact {word}"),
    }
}
