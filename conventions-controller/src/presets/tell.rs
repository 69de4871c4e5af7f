//! Events of conflicts: on the preset, on the controller of the pod, and on the pod if it has a
//! name yet.
//!
//! They go onto the lane of all events: it never waits, and drops what is too much.

use std::collections::BTreeSet;
use std::sync::Arc;

use api_types::EventReason;
use controller_kit::events::{EventRecorder, InvolvedObject};
use controller_kit::webhook::Review;

use super::admit::Done;
use super::entries::PresetEntry;
use super::kinds::watched;
use super::subject::Subject;

/// How many different conflicts of one pod are told.
const MOST: usize = 5;

/// Tells of conflicts.
pub(super) struct Teller(pub(super) EventRecorder);

impl Teller {
    /// Of those that kept something from being injected. What a preset was told to keep or to
    /// override is no news.
    pub(super) fn tell_conflicts(&self, review: &Review, done: &Done) {
        let mut told = BTreeSet::new();
        let all = done.conflicts();
        for (entry, conflict) in all.filter(|(_, it)| it.settled.is_blocking()) {
            if told.len() == MOST {
                return;
            }
            let message = conflict.message();
            if told.insert((&conflict.preset, message.clone())) {
                self.tell(review, entry, &message);
            }
        }
    }

    fn tell(&self, review: &Review, entry: &Arc<PresetEntry>, message: &str) {
        let Ok(preset) = &entry.compiled else { return };
        let id = preset.id();
        let kind = watched(id.origin);
        let of_preset = InvolvedObject::of(kind, &id.namespace, &id.name, &entry.uid);
        let reporter = id.reporter();
        let reason = EventReason::PresetConflict.as_str();
        for object in Subject::of(review).objects().chain([of_preset]) {
            let events = &self.0;
            events.record_warning_of(&reporter, object, reason, message);
        }
    }
}
