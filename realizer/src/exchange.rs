//! What passes between the engine and the shell around it.
//!
//! The engine asks ([`Ask`]), the shell does and feeds back ([`Rendered`], [`Observation`]), and at the
//! end the engine says what follows ([`Outcome`]). Everything here is a plain value.
//!
//! ```text
//!             next()                       record_*()
//! engine ───────────────▶ shell ─▶ cluster ───────────────▶ engine ─▶ conclude() ─▶ report() ─▶ Outcome
//! ```

use std::collections::BTreeMap;

use api_types::AppliedObject;
use api_types::names::{LabelValue, ResourceName};
use serde_json::Value;

pub use api_types::Lifecycle;

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
    /// The labels that make up the family of an immutable object (all step labels of spec 3.6).
    pub family: Labels,
    /// The leading field names of every path that will be read on the object
    /// (`Template::observed_prefixes`); an empty one means all of it.
    pub reads: std::sync::Arc<[Vec<String>]>,
    /// What must be there for a mutable object to be written.
    pub precondition: Precondition,
    /// What the owner's status says of the object.
    pub told: Told,
    /// Whether an object that somebody else made may be taken over.
    pub adopt: bool,
}

/// What the owner's status says of the object, or of the family, that a submission is for. Nobody but the controllers
/// writes that status, so this decides where the object itself, which more people may edit, says something else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Told {
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
}

/// What a write is bound to, when the decision to write depends on what is there; a writer that acts on older knowledge is
/// refused by the API server ([`SubmitFailureKind::Stale`]). A further write of the same submission is bound to the one
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

/// What came of [`Ask::Look`]: the mutable object if it is there, or all members of an immutable family in ascending
/// order of [`Observed::order_key`].
pub type Looked = Result<Vec<Observed>, SubmitFailure>;

/// A stamped object as the cluster holds it, projected to what the engine reads.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four facts about an object that have nothing to do with one another"
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
    /// What the owner's status is to say of a mutable object that was applied, as [`AppliedObject::state`].
    pub state: Option<String>,
    /// resourceVersion, for [`Submission::precondition`]; 0 when it is not known.
    pub version: u64,
    /// Whether the object is being deleted, or was.
    pub terminating: bool,
    /// Whether the object was deleted, and this is the last that was seen of it.
    pub is_gone: bool,
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

/// What came of a [`Submission`].
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
    /// The live object is not the one of [`Submission::precondition`]; it was not written. What it is now is found by the
    /// next [`Ask::Look`].
    Stale,
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

/// Reference to a stamped object, as in `status.resources[].stampedRef`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectRef {
    /// Group and version.
    pub api_version: String,
    /// Kind.
    pub kind: String,
    /// Namespace, empty for cluster-scoped kinds.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// `<plural>[.<group>]` if known.
    pub qualified_resource: Option<String>,
    /// Set when the uid is known: the deletion's precondition.
    pub uid: Option<String>,
}

/// See [`ObjectRef::identity`].
pub(crate) type ObjectIdentity<'o> = (&'o str, &'o str, &'o str, &'o str);

impl ObjectRef {
    /// Whether both mean one object. The version does not count: a template that moves from `v1beta1` to `v1` still stamps the
    /// same object, which the Go controller deletes.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }

    /// Group, kind, namespace and name, by which one object is told from all others.
    pub(crate) fn identity(&self) -> ObjectIdentity<'_> {
        let split = self.api_version.split_once('/');
        let group = split.map_or("", |(group, _)| group);
        (group, &self.kind, &self.namespace, &self.name)
    }
}

/// Why an object is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemovalReason {
    /// No step of the blueprint stands for it any more (spec 3.13).
    Orphan,
    /// The family keeps fewer members (spec 3.8).
    Retention,
    /// A run of other inputs takes its place.
    Replaced,
}

/// An object that is to be deleted with the owner's rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// The step it belonged to.
    pub resource: ResourceName,
    /// Which object.
    pub object: ObjectRef,
    /// Why.
    pub reason: RemovalReason,
}

/// A deletion that did not come about, and why: [`SubmitFailureKind::Unavailable`] where the machine was in the way, else
/// something that a user can mend, such as a right.
pub type FailedRemoval = (Removal, SubmitFailure);

/// When the owner is to be looked at again without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// Not at all: the next event wakes it.
    AwaitChange,
    /// Slowly (within 60 s): a right is missing.
    Slow,
    /// With exponential back-off.
    Backoff,
}

