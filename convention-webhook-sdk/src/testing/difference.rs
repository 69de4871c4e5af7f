//! What differs between two templates.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Bound;

use serde_json::Value;

/// By what entries of lists are known, as Kubernetes knows them; the first that an entry has.
const KEYS: [&str; 5] = ["containerPort", "mountPath", "name", "devicePath", "key"];

/// What differs between two values, a line for each: `+` for what came, `-` for what went. Entries
/// of lists are known by their names, so their order does not count.
///
/// ```
/// use convention_webhook_sdk::testing::difference;
/// use serde_json::json;
///
/// let before = json!({"env": [{"name": "A", "value": "1"}], "args": ["x"]});
/// let after = json!({"env": [{"name": "A", "value": "2"}], "args": ["x", "y"]});
/// assert_eq!(
///     difference(&before, &after),
///     "+ args[1]: \"y\"\n- env[A].value: \"1\"\n+ env[A].value: \"2\"\n",
/// );
/// ```
pub fn difference(before: &Value, after: &Value) -> String {
    let (before, after) = (leaves(before), leaves(after));
    let mut lines = String::new();
    let mut paths: Vec<&String> = before.keys().chain(after.keys()).collect();
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let (old, new) = (before.get(path), after.get(path));
        if old == new {
            continue;
        }
        for (sign, value, others) in [('-', old, &after), ('+', new, &before)] {
            // An empty object that was filled did not go.
            if let Some(value) = value.filter(|value| !is_filled(path, value, others)) {
                // Into memory.
                let _ = writeln!(lines, "{sign} {path}: {}", printable(&value.to_string()));
            }
        }
    }
    lines
}

/// Whether a value is empty here and holds something there.
pub(super) fn is_filled(path: &str, value: &Value, there: &BTreeMap<String, &Value>) -> bool {
    let has = |start: String| {
        let mut behind = there.range::<str, _>((Bound::Included(start.as_str()), Bound::Unbounded));
        behind
            .next()
            .is_some_and(|(key, _)| key.starts_with(&start))
    };
    let is_whole = path.is_empty() && there.keys().any(|key| !key.is_empty());
    (value.is_object() || value.is_array())
        && (is_whole || has(format!("{path}.")) || has(format!("{path}[")))
}

/// A text that stays one line, and that no terminal obeys: whoever is asked may answer anything, and
/// this is read by people.
fn printable(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for next in text.chars() {
        let turns = matches!(next, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if next.is_control() || turns || matches!(next, '\u{2028}' | '\u{2029}') {
            line.extend(next.escape_default());
        } else {
            line.push(next);
        }
    }
    line
}

/// Each value that holds no other, by where it stands. `null` is what is not there.
pub(super) fn leaves(value: &Value) -> BTreeMap<String, &Value> {
    let mut leaves = BTreeMap::new();
    let mut open = vec![(String::new(), value)];
    while let Some((path, value)) = open.pop() {
        match value {
            Value::Null => {}
            Value::Object(fields) if !fields.is_empty() => {
                let dot = if path.is_empty() { "" } else { "." };
                let below = fields
                    .iter()
                    .map(|(key, value)| (format!("{path}{dot}{}", printable(key)), value));
                open.extend(below);
            }
            Value::Array(entries) if !entries.is_empty() => {
                open.extend(named(&path, entries));
            }
            _ => {
                leaves.insert(path, value);
            }
        }
    }
    leaves
}

/// Entries by name; by number where they have none, or one that another has.
fn named<'v>(path: &str, entries: &'v [Value]) -> Vec<(String, &'v Value)> {
    let mut seen = std::collections::BTreeSet::new();
    let name = |(number, entry): (usize, &'v Value)| {
        let key = KEYS.iter().find_map(|key| entry.get(*key));
        let key = key.map(|key| match key {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let protocol = entry.get("protocol").and_then(Value::as_str);
        let is_port = entry.get("containerPort").is_some();
        let key = match (key, protocol) {
            (Some(key), Some(protocol)) if is_port && protocol != "TCP" => {
                Some(format!("{key}/{protocol}"))
            }
            (key, _) => key,
        };
        let free = key.filter(|key| seen.insert(key.clone()));
        let key = free.unwrap_or_else(|| number.to_string());
        (format!("{path}[{}]", printable(&key)), entry)
    };
    entries.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_somebody_answers_is_one_line_that_no_terminal_obeys() {
        let hostile = "a\n+ spec.hostNetwork: true\u{1b}[2J\u{9b}\u{202e}";
        let after = json!({hostile: hostile, "env": [{"name": hostile, "value": "1"}]});
        let lines = difference(&json!({}), &after);
        assert_eq!(lines.lines().count(), 3, "{lines}");
        let is_told = |next: char| next == '\n' || !(next.is_control() || next == '\u{202e}');
        assert!(lines.chars().all(is_told), "{lines:?}");
    }

    #[test]
    fn an_object_that_is_filled_did_not_go() {
        let lines = difference(&json!({"a": {}, "ab": {"c": 1}}), &json!({"a": {"b": 1}}));
        assert_eq!(lines, "+ a.b: 1\n- ab.c: 1\n");
        let lines = difference(&json!({"a": []}), &json!({"a": [1], "b": {}}));
        assert_eq!(lines, "+ a[0]: 1\n+ b: {}\n");
    }

    /// An answer may have a hundred thousand entries, and each empty one is looked for among the others.
    #[test]
    fn a_flood_of_entries_is_told_apart_in_a_moment() {
        let flood = |inner: Value| Value::Array(vec![inner; 100_000]);
        let lines = difference(&flood(json!({})), &flood(json!({"a": 1})));
        assert_eq!(lines.lines().count(), 100_000);
    }
}
