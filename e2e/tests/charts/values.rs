//! `values.yaml` is the single source: the schema and the table of the README are made from it, and
//! templates use what it declares, all of it and nothing else. What all controllers have is said once,
//! in that of the library.
//!
//! A key that has a comment is a value, and what is below it is its default. A key without one is a
//! group. What follows `@schema` in a comment is added to what the default says of the type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Once;

use e2e::helm::{chart, charts};
use serde_json::{Map, Value, json};
use test_support::{documents, hold_generated, table_row};

use crate::{hold, rewrites};

const LIBRARY: &str = "controller-library";
const SHARED: [&str; 2] = ["# begin shared", "# end shared\n"];

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

/// An object that has the properties that it is given, and others only where they are for somebody else.
fn group(is_open: bool) -> Value {
    json!({"type": "object", "additionalProperties": is_open, "properties": {}})
}

/// The schema of values. What the `open` groups hold is for parts of the chart, or for charts around it, as well.
fn schema(declared: &[Declared], open: &[String]) -> Value {
    let is_open = |key: &str| key == "global" || open.iter().any(|open| open == key);
    let mut root = group(false);
    for value in declared {
        let mut place = &mut root;
        let keys: Vec<&str> = value.path.split('.').collect();
        let (last, groups) = keys.split_last().unwrap();
        for key in groups {
            let inner = &mut place["properties"][*key];
            if inner.is_null() {
                *inner = group(is_open(key));
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
    if root["properties"]["global"].is_null() {
        root["properties"]["global"] = json!({"type": "object"});
    }
    root
}

/// What helm itself puts among the values: those of the library, and whether a part is wanted.
fn add_what_helm_says(schema: &mut Value, chart: &Path) {
    if !dependencies(chart).contains(&LIBRARY.to_owned()) {
        return;
    }
    schema["properties"][LIBRARY] = json!({"type": "object"});
    if parts(chart).is_empty() {
        schema["properties"]["enabled"] = json!({"type": "boolean"});
    }
}

fn table(declared: &[Declared]) -> Vec<String> {
    let head = [table_row(["value", "default", ""]), table_row(["---"; 3])];
    let rows = declared.iter().map(|value| {
        let (path, default) = (format!("`{}`", value.path), format!("`{}`", value.default));
        table_row([path.as_str(), &default, &value.text])
    });
    head.into_iter().chain(rows).collect()
}

fn dependencies(chart: &Path) -> Vec<String> {
    let about = fs::read_to_string(chart.join("Chart.yaml")).unwrap();
    let [about] = &documents(&about).unwrap()[..] else {
        unreachable!("Chart.yaml is one document");
    };
    let parts = about["dependencies"].as_array().into_iter().flatten();
    let names = parts.map(|part| part["name"].as_str().unwrap().to_owned());
    names.collect()
}

/// The charts that a chart consists of, the library aside.
fn parts(chart: &Path) -> Vec<String> {
    let mut parts = dependencies(chart);
    parts.retain(|name| name != LIBRARY);
    parts
}

/// The values of a chart with those that all controllers have, if it has these.
fn with_shared(values: &str) -> String {
    let Some((own, rest)) = values.split_once(SHARED[0]) else {
        return values.to_owned();
    };
    let (line, _) = rest.split_once('\n').unwrap();
    let library = fs::read_to_string(chart(LIBRARY).join("values.yaml")).unwrap();
    let (_about, shared) = library.split_once("\n\n").unwrap();
    format!("{own}{}{line}\n\n{shared}{}", SHARED[0], SHARED[1])
}

fn bring_up_to_date(chart: &Path) {
    let values = chart.join("values.yaml");
    let wanted = with_shared(&fs::read_to_string(&values).unwrap());
    hold(&values, &wanted);
    let declared = declared(&wanted);
    let mut made = schema(&declared, &parts(chart));
    add_what_helm_says(&mut made, chart);
    let made = serde_json::to_string_pretty(&made).unwrap() + "\n";
    hold(&chart.join("values.schema.json"), &made);
    hold_generated(
        &chart.join("README.md"),
        "values",
        &table(&declared),
        rewrites(),
    );
}

/// Before helm reads them: it is not to find schemas of other values.
pub(crate) fn are_up_to_date() {
    static DONE: Once = Once::new();
    DONE.call_once(|| {
        for chart in charts().unwrap() {
            bring_up_to_date(&chart);
        }
    });
}

#[test]
fn the_schema_and_the_readme_say_what_values_yaml_says() {
    are_up_to_date();
    for chart in charts().unwrap() {
        let declared = declared(&fs::read_to_string(chart.join("values.yaml")).unwrap());
        assert!(declared.len() > 4, "{}", chart.display());
    }
}

/// The templates of a chart, one behind the other.
fn templates(chart: &Path) -> String {
    let entries = fs::read_dir(chart.join("templates")).unwrap();
    let read = entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    read.collect()
}

/// The values that a template names.
fn named(template: &str) -> BTreeSet<String> {
    let is_path = |next: char| next.is_ascii_alphanumeric() || next == '.';
    let rests = template.split(".Values.").skip(1);
    let paths = rests.map(|rest| {
        let end = rest.find(|next| !is_path(next)).unwrap_or(rest.len());
        rest[..end].to_owned()
    });
    paths.collect()
}

/// The named templates of the library.
fn library() -> BTreeMap<String, String> {
    let all = templates(&chart(LIBRARY));
    let definitions = all.split("{{- define \"").skip(1);
    let named = definitions.map(|definition| {
        let (name, body) = definition.split_once('"').unwrap();
        (name.to_owned(), body.to_owned())
    });
    named.collect()
}

/// The values that a chart uses: its templates, and what they include of the library.
fn used(chart: &Path) -> BTreeSet<String> {
    let library = library();
    let mut templates = vec![templates(chart)];
    let (mut used, mut seen) = (BTreeSet::new(), BTreeSet::new());
    while let Some(template) = templates.pop() {
        used.extend(named(&template));
        for include in template.split("include \"").skip(1) {
            let (name, _) = include.split_once('"').unwrap();
            if let Some(body) = library.get(name).filter(|_| seen.insert(name.to_owned())) {
                templates.push(body.clone());
            }
        }
    }
    used
}

/// What Chart.yaml asks of values, and what is said to all parts.
fn used_by_parts(folder: &Path) -> BTreeSet<String> {
    let about = fs::read_to_string(folder.join("Chart.yaml")).unwrap();
    let conditions = about
        .lines()
        .filter_map(|line| line.trim().strip_prefix("condition: "));
    let mut all: BTreeSet<String> = conditions.map(str::to_owned).collect();
    for part in parts(folder) {
        let global = used(&chart(&part)).into_iter();
        all.extend(global.filter(|path| path.starts_with("global.")));
    }
    all
}

/// Whether a path is that of a value, or of a group that it is in.
fn covers(path: &str, value: &str) -> bool {
    value == path
        || value
            .strip_prefix(path)
            .is_some_and(|rest| rest.starts_with('.'))
}

#[test]
fn templates_use_what_is_declared_all_of_it_and_nothing_else() {
    are_up_to_date();
    for chart in charts().unwrap() {
        let declared = declared(&fs::read_to_string(chart.join("values.yaml")).unwrap());
        let mut used = used(&chart);
        used.extend(used_by_parts(&chart));
        for value in &declared {
            let is_used = used.iter().any(|used| covers(used, &value.path));
            assert!(is_used, "{}: nobody uses {}", chart.display(), value.path);
        }
        for path in &used {
            let is_declared = declared.iter().any(|value| covers(path, &value.path));
            assert!(is_declared, "{}: no value is {path}", chart.display());
        }
    }
}

#[test]
fn a_group_is_for_all_its_values_and_a_name_that_begins_alike_is_not() {
    assert!(covers("watchedKinds", "watchedKinds.flux") && covers("a", "a"));
    assert!(!covers("watched", "watchedKinds") && !covers("a.b", "a"));
    let found =
        named("{{ .Values.a.b }}{{ $.Values.c | default .Values.d }}{{ index .Values \"e\" }}");
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a.b", "c", "d"]);
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
    let schema = schema(&declared, &["b".to_owned()]);
    assert_eq!(schema["properties"]["a"]["minimum"], 1);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["b"]["additionalProperties"], true);
    assert_eq!(
        schema["properties"]["b"]["properties"]["c"]["type"],
        "array"
    );
}
