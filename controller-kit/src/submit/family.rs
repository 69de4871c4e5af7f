//! The members of an immutable family, and what is known of each.

use std::sync::Arc;

use api_types::labels;
use realizer::{KnownRun, Observation, Observed, Submission, Write};
use serde_json::Value;
use submission::{State, claimed_age, has_family_labels, known_run};

use super::attempt::Attempt;
use super::failure::{Failure, listing};
use super::select::selector_of;
use super::{Source, Submitted};
use crate::mapper::Served;
use crate::stamped::{KnownAs, Stamped};

/// Of a run that was found. Whoever can create it can put anything into it.
const NOT_SEEN_MADE: &str =
    "nothing tells what it held when it was made; delete it, and it is made again";

/// A member of a family.
pub(super) struct Member {
    pub(super) object: Arc<Stamped>,
    /// What is known of it; `None` when it only says that it is one.
    pub(super) known: Option<KnownAs>,
    /// Whether it was deleted, and this is the last that was seen of it.
    is_gone: bool,
}

impl Member {
    pub(super) fn of(object: Arc<Stamped>, recorded: &[KnownRun], is_gone: bool) -> Self {
        let known = known_as(&object, recorded);
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
            known.sequence == submission.recorded.position.sequence
                && known.digest.as_deref() == Some(&submission.digest)
        })
    }

    /// What it is ordered by among those of which nothing is known: what it says of itself, then its age.
    pub(super) fn claimed_age(&self) -> (u64, i64, String) {
        claimed_age(&self.object.annotations, &created_at(&self.object))
    }

    pub(super) fn created(&self) -> String {
        created_at(&self.object)
    }

    pub(super) fn observed(&self, served: &Served) -> Observed {
        let mut observed = self.object.observed(served);
        observed.is_gone = self.is_gone;
        observed.terminating |= self.is_gone;
        if let Some(known) = &self.known {
            observed.is_known = true;
            observed.sequence = known.sequence;
            observed.digest = known.digest.as_deref().map(str::to_owned);
            observed.unchanged = self.is_unchanged(known, &observed.object);
            // Status forgets what one that was changed held, so that after a restart it is not taken for unchanged.
            let state = known.state.as_deref().filter(|_| observed.unchanged);
            observed.state = state.map(str::to_owned);
        }
        if let Some(beside) = &mut observed.beside {
            let made_with = self.known.as_ref().and_then(|known| known.beside.clone());
            beside.expected = Some(made_with.ok_or_else(|| NOT_SEEN_MADE.to_owned()));
        }
        observed
    }

    /// Whether its values are those that it was made with. Of one that was made before they were remembered, only the API
    /// server's count of changes says so.
    fn is_unchanged(&self, known: &KnownAs, content: &Value) -> bool {
        if self.object.memory.was_changed {
            return false;
        }
        match &known.state {
            Some(state) => state_of(&self.object, known).is_some_and(|now| now == **state),
            None => content["metadata"]["generation"] == 1,
        }
    }
}

/// What it holds now, as status would say it.
pub(super) fn state_of(object: &Stamped, known: &KnownAs) -> Option<String> {
    let digest = known.digest.as_deref()?;
    Some(State::of(digest, object.values?).to_string())
}

/// What this process or status knows of an object.
fn known_as(object: &Stamped, recorded: &[KnownRun]) -> Option<KnownAs> {
    if let Some(known) = &object.memory.run {
        return Some((**known).clone());
    }
    let recorded = known_run(recorded, &object.uid, &object.key.name, &created_at(object))?;
    Some(KnownAs {
        digest: recorded.digest.as_deref().map(Box::from),
        sequence: recorded.sequence,
        state: recorded.state.as_deref().map(Box::from),
        beside: recorded.beside.clone(),
    })
}

fn created_at(member: &Stamped) -> String {
    member.content()["metadata"]["creationTimestamp"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

impl Attempt<'_> {
    /// The objects of the owner, from the watch or, where the kind cannot be watched, from the server.
    pub(super) async fn find(self) -> Result<Vec<Arc<Stamped>>, Failure> {
        let owner = self.applicant;
        match self.source {
            Source::Watch(watch) => Ok(watch.owned_by(&owner.key(), owner.uid)),
            Source::Live(..) => {
                // The template name is left out: the Go controller leaves it empty for options.
                let family = self.submission.family.iter();
                let family = family.filter(|(key, _)| **key != labels::CLUSTER_TEMPLATE_NAME);
                let (client, selector) = (self.client(), selector_of(family));
                let listed = client.list(owner.namespace.as_str(), &selector).await;
                let listed = listed.map_err(listing)?;
                Ok(listed.iter().map(|value| self.recall(value)).collect())
            }
        }
    }

    /// The members of the family: completely owned by this owner, all step labels equal; known ones in order of submission
    /// after all others. Those that are gone are among them as long as what they came to may not have been read.
    pub(super) fn members(self, found: Vec<Arc<Stamped>>) -> Vec<Member> {
        let gone = match self.source {
            Source::Watch(watch) => watch.departed(self.applicant.uid),
            Source::Live(..) => Vec::new(),
        };
        let found = found.into_iter().map(|object| (object, false));
        let all = found.chain(gone.into_iter().map(|object| (object, true)));
        let mut members: Vec<Member> = all
            .filter(|(object, _)| self.is_member(object))
            .map(|(object, is_gone)| Member::of(object, &self.submission.recorded.runs, is_gone))
            .collect();
        members.sort_by_cached_key(|member| {
            let position = member.known.as_ref().map(|known| known.sequence);
            (position, member.claimed_age(), member.object.key.clone())
        });
        members
    }

    /// Whether an object is the owner's, and has the labels of the family.
    pub(super) fn is_member(self, object: &Stamped) -> bool {
        let owner = self.applicant;
        if !object.belongs_to(owner.kind, &owner.key(), owner.uid) {
            return false;
        }
        has_family_labels(&object.labels(), &self.submission.family)
    }

    /// The family, of which this member is the one that is submitted.
    pub(super) fn family(self, submitted: Observed, members: &[Member], write: Write) -> Submitted {
        let served = self.served();
        let observed = members.iter().map(|member| member.observed(served));
        let mut members: Vec<Observed> = observed.collect();
        members.sort_by(|a, b| a.order_key().cmp(&b.order_key()));
        self.submitted(Observation::Family {
            submitted,
            members,
            write,
        })
    }
}
