//! Describing a ytt run as data.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::canonical;

/// Fields of the owner's metadata that our own status write changes.
const CHANGED_BY_STATUS_WRITES: [&str; 2] = ["resourceVersion", "managedFields"];

/// The context keys that hold the owner.
const OWNER_KEYS: [&str; 2] = ["workload", "deliverable"];

/// Whether a ytt template may read what our own status writes change: the owner's status, resourceVersion or
/// managedFields, or the owner as a whole.
///
/// Such a template renders again after each status write; all others are found in the cache. The text is not parsed:
/// anything but `….values.<key>` with a harmless path counts as reading everything, which costs only a ytt run.
pub(crate) fn sees_status_writes(text: &str) -> bool {
    let mut from = 0;
    while let Some(found) = text[from..].find("values") {
        let at = from + found;
        from = at + "values".len();
        if is_word(text, at, from) && !is_harmless(&text[..at], &text[from..]) {
            return true;
        }
    }
    false
}

fn is_word(text: &str, start: usize, end: usize) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    !text[..start].ends_with(continues) && !text[end..].starts_with(continues)
}

fn is_harmless(before: &str, after: &str) -> bool {
    if !before.ends_with('.') {
        // A YAML key `values:`, as in Helm releases; a quoted or bare word may be a name in code.
        let line = before.rsplit('\n').next().unwrap_or_default();
        return after.starts_with(':') && line.trim_matches([' ', '-']).is_empty();
    }
    let mut path = after
        .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
        .next()
        .unwrap_or_default();
    let mut next = || {
        let rest = path.strip_prefix('.')?;
        let end = rest.find('.').unwrap_or(rest.len());
        path = &rest[end..];
        Some(&rest[..end]).filter(|name| !name.is_empty())
    };
    let Some(key) = next() else { return false };
    if !OWNER_KEYS.contains(&key) {
        return true;
    }
    match next() {
        Some("spec" | "kind" | "apiVersion") => true,
        Some("metadata") => next().is_some_and(|field| !CHANGED_BY_STATUS_WRITES.contains(&field)),
        _ => false,
    }
}

/// Digest of the values; of the owner, what our own status writes change is left out unless it may be read.
pub(crate) fn values_digest(values: &BTreeMap<String, Value>, sees_status_writes: bool) -> String {
    let seen: serde_json::Map<String, Value> = values
        .iter()
        .map(|(key, value)| {
            let is_owner = OWNER_KEYS.contains(&key.as_str());
            let value = if is_owner && !sees_status_writes {
                without_status(value)
            } else {
                value.clone()
            };
            (key.clone(), value)
        })
        .collect();
    canonical::digest(&Value::Object(seen))
}

fn without_status(owner: &Value) -> Value {
    let mut owner = owner.clone();
    if let Some(object) = owner.as_object_mut() {
        object.remove("status");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in CHANGED_BY_STATUS_WRITES {
                metadata.remove(field);
            }
        }
    }
    owner
}

#[cfg(test)]
mod tests;
