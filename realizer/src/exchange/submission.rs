//! An object that the cluster is to hold.

use std::collections::BTreeMap;

use api_types::names::{LabelValue, ResourceName};
use api_types::{AppliedObject, Lifecycle};
use serde_json::Value;

/// The labels of a stamped object, by key.
pub type Labels = BTreeMap<&'static str, LabelValue>;

/// One object to be held by the cluster, completely decorated (namespace, owner reference, labels).
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    /// Name of the blueprint resource (step).
    pub resource: ResourceName,
    /// The rendered object; has `apiVersion` and `kind`, and `metadata.name` or `metadata.generateName`.
    pub object: Value,
    /// `sha256:` digest of [`Self::object`] in canonical JSON.
    pub digest: String,
    /// What the name of an immutable object is derived from in place of the digest: with a value of a Secret in the object, the
    /// digest would confirm a guess to whoever reads the name.
    pub name_seed: Option<String>,
    /// All that the object was rendered from except what our own status writes change, as a digest; `None` when the
    /// template reads nothing of that. Another rendering on the same basis comes from a status of ours.
    pub basis: Option<String>,
    /// How to hold it.
    pub lifecycle: Lifecycle,
    /// The labels that make up the family of an immutable object (all step labels of
    /// docs/behaviour/stamping.md#labels).
    pub family: Labels,
    /// The leading field names of every path that will be read on the object
    /// (`Template::reads`); an empty one means all of it.
    pub reads: std::sync::Arc<[Vec<String>]>,
    /// What must be there for a mutable object to be written.
    pub precondition: Precondition,
    /// What the owner's status says of the object.
    pub recorded: Recorded,
    /// Whether an object that somebody else made may be taken over.
    pub adopt: bool,
    /// Whether nothing is read while others have set fields that are not rendered: [`Beside::expected`](super::Beside::expected)
    /// is wanted.
    pub refuses_foreign_fields: bool,
    /// Whether a look has to tell whether what it finds holds the values of this rendering, though nothing that is remembered
    /// says so: then the digest of what is found is that of the rendering
    /// ([`Observed::digest`](super::Observed::digest)). Of a mutable object only.
    pub asks_whose_values: bool,
}

/// What the owner's status says of the object, or of the family, that a submission is for. Nobody but the controllers
/// writes that status, so this decides where the object itself, which more people may edit, says something else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The mutable object as it was when it was last applied.
    pub applied: Option<AppliedObject>,
    /// The objects of the family that are known, in no particular order.
    pub runs: std::sync::Arc<[KnownRun]>,
    /// Where the object that is to be there stands in its family. One that is to be created gets this position.
    pub position: Position,
}

/// Where an object stands in its family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Its number; the highest is the newest.
    pub sequence: u64,
    /// Whether the last look showed the object. If it is gone since, it is not made again before it has been decided anew.
    pub is_there: bool,
}

impl Position {
    /// Of an object that is not there yet.
    pub fn to_be_made(sequence: u64) -> Self {
        Self {
            sequence,
            is_there: false,
        }
    }
}

/// An object of an immutable family, as the owner's status knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRun {
    /// Its uid. A status written by an earlier version has none; then name and creation time tell.
    pub uid: Option<String>,
    /// Its name.
    pub name: String,
    /// Its creation time, as the API server writes it.
    pub started: Option<String>,
    /// Digest of its rendering, if it is known.
    pub digest: Option<String>,
    /// Its position; the highest is the newest.
    pub sequence: u64,
    /// What it held when it was made, as [`StampedRun::state`](api_types::StampedRun::state).
    pub state: Option<String>,
    /// What it held beside the rendering then, as [`StampedRun::beside`](api_types::StampedRun::beside).
    pub beside: Option<Vec<String>>,
}

/// What a write is bound to, when the decision to write depends on what is there; a writer that acts on older knowledge is
/// refused by the API server ([`SubmitFailureKind::Stale`](super::SubmitFailureKind::Stale)). A further write of the same submission is bound to the one
/// before it, then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    #[default]
    None,
    /// There is no such object.
    Absent,
    /// The object has this resourceVersion.
    Version(u64),
}
