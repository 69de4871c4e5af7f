//! The members of an immutable family, and what is known of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use api_types::labels;
use realizer::{KnownRun, Labels, Observed, Submission};

use crate::mapper::Served;
use crate::stamped::{KnownAs, Stamped};

/// A member of a family.
pub(super) struct Member {
    pub(super) object: Arc<Stamped>,
    /// What is known of it; `None` when it only says that it is one.
    pub(super) known: Option<KnownAs>,
    /// Whether it was deleted, and this is the last that was seen of it.
    is_gone: bool,
}

impl Member {
    pub(super) fn of(object: Arc<Stamped>, told: &[KnownRun], is_gone: bool) -> Self {
        let known = known_as(&object, told);
        Self {
            object,
            known,
            is_gone,
        }
    }

    pub(super) fn is_live(&self) -> bool {
        !self.is_gone && !self.object.terminating
    }

    /// Whether it is the object that is to be there.
    pub(super) fn is_submitted(&self, submission: &Submission) -> bool {
        self.is_live() && self.was_submitted(submission)
    }

    /// Whether it is, or was before it was deleted, the object that is to be there.
    pub(super) fn was_submitted(&self, submission: &Submission) -> bool {
        self.known.as_ref().is_some_and(|known| {
            known.sequence == submission.told.position.sequence
                && known.digest.as_deref() == Some(&submission.digest)
        })
    }

    /// What it is ordered by among those of which nothing is known: what it says of itself, then its age.
    pub(super) fn claimed_age(&self) -> (u64, i64, String) {
        let claims = &self.object.claims;
        (
            claims.sequence,
            claims.owner_generation,
            created_at(&self.object),
        )
    }

    pub(super) fn observed(&self, served: &Served) -> Observed {
        let mut observed = self.object.observed(served);
        observed.is_gone = self.is_gone;
        observed.terminating |= self.is_gone;
        if let Some(known) = &self.known {
            observed.is_known = true;
            observed.sequence = known.sequence;
            observed.digest = known.digest.as_deref().map(str::to_owned);
        }
        observed
    }
}

/// What this process or status knows of an object.
fn known_as(object: &Stamped, told: &[KnownRun]) -> Option<KnownAs> {
    if let Some(known) = &object.memory.run {
        return Some((**known).clone());
    }
    let created = || created_at(object);
    let told = told.iter().find(|run| match &run.uid {
        Some(uid) => **uid == *object.uid,
        // Two objects of one name are not created in the same second by chance, and the time is the API server's.
        None => *run.name == *object.key.name && run.started == Some(created()),
    })?;
    Some(KnownAs {
        digest: told.digest.as_deref().map(Box::from),
        sequence: told.sequence,
    })
}

/// Whether an object has the labels of the family.
pub(super) fn is_member(held: &BTreeMap<String, String>, family: &Labels) -> bool {
    family.iter().all(|(key, value)| match held.get(*key) {
        Some(present) => {
            *value == **present || (*key == labels::CLUSTER_TEMPLATE_NAME && present.is_empty())
        }
        None => false,
    })
}

fn created_at(member: &Stamped) -> String {
    member.content()["metadata"]["creationTimestamp"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}
