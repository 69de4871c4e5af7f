//! Reasons of conditions.

use std::borrow::Cow;
use std::fmt;

use crate::texts::text_of;

/// Defines the reasons, and what follows from them: [`Reason::NAMED`] and the texts. The text of a reason is its name, or
/// what is given behind it.
macro_rules! reasons {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $($(#[$of_reason:meta])* $reason:ident $(= $text:literal)?,)+
        }
    ) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$of_reason])* $reason,)+
            /// `<T>Condition`: the condition of this type on the stamped object decided. Holds the sanitised type; see
            /// [`Reason::condition`].
            Condition(String),
            /// Copied from another object's condition, sanitised; see [`Reason::copied`].
            Copied(String),
        }

        impl $name {
            /// Every reason without a user's text in it.
            pub const NAMED: &'static [Self] = &[$(Self::$reason),+];

            /// The text of `reason`.
            pub fn as_str(&self) -> Cow<'_, str> {
                match self {
                    Self::Condition(type_) => Cow::Owned(format!("{type_}{CONDITION_SUFFIX}")),
                    Self::Copied(reason) => Cow::Borrowed(reason),
                    $(Self::$reason => Cow::Borrowed(text_of!($reason $($text)?)),)+
                }
            }
        }
    };
}

reasons! {
    /// Why a condition has its status.
    ///
    /// ```
    /// use api_types::Reason;
    ///
    /// assert_eq!(Reason::MissingValueAtPath.as_str(), "MissingValueAtPath");
    /// assert_eq!(Reason::condition("Succeeded").as_str(), "SucceededCondition");
    /// assert_eq!(Reason::condition("example.com/Ready").as_str(), "example_com_ReadyCondition");
    /// assert_eq!(Reason::copied("").as_str(), "Unknown");
    /// ```
    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    pub enum Reason {
        /// Nothing is wrong.
        Ready,
        /// Nothing is known.
        Unknown,

        // Choosing the blueprint (docs/behaviour/status.md#blueprint-condition).
        /// The Workload has no labels.
        WorkloadLabelsMissing,
        /// The Deliverable has no labels.
        DeliverableLabelsMissing,
        /// No ClusterSupplyChain selects the Workload.
        SupplyChainNotFound,
        /// No ClusterDelivery selects the Deliverable.
        DeliveryNotFound,
        /// Several ClusterSupplyChains select the Workload equally.
        MultipleSupplyChainMatches,
        /// Several ClusterDeliveries select the Deliverable equally.
        MultipleDeliveryMatches,

        // Realizing (docs/behaviour/status.md#submitted).
        /// Everything was submitted.
        ResourceSubmissionComplete,
        /// An input was handed through, or could not be.
        PassThrough,
        /// The ServiceAccount does not exist.
        ServiceAccountError,
        /// No token for the ServiceAccount.
        ServiceAccountTokenError,
        /// No client with the token.
        ResourceRealizerBuilderError,
        /// The template could not be read.
        TemplateObjectRetrievalFailure,
        /// The template could not be rendered.
        TemplateStampFailure,
        /// The API server refused the object.
        TemplateRejectedByAPIServer,
        /// The objects of an immutable family could not be listed.
        FailedToListCreatedObjects,
        /// An output cannot be read (yet).
        MissingValueAtPath,
        /// The deployment is not done (yet).
        ConditionNotMet,
        /// The deployment failed.
        FailedConditionMet,
        /// A template option could not be evaluated.
        ResolveTemplateOptionsError,
        /// Not exactly one template option matches.
        TemplateOptionsMatchError,
        /// Anything else.
        UnknownError,

        // Health (docs/behaviour/health.md#rules).
        /// No rule, and outputs are there.
        OutputsAvailable,
        /// No rule, and outputs are not there.
        OutputNotAvailable,
        /// The rule, or the kind of template, says so.
        AlwaysHealthy,
        /// There is no object to judge.
        NoStampedObject,
        /// A condition of `multiMatch` decided.
        MatchedCondition,
        /// A field of `multiMatch` decided.
        MatchedField,
        /// Nothing of `multiMatch` decided.
        NoMatchesFulfilled,
        /// The owner's health, from that of its steps.
        HealthyConditionRule,

        // Blueprints (docs/behaviour/status.md#blueprint).
        /// Templates a blueprint names do not exist.
        TemplatesNotFound,

        // Runnables (docs/behaviour/runnables.md#conditions).
        /// The ClusterRunTemplate does not exist.
        RunTemplateNotFound,
        /// The API server refused the run.
        StampedObjectRejectedByAPIServer,
        /// An output of the run cannot be read (yet).
        OutputPathNotSatisfied,
        /// No client with the token.
        ClientBuilderError,

        // Ours.
        /// A step is held until its declared inputs are there, and are not known from the status alone.
        InputsNotReady,
        /// The object belongs to another owner or step, or another writer keeps undoing it.
        ObjectContested,
        /// A run waits until another one of the same Runnable has ended or is gone.
        WaitingForRun,
        /// An object that is no longer wanted could not be deleted yet.
        DeletionPending,
        /// No right to watch a stamped kind.
        WatchForbidden,
        /// The API server, or what stands behind it, has not carried out a request for half a minute.
        ApiServerUnavailable = "APIServerUnavailable",
        /// Too many owners in a row were stamped for one another.
        StampedTooDeep,
        /// The owner is larger than what is realized.
        OwnerTooLarge,
        /// The rendering is larger than what is sent.
        RenderingTooLarge,
        /// Too many objects were created for a step within a minute.
        CreatedTooOften,
        /// What the API server answers is larger than what is read.
        AnswerTooLarge,
        /// A validation of the deployed revision has not ended; for a step that is held: it waits for that.
        ValidationRunning,
        /// A validation of the deployed revision failed.
        ValidationFailed,
        /// A validation of the deployed revision did not end in time.
        ValidationTimedOut,
        /// What a template reads can never be read from the object as it is.
        OutputUnreadable,
        /// The object is good for what is rendered now.
        Good,
        /// It is not known yet whether the object is good for what is rendered now.
        Reconciling,
        /// The object says that it failed with what is rendered now.
        Failed,
        /// Something in a blueprint cannot work, whatever the owner.
        BlueprintProblem,
        /// Another writer keeps undoing what a template renders.
        ObjectUndone,
        /// The blueprint is not for owners of this namespace.
        NamespaceNotAllowed,
        /// The blueprint lends a ServiceAccount of another namespace, and the controller takes none.
        LentAccountRefused,
    }
}

