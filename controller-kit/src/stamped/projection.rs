//! Which parts of stamped objects are kept: the paths that templates read.

use std::collections::BTreeSet;

use realizer::MANAGED_FIELDS;
use serde_json::{Map, Value};

/// A set of static path prefixes. It only grows; a watch whose projection grew lists again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projection {
    prefixes: BTreeSet<Vec<String>>,
}

impl Projection {
    /// The prefixes; an empty prefix stands for the whole object.
    pub fn new(prefixes: impl IntoIterator<Item = Vec<String>>) -> Self {
        Self {
            prefixes: prefixes.into_iter().collect(),
        }
    }

    /// Adds what `other` needs; true if this one grew.
    pub fn grow(&mut self, other: &Self) -> bool {
        let before = self.prefixes.len();
        for prefix in &other.prefixes {
            if !self.covers(prefix) {
                self.prefixes.insert(prefix.clone());
            }
        }
        before != self.prefixes.len()
    }

    /// Whether what objects hold beside our values is kept.
    pub(super) fn wants_values_beside(&self) -> bool {
        self.covers(&MANAGED_FIELDS.map(str::to_owned))
    }

    fn covers(&self, path: &[String]) -> bool {
        self.prefixes.iter().any(|prefix| path.starts_with(prefix))
    }

    /// Copies the kept parts of `from` over into `into`.
    pub fn copy(&self, from: &Value, into: &mut Value) {
        for prefix in &self.prefixes {
            copy_path(from, into, prefix);
        }
        // The managed fields are kept apart and are the largest part of most objects.
        if let Some(metadata) = into.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
}

fn copy_path(from: &Value, into: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        if let (Value::Object(source), Value::Object(target)) = (from, &mut *into) {
            for (key, value) in source {
                target.insert(key.clone(), value.clone());
            }
        } else {
            *into = from.clone();
        }
        return;
    };
    // A path that ends early is absent in the copy exactly as it is absent in the original.
    let Some(source) = from.get(first) else {
        return;
    };
    if rest.is_empty() || !source.is_object() {
        if let Some(target) = into.as_object_mut() {
            target.insert(first.clone(), source.clone());
        }
        return;
    }
    let Some(target) = into.as_object_mut() else {
        return;
    };
    copy_path(
        source,
        target
            .entry(first.clone())
            .or_insert_with(|| Value::Object(Map::new())),
        rest,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn prefixes(paths: &[&str]) -> Projection {
        Projection::new(paths.iter().map(|path| {
            path.split('.')
                .filter(|part| !part.is_empty())
                .map(str::to_owned)
                .collect()
        }))
    }

    fn copied(paths: &[&str], from: &Value) -> Value {
        let mut into = json!({"metadata": {"name": "a"}});
        prefixes(paths).copy(from, &mut into);
        into
    }

    #[test]
    fn only_the_paths_in_use_are_kept() {
        let from = json!({"metadata": {"name": "a"}, "spec": {"x": 1, "y": 2}, "status": {"url": "u", "big": [1, 2]}});
        assert_eq!(
            copied(&["status.url", "spec.x"], &from),
            json!({"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"url": "u"}})
        );
    }

    #[test]
    fn an_empty_prefix_keeps_everything_but_managed_fields() {
        let from = json!({"metadata": {"name": "a", "managedFields": [1]}, "data": {"k": "v"}});
        assert_eq!(
            copied(&[""], &from),
            json!({"metadata": {"name": "a"}, "data": {"k": "v"}})
        );
    }

    #[test]
    fn a_path_through_a_scalar_keeps_the_scalar_so_that_it_reads_the_same() {
        assert_eq!(
            copied(&["status.a.b"], &json!({"status": {"a": 5}})),
            json!({"metadata": {"name": "a"}, "status": {"a": 5}})
        );
    }

    #[test]
    fn growing_by_a_covered_path_is_no_growth() {
        let mut projection = prefixes(&["status"]);
        assert!(!projection.grow(&prefixes(&["status.url"])));
        assert!(projection.grow(&prefixes(&["spec"])));
    }
}
