//! Describing a ytt run as data.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::template::own_status::{self, OWNER_KEYS};
use crate::values::canonical;

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
    own_status::is_harmless(std::iter::from_fn(next))
}

/// Digest of the values; of the owner, what our own status writes change is left out unless it may be read.
pub(crate) fn values_digest(values: &BTreeMap<String, Value>, sees_status_writes: bool) -> String {
    if !sees_status_writes {
        return own_status::digest_without(values);
    }
    let seen: serde_json::Map<String, Value> = values.clone().into_iter().collect();
    canonical::digest(&Value::Object(seen))
}

#[cfg(test)]
mod tests;
