//! What differs between two templates.

use std::collections::BTreeMap;

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
                lines = format!("{lines}{sign} {path}: {value}\n");
            }
        }
    }
    lines
}

/// Whether a value is empty here and holds something there.
pub(super) fn is_filled(path: &str, value: &Value, there: &BTreeMap<String, &Value>) -> bool {
    let below = |other: &&str| {
        let rest = other.strip_prefix(path).unwrap_or_default();
        rest.starts_with(['.', '['])
    };
    (value.is_object() || value.is_array()) && there.keys().map(String::as_str).any(|it| below(&it))
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
                    .map(|(key, value)| (format!("{path}{dot}{key}"), value));
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
        (format!("{path}[{key}]"), entry)
    };
    entries.iter().enumerate().map(name).collect()
}
