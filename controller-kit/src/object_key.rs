//! By what objects of a kind are told apart.

use std::fmt;
use std::sync::Arc;

use api_types::{NamespaceName, ObjectName};

/// Namespace and name of an object. Stores and queues hold several of each: a clone shares the texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectKey {
    /// Namespace, empty for cluster-scoped objects.
    pub namespace: Arc<str>,
    /// Name.
    pub name: Arc<str>,
}

impl ObjectKey {
    /// A key from its two parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// The key of an owner.
    pub fn of_owner(namespace: &NamespaceName, name: &ObjectName) -> Self {
        Self::new(namespace.as_str(), name.as_str())
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}/{}", self.namespace, self.name)
        }
    }
}
