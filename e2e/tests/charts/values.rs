//! `values.yaml` is the single source: the schema and the table of the README are made from it, and
//! templates use what it declares, all of it and nothing else.
//!
//! A key that has a comment is a value, and what is below it is its default. A key without one is a
//! group. What follows `@schema` in a comment is added to what the default says of the type.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use test_support::{documents, hold_generated, table_row};

use crate::{charts, rewrites};

/// One value that can be said.
struct Declared {
    /// Its keys, joined by dots.
    path: String,
    /// What it is for.
    text: String,
    /// What is added to its schema.
    schema: Map<String, Value>,
    default: Value,
}

/// The values of a file, in its order.
fn declared(yaml: &str) -> Vec<Declared> {
    let [values] = &documents(yaml).unwrap()[..] else {
        unreachable!("values are one document");
    };
    let mut declared = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    // The keys around a line, and how far the value that is being skipped is indented.
    let mut around: Vec<&str> = Vec::new();
    let mut skipped: Option<usize> = None;
    for line in yaml.lines() {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if text.is_empty() {
            comment.clear();
        } else if skipped.is_some_and(|skipped| depth > skipped) || text.starts_with("- ") {
            // Of a default.
        } else if let Some(said) = text.strip_prefix('#') {
            comment.push(said.strip_prefix(' ').unwrap_or(said));
        } else {
            let (key, _) = text.split_once(':').unwrap();
            around.truncate(depth / 2);
            around.push(key);
            skipped = (!comment.is_empty()).then_some(depth);
            if !comment.is_empty() {
                declared.push(declaration(&around, &comment, values));
                comment.clear();
            }
        }
    }
    declared
}

fn declaration(keys: &[&str], comment: &[&str], values: &Value) -> Declared {
    let path = keys.join(".");
    let said = comment.join("\n");
    let (text, schema) = said.split_once("@schema").unwrap_or((&said, "{}"));
    let schema = serde_json::from_str(schema);
    Declared {
        text: text.split_whitespace().collect::<Vec<_>>().join(" "),
        schema: schema.unwrap_or_else(|error| panic!("@schema of {path}: {error}")),
        default: values
            .pointer(&format!("/{}", keys.join("/")))
            .unwrap()
            .clone(),
        path,
    }
}

fn type_of(default: &Value) -> &'static str {
    match default {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// An object that has the properties that it is given, and no others.
fn group() -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": {}})
}

fn schema(declared: &[Declared]) -> Value {
    let mut root = group();
    for value in declared {
        let mut place = &mut root;
        let keys: Vec<&str> = value.path.split('.').collect();
        let (last, groups) = keys.split_last().unwrap();
        for key in groups {
            let inner = &mut place["properties"][*key];
            if inner.is_null() {
                *inner = group();
            }
            place = inner;
        }
        let mut property = json!({
            "type": type_of(&value.default),
            "description": value.text,
            "default": value.default,
        });
        property
            .as_object_mut()
            .unwrap()
            .extend(value.schema.clone());
        place["properties"][*last] = property;
    }
    // The draft that every helm reads, older ones of version 3 among them.
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    // What a chart around this one says to all its parts.
    root["properties"]["global"] = json!({"type": "object"});
    root
}

fn table(declared: &[Declared]) -> Vec<String> {
    let head = [table_row(["value", "default", ""]), table_row(["---"; 3])];
    let rows = declared.iter().map(|value| {
        let (path, default) = (format!("`{}`", value.path), format!("`{}`", value.default));
        table_row([path.as_str(), &default, &value.text])
    });
    head.into_iter().chain(rows).collect()
}

#[test]
fn the_schema_and_the_readme_say_what_values_yaml_says() {
    for chart in charts() {
        let declared = declared(&fs::read_to_string(chart.join("values.yaml")).unwrap());
        assert!(declared.len() > 10, "{}", chart.display());
        let file = chart.join("values.schema.json");
        let wanted = serde_json::to_string_pretty(&schema(&declared)).unwrap() + "\n";
        if rewrites() {
            fs::write(&file, &wanted).unwrap();
        }
        let found = fs::read_to_string(&file).unwrap();
        assert_eq!(
            found,
            wanted,
            "{}: UPDATE_GOLDEN=1 writes it",
            file.display()
        );
        hold_generated(
            &chart.join("README.md"),
            "values",
            &table(&declared),
            rewrites(),
        );
    }
}

/// The values that the templates of a chart name.
fn used(chart: &Path) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for entry in fs::read_dir(chart.join("templates")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for named in text.split(".Values").skip(1) {
            let rest = named.strip_prefix('.').unwrap_or_default();
            let is_path = |next: char| next.is_ascii_alphanumeric() || next == '.';
            let end = rest.find(|next| !is_path(next)).unwrap_or(rest.len());
            used.insert(rest[..end].to_owned());
        }
    }
    used
}

#[test]
fn templates_use_what_is_declared_all_of_it_and_nothing_else() {
    for chart in charts() {
        let declared = declared(&fs::read_to_string(chart.join("values.yaml")).unwrap());
        let declared: BTreeSet<String> = declared.into_iter().map(|value| value.path).collect();
        assert_eq!(used(&chart), declared, "{}", chart.display());
    }
}

#[test]
fn values_are_read_with_their_comments_and_defaults() {
    let yaml = "# The head.\n\n# One\n# two. @schema {\"minimum\": 1}\na: 3\nb:\n  # Three.\n  c:\n    # Of the default.\n    - d: 1\n  # Four.\n  e: \"\"\n# Five.\nf: {}\n";
    let declared = declared(yaml);
    let told = declared.iter().map(|value| {
        let (path, text) = (value.path.as_str(), value.text.as_str());
        (path, text, value.default.to_string())
    });
    let told: Vec<_> = told.collect();
    let expected = [
        ("a", "One two.", "3"),
        ("b.c", "Three.", "[{\"d\":1}]"),
        ("b.e", "Four.", "\"\""),
        ("f", "Five.", "{}"),
    ];
    assert_eq!(
        told,
        expected.map(|(path, text, value)| (path, text, value.to_owned()))
    );
    let schema = schema(&declared);
    assert_eq!(schema["properties"]["a"]["minimum"], 1);
    assert_eq!(schema["properties"]["b"]["additionalProperties"], false);
    assert_eq!(
        schema["properties"]["b"]["properties"]["c"]["type"],
        "array"
    );
}