/// An event about the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerEvent {
    /// `Warning` instead of `Normal`.
    pub warning: bool,
    /// CamelCase reason, for example `StampedObjectApplied`.
    pub reason: String,
    /// Text as in spec 8.1.
    pub message: String,
    /// Whether it tells of a request that was sent; the others tell of the status and go out with its write.
    pub immediate: bool,
}

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The user: the same input will fail again.
    UserMustFix,
    /// Nobody: something has to happen first, and an event will tell.
    NotYet,
    /// Nobody: it is tried again.
    Infrastructure,
}

impl ErrorKind {
    /// A deletion that the machine does not prevent, and that fails all the same, lacks a right.
    pub(crate) fn of_deletion(failure: SubmitFailureKind) -> Self {
        if failure == SubmitFailureKind::Unavailable {
            Self::Infrastructure
        } else {
            Self::UserMustFix
        }
    }
}

/// How a realization ended, in one word for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Everything is as wanted.
    Settled,
    /// Something has to happen first, and an event will tell.
    Waiting,
    /// All was submitted, and an object says that it failed.
    Unhealthy,
    /// Somebody has to mend something.
    UserError,
    /// It is tried again.
    Infrastructure,
}

impl Ended {
    /// The label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Waiting => "waiting",
            Self::Unhealthy => "unhealthy",
            Self::UserError => "user_error",
            Self::Infrastructure => "infrastructure",
        }
    }

    /// By what hinders most, and without any hindrance by what Ready says.
    pub(crate) fn of(
        hindrances: impl IntoIterator<Item = ErrorKind>,
        ready: api_types::ConditionStatus,
    ) -> Self {
        let mut end = match ready {
            api_types::ConditionStatus::True => Self::Settled,
            api_types::ConditionStatus::Unknown => Self::Waiting,
            api_types::ConditionStatus::False => Self::Unhealthy,
        };
        for hindrance in hindrances {
            end = match (hindrance, end) {
                (ErrorKind::Infrastructure, _) | (_, Self::Infrastructure) => Self::Infrastructure,
                (ErrorKind::UserMustFix, _) | (_, Self::UserError) => Self::UserError,
                // What an object says is unhealthy may be what is waited for.
                (ErrorKind::NotYet, Self::Settled | Self::Waiting | Self::Unhealthy) => {
                    Self::Waiting
                }
            };
        }
        end
    }
}

/// What follows from one realization.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Outcome {
    /// The complete new `status` of the owner, as JSON.
    pub status: Value,
    /// Whether it differs from the owner's present status (transition times follow spec 4.2).
    pub changed: bool,
    /// Events, in order.
    pub events: Vec<OwnerEvent>,
    /// Objects to delete.
    pub removals: Vec<Removal>,
    /// The most urgent retry that any step asks for.
    pub retry: Retry,
    /// When the owner is to be walked again at the latest, whatever `retry` says, since no event may come: when a validation
    /// has to have ended; at once, when what follows had to be written to the status first.
    pub again: Option<std::time::Duration>,
    /// The status must not be held back: what follows waits for it.
    pub write_now: bool,
    /// A field of the status that must still be as it was reconciled when this one is written: what follows was decided by
    /// it, and whoever has an older one must not undo it.
    pub unless_changed: Option<&'static str>,
    /// Status of `Ready`.
    pub ready: api_types::ConditionStatus,
    /// Finite label for metrics: the reason of the `Ready` condition.
    pub reason: String,
    /// How it ended, for metrics.
    pub end: Ended,
}

#[cfg(test)]
mod tests {
    use api_types::ConditionStatus::{False, True, Unknown};

    use super::*;

    #[test]
    fn what_hinders_most_is_how_it_ended() {
        use ErrorKind::{Infrastructure, NotYet, UserMustFix};
        for (hindrances, ready, expected) in [
            (&[][..], True, "settled"),
            (&[], Unknown, "waiting"),
            (&[], False, "unhealthy"),
            (&[NotYet], Unknown, "waiting"),
            // An input that is awaited makes Ready False where a template cannot be rendered without it.
            (&[NotYet], False, "waiting"),
            (&[NotYet, UserMustFix, NotYet], False, "user_error"),
            (&[UserMustFix, Infrastructure], False, "infrastructure"),
            (&[Infrastructure, UserMustFix], False, "infrastructure"),
            (&[UserMustFix], True, "user_error"),
        ] {
            let ended = Ended::of(hindrances.iter().copied(), ready);
            assert_eq!(ended.as_str(), expected, "{hindrances:?} {ready}");
        }
    }
}
