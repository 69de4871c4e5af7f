//! What the engine asks, and the trait of a machine that asks.

use std::collections::BTreeMap;

use api_types::names::ResourceName;
use serde_json::Value;

use super::{FoundObject, Looked, ObjectQuery, Observation, Submission};

/// What the engine needs next. Exactly one is outstanding at any time: the objects of one owner are
/// submitted one after the other, because one may stamp what the next one's object uses.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Ask {
    /// Run ytt and feed the first document back with `record_rendered`.
    Render(YttCall),
    /// Say what the cluster holds in the place of this object, and feed it back with `record_looked`. Nothing is written:
    /// whether and how the object is submitted is decided by what is there.
    Look(Submission),
    /// Make the cluster hold this object and feed back what it holds with `record_observed`.
    Submit(Submission),
    /// Read an object that a rule of the template asks for beside the stamped one, with the owner's rights, and feed it back
    /// with `record_read`. It is asked for after the stamped object, so that it is not older.
    Read(ObjectQuery),
    /// Nothing more to do: call `conclude`.
    Done,
}

/// A machine that asks for one thing after another and is answered; see [`Ask`] for which answer belongs to which
/// question. An answer to a question that was not asked changes nothing.
pub trait AskFeed {
    /// What is needed next. Asked again without an answer in between, it says the same again.
    fn next(&mut self) -> Ask;
    /// Answers [`Ask::Render`].
    fn record_rendered(&mut self, rendered: Rendered);
    /// Answers [`Ask::Look`].
    fn record_looked(&mut self, looked: Looked);
    /// Answers [`Ask::Submit`].
    fn record_observed(&mut self, observation: Observation);
    /// Answers [`Ask::Read`].
    fn record_read(&mut self, found: FoundObject);
}

/// A ytt run described as data; executing the process is the shell's part.
#[derive(Debug, Clone, PartialEq)]
pub struct YttCall {
    /// Name of the blueprint resource (step) that renders.
    pub resource: ResourceName,
    /// The template text, passed on stdin.
    pub template: String,
    /// Digest of the template's text, for the shell's cache.
    pub template_digest: String,
    /// The data values, one top-level key each.
    pub values: BTreeMap<String, Value>,
    /// Digest of the values without what our own status writes change (resourceVersion, managedFields
    /// and status of the owner), unless the template mentions those.
    pub values_digest: String,
}

/// The reply to [`Ask::Render`].
pub type Rendered = Result<Value, RenderFailure>;

/// Why there is no rendering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderFailure {
    /// Upstream's inner error, for example `unable to apply ytt template: …`.
    pub message: String,
    /// Whether the same rendering may succeed the next time though nobody changed anything: no room for a file, no process,
    /// no time on a busy machine. What the template itself made wrong stays wrong until somebody edits it.
    pub passes_by_itself: bool,
}

impl From<String> for RenderFailure {
    /// A failure that somebody has to mend.
    fn from(message: String) -> Self {
        Self {
            message,
            passes_by_itself: false,
        }
    }
}
