//! Objects that rules read beside the stamped one.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::names::ResourceName;
use serde_json::Value;

/// Which object a rule reads beside the one that its step stamps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectQuery {
    /// The step.
    pub resource: ResourceName,
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// The owner's namespace, where the object is if its kind has namespaces.
    pub namespace: String,
    /// Which one of them.
    pub choice: ObjectChoice,
    /// The leading field names of all that is read on it, as [`Submission::reads`](super::Submission::reads).
    pub reads: Arc<[Vec<String>]>,
    /// Whether something was just applied: what was read before then does not do, neither now nor later.
    pub is_fresh: bool,
    /// Whether it decides anything as the stamped object is. If not, it need not be read; but its changes are told, as it will.
    pub is_needed: bool,
}

/// Which object of a kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectChoice {
    /// The one with this name.
    Name(String),
    /// The only one with these labels.
    Labels(BTreeMap<String, String>),
}

/// The reply to [`Ask::Read`](super::Ask::Read).
pub type FoundObject = Result<Arc<Value>, Unread>;

/// Why an object is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// It was not asked for: see [`ObjectQuery::is_needed`].
    Unneeded,
    /// There is none.
    Missing,
    /// There are several: their names, or the first of them.
    Several(Vec<String>),
    /// The API server does not serve its kind; its words.
    Unserved(String),
    /// The API server refuses it to the owner's service account; its words.
    Refused(String),
    /// The API server did not answer; what it was.
    Unavailable(String),
}
