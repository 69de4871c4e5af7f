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
    /// How much of it is asked for.
    pub needed: Needed,
}

/// How much of an object is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// Nothing: as the stamped object is, it decides nothing. But its changes are told, as it will. The reply is
    /// [`Unread::Unneeded`].
    Nothing,
    /// In which version it is there, if nobody has to be asked for that: [`FoundObject::version`].
    Version,
    /// What it holds.
    Value,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundObject {
    /// What it holds, if that was asked for.
    pub object: Result<Arc<Value>, Unread>,
    /// In which version it is there, or that it is not, and for whom that was found out: a text that is the same as long as
    /// the owner's account is, the same objects match the query, and none of them changes. Of what was read it is the version
    /// that was read. None if it is not known.
    pub version: Option<String>,
}

impl From<Result<Arc<Value>, Unread>> for FoundObject {
    /// Nothing is known of its version.
    fn from(object: Result<Arc<Value>, Unread>) -> Self {
        Self {
            object,
            version: None,
        }
    }
}

/// Why an object is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unread {
    /// It was not asked for: see [`Needed`].
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
