//! What follows from a walk: deletions, events, the status, and when to walk again.

use std::collections::BTreeSet;

use api_types::names::ResourceName;
use serde_json::Value;

use super::{SubmitFailure, SubmitFailureKind};

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
    /// No step of the blueprint stands for it any more (docs/behaviour/deletion.md#orphans).
    Orphan,
    /// The family keeps fewer members (docs/behaviour/objects.md#immutable).
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

/// What the shell met with while it did what a walk asked for; the report tells of it, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellFacts {
    /// Kinds whose objects cannot be watched: one text each that names the kind and what is missing.
    pub unwatched: BTreeSet<String>,
    /// What was to be deleted and was gone already, or on its way out: no deletion is told of it.
    pub absent: Vec<Removal>,
    /// Names of Artifacts that were to be written and are not there.
    pub unkept: BTreeSet<String>,
}

/// When the owner is to be looked at again without an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Retry {
    /// Not at all: a change of an object that is watched wakes it.
    AwaitChange,
    /// Slowly (within 60 s): nothing that is watched tells when it would go, such as a right or a quota.
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
    /// Text as in docs/behaviour/events.md#events.
    pub message: String,
    /// Whether it tells of a request that was sent; the others tell of the status and go out with its write.
    pub immediate: bool,
}

/// Who has to act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The user: the same input will fail again.
    UserMustFix,
    /// Nobody: something has to happen first. No Warning is sent. Unless its verdict says `slowly`, it is not tried again
    /// before a watched object changes.
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
    /// Whether it differs from the owner's present status (transition times follow
    /// docs/behaviour/status.md#ready).
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
    /// Whether this status, once it is written, tells of every output that was handed on, so that the next walk need not be
    /// one [with a status that may be behind](super::super::Realization::with_status_behind). Only of owners with a template that
    /// says when its outputs are good.
    pub tells_all: bool,
    /// Names of Artifacts of the owner that are to be deleted, with the controller's own rights, once the status is written.
    pub obsolete_artifacts: Vec<String>,
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
