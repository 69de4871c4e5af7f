//! What differs between two templates, in words for a log: where, and what it was and is, but for
//! texts that may be secret.

use std::collections::BTreeSet;

use convention_protocol::PodTemplate;
use serde_json::Value;

/// The most differences that are told.
const MOST: usize = 50;
/// The most characters of a value that are shown.
const MOST_CHARS: usize = 80;
const REDACTED: &str = "<redacted>";

/// Where two templates differ, in the order of their fields. Values of literal variables, of
/// arguments and commands are not shown: people put passwords there.
///
/// ```
/// use conventions::diff::diff;
///
/// let template = |env: &str| serde_json::from_str(&format!(
///     r#"{{"spec": {{"containers": [{{"name": "a", "env": [{{"name": "A", "value": "{env}"}}]}}]}}}}"#)).unwrap();
/// assert_eq!(diff(&template("x"), &template("y")),
///     ["spec.containers[0].env[0].value: <redacted> -> <redacted>"]);
/// ```
pub fn diff(before: &PodTemplate, after: &PodTemplate) -> Vec<String> {
    let value = |template| serde_json::to_value(template).unwrap_or_default();
    let mut found = Vec::new();
    compare("", Some(&value(before)), Some(&value(after)), &mut found);
    if found.len() > MOST {
        let more = found.len() - MOST;
        found.truncate(MOST);
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(path: &str, before: Option<&Value>, after: Option<&Value>, found: &mut Vec<String>) {
    if before == after {
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
            for name in names {
                let dot = if path.is_empty() { "" } else { "." };
                let path = format!("{path}{dot}{name}");
                compare(&path, before.get(name), after.get(name), found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) => {
            for index in 0..before.len().max(after.len()) {
                let path = format!("{path}[{index}]");
                compare(&path, before.get(index), after.get(index), found);
            }
        }
        _ => found.push(format!(
            "{path}: {} -> {}",
            shown(path, before),
            shown(path, after)
        )),
    }
}

fn shown(path: &str, value: Option<&Value>) -> String {
    let Some(value) = value else {
        return "nothing".to_owned();
    };
    let last = path.rsplit('.').next().unwrap_or_default();
    let name = last.split('[').next().unwrap_or_default();
    if matches!(name, "value" | "args" | "command") {
        return REDACTED.to_owned();
    }
    let text = redacted(value).to_string();
    match text.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| {
                let hidden = matches!(name.as_str(), "value" | "args" | "command");
                let value = if hidden {
                    REDACTED.into()
                } else {
                    redacted(value)
                };
                (name.clone(), value)
            });
            fields.collect()
        }
        Value::Array(items) => items.iter().map(redacted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn template(value: &Value) -> PodTemplate {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn what_came_went_and_changed_is_told_with_its_place() {
        let before = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let after = json!({"spec": {"containers": [{"name": "c", "image": "j"}, {"name": "d", "args": ["secret"]}], "hostNetwork": true}});
        assert_eq!(
            diff(&template(&before), &template(&after)),
            [
                r#"metadata.labels: {"a":"b"} -> nothing"#,
                r#"spec.containers[0].image: "i" -> "j""#,
                r#"spec.containers[1]: nothing -> {"args":"<redacted>","name":"d"}"#,
                "spec.hostNetwork: nothing -> true",
            ]
        );
        assert!(diff(&template(&after), &template(&after)).is_empty());
    }

    #[test]
    fn a_long_diff_is_cut() {
        let labels = |text: &str| -> Value {
            let labels = (0..100).map(|index| (format!("l{index:03}"), Value::from(text)));
            let labels: Value = labels.collect();
            json!({"metadata": {"labels": labels}})
        };
        let found = diff(
            &template(&labels("a")),
            &template(&labels(&"é".repeat(500))),
        );
        assert_eq!(found.len(), MOST + 1);
        assert_eq!(found[MOST], "and 50 more");
        assert!(found[0].chars().count() < 2 * MOST_CHARS);
    }

    proptest! {
        #[test]
        fn no_literal_is_ever_shown(secret in "[A-Z]{12}", place in 0_usize..4) {
            let hidden = match place {
                0 => json!({"name": "c", "env": [{"name": "A", "value": &secret}]}),
                1 => json!({"name": "c", "args": ["-p", &secret]}),
                2 => json!({"name": "c", "command": [&secret]}),
                _ => json!({"name": "c", "lifecycle": {"preStop": {"exec": {"command": [&secret]}}}}),
            };
            let with = template(&json!({"spec": {"containers": [hidden]}}));
            let without = template(&json!({"spec": {"containers": [{"name": "c"}]}}));
            let none = template(&json!({}));
            for (before, after) in [(&with, &without), (&without, &with), (&none, &with), (&with, &none)] {
                let told = diff(before, after).join(" ");
                prop_assert!(!told.contains(&secret), "{}", told);
            }
        }
    }
}
