//! What paths start from.

use serde_json::{Map, Value};

/// A root that borrows its top-level entries, so that a context is never copied together.
pub trait Root {
    /// The entry of this name.
    fn get(&self, key: &str) -> Option<&Value>;
    /// All entries; only paths that do not begin with a name, such as `..x`, ask for them.
    fn entries(&self) -> Vec<(&str, &Value)>;
}

impl Root for Map<String, Value> {
    fn get(&self, key: &str) -> Option<&Value> {
        self.get(key)
    }

    fn entries(&self) -> Vec<(&str, &Value)> {
        self.iter()
            .map(|(key, value)| (key.as_str(), value))
            .collect()
    }
}

/// All entries in one object of their own.
pub(super) fn copied(root: &dyn Root) -> Value {
    let entries = root.entries().into_iter();
    Value::Object(
        entries
            .map(|(key, value)| (key.to_owned(), value.clone()))
            .collect(),
    )
}
