//! What paths start from.
//!
//! A template is rendered with a context of many entries: the owner, the parameters, the objects of
//! other steps. Most templates read few of them. To put all into one object for each rendering would
//! copy them all, so a path asks the root for the entry that it begins with.

use serde_json::{Map, Value};

/// A root that borrows its top-level entries, so that a context is never copied together.
///
/// ```
/// use serde_json::{Value, json};
/// use template_language::jsonpath::{Path, Root};
///
/// struct Context<'c> {
///     owner: &'c Value,
/// }
///
/// impl Root for Context<'_> {
///     fn get(&self, key: &str) -> Option<&Value> {
///         (key == "workload").then_some(self.owner)
///     }
///     fn entries(&self) -> Vec<(&str, &Value)> {
///         vec![("workload", self.owner)]
///     }
/// }
///
/// let owner = json!({"metadata": {"name": "shop"}});
/// let path = Path::compile("workload.metadata.name");
/// assert_eq!(path.evaluate_root(&Context { owner: &owner }).unwrap().as_ref(), "shop");
/// ```
pub trait Root {
    /// The entry of this name.
    fn get(&self, key: &str) -> Option<&Value>;
    /// All entries, each once; only paths that do not begin with a name, such as `..x`, ask for them.
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
