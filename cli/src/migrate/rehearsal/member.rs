//! A member of an immutable family.

use realizer::{KnownRun, Observed, Submission};
use serde_json::Value;
use submission::{Annotations, OwnedValues, State};

use super::{seen, text};
use crate::migrate::world::Served;

/// A member of a family.
pub(super) struct Member {
    pub(super) object: Value,
    pub(super) known: Option<KnownRun>,
}

impl Member {
    pub(super) fn annotations(&self) -> Annotations {
        Annotations::of(&self.object["metadata"])
    }

    pub(super) fn created(&self) -> &str {
        text(&self.object, "creationTimestamp")
    }

    pub(super) fn is_live(&self) -> bool {
        !self.object["metadata"]["deletionTimestamp"].is_string()
    }

    pub(super) fn was_submitted(&self, submission: &Submission) -> bool {
        self.known.as_ref().is_some_and(|known| {
            known.sequence == submission.recorded.position.sequence
                && known.digest.as_deref() == Some(&*submission.digest)
        })
    }

    pub(super) fn observed(&self, served: &Served, field_manager: &str) -> Observed {
        let mut observed = seen(self.object.clone(), served);
        observed.is_known = false;
        if let Some(known) = &self.known {
            observed.is_known = true;
            observed.sequence = known.sequence;
            observed.digest.clone_from(&known.digest);
            observed.state.clone_from(&known.state);
            observed.unchanged = is_unchanged(&self.object, known, field_manager);
        }
        observed
    }
}

fn is_unchanged(object: &Value, known: &KnownRun, field_manager: &str) -> bool {
    let (Some(digest), Some(state)) = (&known.digest, &known.state) else {
        return object["metadata"]["generation"] == 1;
    };
    let values = OwnedValues::held_by(object, field_manager);
    let values = values.or_else(|| OwnedValues::created_by(object, field_manager));
    values.is_some_and(|values| State::of(digest, values).to_string() == **state)
}
