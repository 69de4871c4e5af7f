//! What our own status writes change of an owner, and which templates may see it
//! (docs/behaviour/context.md#own-status).
//!
//! A template that renders any of it makes a circle: the status changes the rendering, the rendering the object, and the
//! object the status. [`basis`] is what the shell tells such a change from every other one by.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::values::canonical;
use template_language::interpolate::Compiled;

/// The context keys that hold what our status is written to: an owner
/// (docs/behaviour/context.md#keys) or a Runnable (docs/behaviour/runnables.md#context).
pub(crate) const OWNER_KEYS: [&str; 3] = ["workload", "deliverable", "runnable"];

/// Fields of the owner's metadata that our own status write changes.
const CHANGED_METADATA: [&str; 2] = ["resourceVersion", "managedFields"];

/// Whether the place below an owner key can be read without seeing a status write. An empty name is one that is not known.
pub(crate) fn is_harmless<'n>(mut place: impl Iterator<Item = &'n str>) -> bool {
    match place.next() {
        Some("metadata") => place
            .next()
            .is_some_and(|field| !field.is_empty() && !CHANGED_METADATA.contains(&field)),
        Some("spec" | "kind" | "apiVersion") => true,
        _ => false,
    }
}

/// Whether a simple template may read what our own status writes change, or the owner as a whole.
pub(crate) fn is_seen_by(template: &Compiled) -> bool {
    template.paths().iter().any(|path| {
        let place = path.static_prefix();
        let mut place = place.iter().map(String::as_str);
        match place.next() {
            Some(key) => OWNER_KEYS.contains(&key) && !is_harmless(place),
            None => true,
        }
    })
}

/// Digest of the values without what our own status writes change.
pub(crate) fn digest_without(values: &BTreeMap<String, Value>) -> String {
    let seen: serde_json::Map<String, Value> = values
        .iter()
        .map(|(key, value)| {
            let value = if OWNER_KEYS.contains(&key.as_str()) {
                without(value)
            } else {
                value.clone()
            };
            (key.clone(), value)
        })
        .collect();
    canonical::digest(&Value::Object(seen))
}

/// All that a rendering is made from except what our own status writes change.
pub(crate) fn basis(template_digest: &str, values: &BTreeMap<String, Value>) -> String {
    format!("{template_digest} {}", digest_without(values))
}

fn without(owner: &Value) -> Value {
    let mut owner = owner.clone();
    if let Some(object) = owner.as_object_mut() {
        object.remove("status");
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in CHANGED_METADATA {
                metadata.remove(field);
            }
        }
    }
    owner
}

#[cfg(test)]
mod tests;
