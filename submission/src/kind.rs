//! Kinds of objects.

use std::fmt;

use serde_json::Value;

/// A kind in a version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// `group/version`, or `version` in the core group.
    pub api_version: String,
    /// Kind.
    pub kind: String,
}

impl Kind {
    /// A kind from its two parts.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            api_version: api_version.into(),
            kind: kind.into(),
        }
    }

    /// The kind that an object says it is.
    ///
    /// ```
    /// use serde_json::json;
    /// use submission::Kind;
    ///
    /// let kind = Kind::of(&json!({"apiVersion": "apps/v1", "kind": "Deployment"})).unwrap();
    /// assert_eq!(kind.group(), "apps");
    /// assert_eq!(kind.to_string(), "apps/v1 Deployment");
    /// assert_eq!(Kind::of(&json!({"kind": "Deployment"})), None);
    /// ```
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self::new(
            object.get("apiVersion")?.as_str()?,
            object.get("kind")?.as_str()?,
        ))
    }

    /// The group, empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version
            .split_once('/')
            .map_or("", |(group, _)| group)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
