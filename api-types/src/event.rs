//! Reasons and types of the Kubernetes events that are recorded on owners and blueprints.

use crate::texts::text_enum;

text_enum! {
    /// Whether an event reports progress or a problem; `type` of the Kubernetes event.
    #[derive(PartialOrd, Ord)]
    pub enum EventType {
        /// Something happened that was asked for.
        Normal,
        /// Something needs a look.
        Warning,
    }
}

text_enum! {
    /// Why an event was recorded; `reason` of the Kubernetes event.
    ///
    /// ```
    /// use api_types::event::{EventReason, EventType};
    ///
    /// assert_eq!(EventReason::StampedObjectApplied.as_str(), "StampedObjectApplied");
    /// assert_eq!(EventReason::ResourceFailed.event_type(), EventType::Warning);
    /// ```
    #[derive(PartialOrd, Ord)]
    pub enum EventReason {
        /// An object was created or changed.
        StampedObjectApplied,
        /// An object was deleted: retention or orphan.
        StampedObjectRemoved,
        /// The outputs of a resource (step) or of a Runnable differ from before.
        ResourceOutputChanged,
        /// The `Healthy` status of a resource (step) flipped.
        ResourceHealthyStatusChanged,
        /// A resource (step) could not be realized.
        ResourceFailed,
        /// Fields the kind does not declare, or repeated list keys, were left out so that the apply could succeed.
        FieldsDropped,
        /// A blueprint has a self reference, a cycle or an input nobody provides.
        BlueprintProblem,
        /// An object belongs to another owner or resource (step) and was not written.
        ObjectContested,
        /// An object that somebody else made was taken over, as its annotation or the template allows.
        ObjectAdopted,
        /// An object that is no longer wanted could not be deleted yet.
        DeletionFailed,
        /// A kind cannot be watched; its objects are read with the owner's rights now and then.
        WatchForbidden,
        /// A revision was put into an environment that is going to be validated.
        RevisionDeployed,
        /// A validation of a deployed revision succeeded.
        ValidationSucceeded,
        /// A validation of a deployed revision failed; the revision is not promoted.
        ValidationFailed,
        /// A validation of a deployed revision did not end in time; the environment is free for the next revision.
        ValidationTimedOut,
        /// An update did not end in time; a newer one takes its place.
        UpdateTimedOut,
        /// Somebody else wrote on the object of an environment what is said to be in it.
        RecordDisregarded,
        /// Our own status write changes the rendering again and again; writing is slowed down.
        RenderingUnstable,
        /// The status of a PodIntent was written.
        StatusUpdated,
        /// The API server refused the status of a PodIntent.
        StatusUpdateFailed,
        /// A PodIntent went on without a convention that failed, as the convention allows.
        ConventionIgnored,
        /// A convention answers the same template with another one each time.
        ConventionUnstable,
        /// A pod has something else already where a PodPreset would put something. The word is that of the design of pod
        /// presets.
        PresetConflict = "conflict",
        /// An owner was restarted because its pods had older versions of their presets.
        PresetRestart = "PresetsRestarted",
    }
}

impl EventReason {
    /// The type that goes with the reason. The first four are those of the Go controller of owners,
    /// which knew no warnings; `StatusUpdated` and `StatusUpdateFailed` those of its controller of
    /// conventions.
    pub fn event_type(self) -> EventType {
        match self {
            Self::StampedObjectApplied
            | Self::StampedObjectRemoved
            | Self::ResourceOutputChanged
            | Self::ResourceHealthyStatusChanged
            | Self::ObjectAdopted
            | Self::RevisionDeployed
            | Self::ValidationSucceeded
            | Self::StatusUpdated
            | Self::PresetRestart => EventType::Normal,
            Self::ResourceFailed
            | Self::FieldsDropped
            | Self::BlueprintProblem
            | Self::ObjectContested
            | Self::DeletionFailed
            | Self::WatchForbidden
            | Self::ValidationFailed
            | Self::ValidationTimedOut
            | Self::UpdateTimedOut
            | Self::RecordDisregarded
            | Self::RenderingUnstable
            | Self::StatusUpdateFailed
            | Self::ConventionIgnored
            | Self::ConventionUnstable
            | Self::PresetConflict => EventType::Warning,
        }
    }
}