impl Reason {
    /// `<T>Condition` for a condition type of a stamped object, made to fit the schema's pattern.
    ///
    /// A type such as `example.com/Ready` gave a reason the schema rejects, and the Go controller retried the status
    /// write for ever (docs/behaviour/health.md#rules).
    pub fn condition(type_: &str) -> Self {
        let room = MAX_REASON_CHARS - CONDITION_SUFFIX.len();
        Self::Condition(sanitised(type_, room, true))
    }

    /// The reason of another object's condition, made to fit the schema's pattern; `Unknown` when nothing is left.
    ///
    /// A blueprint without a `Ready` condition has an empty reason, which the schema rejects
    /// (docs/behaviour/selection.md#blueprint).
    pub fn copied(reason: &str) -> Self {
        match sanitised(reason, MAX_REASON_CHARS, false) {
            reason if reason.is_empty() => Self::Unknown,
            reason => Self::Copied(reason),
        }
    }

    /// The reason that a condition of ours has; a text that is none of ours is a copied one.
    ///
    /// ```
    /// use api_types::Reason;
    ///
    /// assert_eq!(Reason::read("MissingValueAtPath"), Reason::MissingValueAtPath);
    /// assert_eq!(Reason::read("ReadyCondition"), Reason::copied("ReadyCondition"));
    /// ```
    pub fn read(reason: &str) -> Self {
        let ours = Self::NAMED.iter().find(|named| named.as_str() == reason);
        ours.cloned().unwrap_or_else(|| Self::copied(reason))
    }

    /// A label for metrics: the text itself if it is one of ours, `other` if a template, or whoever wrote the status, made
    /// it up.
    ///
    /// ```
    /// use api_types::Reason;
    ///
    /// assert_eq!(Reason::label("ObjectContested"), "ObjectContested");
    /// assert_eq!(Reason::label("ReadyCondition"), "ReadyCondition");
    /// assert_eq!(Reason::label("Type4711Condition"), "other");
    /// ```
    pub fn label(reason: &str) -> &'static str {
        let named = Self::NAMED.iter().filter_map(|named| match named.as_str() {
            Cow::Borrowed(text) => Some(text),
            Cow::Owned(_) => None,
        });
        named
            .chain(COMMON)
            .find(|label| *label == reason)
            .unwrap_or(OTHER)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.as_str())
    }
}

/// Reasons that are copied from conditions that most kinds have.
const COMMON: [&str; 2] = ["ReadyCondition", "SucceededCondition"];

/// What all other reasons are counted as.
const OTHER: &str = "other";

const CONDITION_SUFFIX: &str = "Condition";
const MAX_REASON_CHARS: usize = 1024;

/// Whether the schema accepts the text as a reason: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`, at most 1024.
pub fn is_valid_reason(reason: &str) -> bool {
    reason.len() <= MAX_REASON_CHARS
        && reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && reason.chars().all(fits)
}

fn fits(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | ',' | ':')
}

/// The text with `_` for what the pattern does not allow, from the first letter on, at most `room` long. With
/// `continued`, something that fits follows, so that the last character may be any.
fn sanitised(text: &str, room: usize, continued: bool) -> String {
    let mut clean: String = text
        .chars()
        .skip_while(|c| !c.is_ascii_alphabetic())
        .map(|c| if fits(c) { c } else { '_' })
        .take(room)
        .collect();
    if !continued {
        clean.truncate(clean.trim_end_matches([',', ':']).len());
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_without_a_text_of_a_user_is_its_own_label() {
        assert!(Reason::NAMED.len() > 40);
        for reason in Reason::NAMED {
            let text = reason.as_str();
            assert_eq!(Reason::label(&text), text);
            assert_eq!(Reason::read(&text), *reason);
        }
        for made_up in ["", "ready", "FancyCondition", "ReadyConditionX"] {
            assert_eq!(Reason::label(made_up), OTHER, "{made_up}");
        }
    }
}
