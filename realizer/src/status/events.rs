//! Events about an owner (docs/behaviour/events.md#events).

use api_types::event::{EventReason, EventType};

use crate::{ObjectRef, OwnerEvent};

/// An event about a write: it goes out at once.
pub(crate) fn applied(message: String) -> OwnerEvent {
    OwnerEvent {
        immediate: true,
        ..of_status(EventReason::StampedObjectApplied, message)
    }
}

/// An event about a deletion: it goes out at once.
pub(crate) fn removed(message: String) -> OwnerEvent {
    OwnerEvent {
        immediate: true,
        ..of_status(EventReason::StampedObjectRemoved, message)
    }
}

/// An event about what status tells: it goes out with the status.
pub(crate) fn of_status(reason: EventReason, message: String) -> OwnerEvent {
    OwnerEvent {
        warning: reason.event_type() == EventType::Warning,
        reason: reason.as_str().to_owned(),
        message,
        immediate: false,
    }
}

/// `<plural>.<group>/<name>`; `None` when the plural is unknown, and then there is no event, as upstream.
pub(crate) fn shown(object: &ObjectRef) -> Option<String> {
    let resource = object.qualified_resource.as_ref()?;
    Some(format!("{resource}/{}", object.name))
}
