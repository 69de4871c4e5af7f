//! What the cluster holds, and what was done to make it hold that.

use serde_json::Value;

/// What came of [`Ask::Look`](super::Ask::Look): the mutable object if it is there, or all members of an immutable family in ascending
/// order of [`Observed::order_key`].
pub type Looked = Result<Vec<Observed>, SubmitFailure>;

/// A stamped object as the cluster holds it, projected to what the engine reads.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "five facts about an object that have nothing to do with one another"
)]
pub struct Observed {
    /// `apiVersion`, `kind`, `metadata` (at least name, namespace, uid, generation, creationTimestamp,
    /// labels) and every path that templates read.
    pub object: Value,
    /// `<plural>` of the core group, else `<plural>.<group>`; `None` when the mapping is unknown.
    pub qualified_resource: Option<String>,
    /// Whether the kind is namespaced.
    pub namespaced: bool,
    /// Position in its family; 0 for mutable objects and for objects that are not known ([`Self::is_known`]).
    pub sequence: u64,
    /// Whether it is known that a walk made this object: by the owner's status, by a request of this process, or because the
    /// rendering's values are in it. Of an object that is not known, nothing that it says of itself is believed.
    pub is_known: bool,
    /// The digest of the rendering that was submitted last, if it is known and, for a mutable object, nobody changed a value
    /// of it since.
    pub digest: Option<String>,
    /// Whether the object holds the values of that rendering still. Of an immutable object nothing else says so: that kinds of
    /// runs cannot be changed is no rule.
    pub unchanged: bool,
    /// What the owner's status is to say of an object as we left it: [`AppliedObject::state`](api_types::AppliedObject::state)
    /// or [`StampedRun::state`](api_types::StampedRun::state).
    pub state: Option<String>,
    /// Digest of the values that are in the fields that are ours; of a mutable object only.
    pub values: Option<String>,
    /// Whether this process knows that these are the values that its last apply left there, of whatever rendering. Status may
    /// not tell of it yet.
    pub is_as_left: bool,
    /// What it holds beside what was rendered; only where something of that is asked for.
    pub beside: Option<Beside>,
    /// resourceVersion, for [`Submission::precondition`](super::Submission::precondition); 0 when it is not known.
    pub version: u64,
    /// Whether the object is being deleted, or was.
    pub terminating: bool,
    /// Whether the object was deleted, and this is the last that was seen of it.
    pub is_gone: bool,
}

/// The values of an object beside those that were rendered, its metadata and status aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// A digest of each with its place.
    pub values: Vec<String>,
    /// The fields that others have set, as managed fields tell them. Whoever may edit the object may hide them.
    pub named: Vec<String>,
    /// Those that the API server itself puts there, and not others; or why that is not known. Absent where
    /// [`Submission::refuses_foreign_fields`](super::Submission::refuses_foreign_fields) does not ask for it.
    pub expected: Option<Result<Vec<String>, String>>,
}

impl Beside {
    /// Of an object into which nobody but the API server puts anything.
    ///
    /// ```
    /// use realizer::Beside;
    ///
    /// let defaulted = Beside::expected(vec!["d41d8cd98f00b204".to_owned()]);
    /// assert!(defaulted.are_all_in(&["d41d8cd98f00b204".to_owned()]));
    /// assert!(!defaulted.are_all_in(&[]));
    /// ```
    pub fn expected(values: Vec<String>) -> Self {
        Self {
            expected: Some(Ok(values.clone())),
            values,
            named: Vec::new(),
        }
    }

    /// Whether nothing else is beside the rendering.
    pub fn are_all_in(&self, expected: &[String]) -> bool {
        self.values.iter().all(|value| expected.contains(value))
    }
}

/// What the shell did to make the cluster hold the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// It was there as rendered: no request was sent.
    Unchanged,
    /// It was created.
    Created,
    /// It was changed.
    Patched,
    /// Another writer undoes what is rendered, again and again. It is answered ever less often; whatever this answer was,
    /// the object will hardly stay so.
    Undone(Answer),
    /// It is not there as rendered, and no request was sent, because it is too early for one: somebody has just undone it, or
    /// nothing but our own status writes made the rendering another one, again and again. Status does not tell of it, or that
    /// would be one more of those writes.
    Deferred,
}

/// What was done about a writer that undoes what is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Nothing: the next answer is not due yet, or nobody has come since the last one.
    None,
    /// The object was created anew.
    Created,
    /// It was changed back.
    Patched,
}

/// What came of a [`Submission`](super::Submission).
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// A mutable object.
    Object {
        /// What the cluster holds now.
        observed: Observed,
        /// What was done.
        write: Write,
    },
    /// An immutable object and its family.
    Family {
        /// The member that equals the rendering (newest submission).
        submitted: Observed,
        /// All members, the submitted one included, in ascending order of [`Observed::order_key`].
        members: Vec<Observed>,
        /// What was done.
        write: Write,
    },
    /// It could not be done.
    Failed(SubmitFailure),
}

/// Why a submission failed; the texts are upstream's inner errors, without the resource and blueprint.
#[derive(Debug, Clone, PartialEq)]
pub struct SubmitFailure {
    /// Which stage and who has to act.
    pub kind: SubmitFailureKind,
    /// Inner error, for example `create: configmaps "x" is forbidden: …`.
    pub message: String,
}

/// The stage that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SubmitFailureKind {
    /// The API server answered 403 (RBAC, quota or admission): retried slowly and when rights change.
    Forbidden,
    /// The API server refused the object for good (422, 400, unknown kind …): retried with back-off.
    Rejected,
    /// The API server was asked too much (429), could not (503, 504), or did not answer. Nobody has to mend anything in what
    /// was rendered; retried no earlier than the server asks.
    Unavailable,
    /// Siblings of an immutable object could not be listed or watched.
    List,
    /// The live object belongs to another live owner or step; it was not written.
    Contested,
    /// The rendering is larger than what is sent; it was not sent.
    TooLarge,
    /// Too many objects were created for this step within a minute; it was not sent, and is later.
    TooOften,
    /// The API server answers with more than what is read: of an object, or of all members of a family. It is looked at slowly.
    AnswerTooLarge,
    /// The live object is not the one of [`Submission::precondition`](super::Submission::precondition); it was not written. What it is now is found by the
    /// next [`Ask::Look`](super::Ask::Look).
    Stale,
}
