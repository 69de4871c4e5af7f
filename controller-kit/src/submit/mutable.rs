//! Mutable objects: server-side apply, and only when something is to change.

pub(super) mod beside;
mod write;

use std::sync::Arc;

use api_types::{EventReason, labels};
use realizer::{Answer, Observation, Observed, Write};
use submission::{Holder, State, address};

use super::attempt::Attempt;
use super::conflict_backoff::Rendering;
use super::failure::{Failure, contested, during, rejected};
use super::{Source, Submitted, now};
use crate::stamped::Stamped;

/// Of a mutable object.
impl Attempt<'_> {
    pub(super) async fn submit_mutable(self) -> Result<Submitted, Failure> {
        let submitted = self.hold().await?;
        if self.submission.refuses_foreign_fields {
            return self.expect_beside(submitted).await;
        }
        Ok(submitted)
    }

    /// Makes the cluster hold the object.
    async fn hold(self) -> Result<Submitted, Failure> {
        let held = self.held().await?;
        let mut adopts = false;
        if let Some(held) = &held {
            if self.is_as_rendered(held) {
                self.submitter.requests.avoided();
                return Ok(self.as_rendered(held));
            }
            adopts = self.admit(held)?;
        } else {
            self.refuse_known_stranger()?;
        }
        if let Some(waiting) = self.waiting(held.as_ref()) {
            return Ok(waiting);
        }
        let submitted = if let Some(submitted) = self.apply(held.as_deref()).await? {
            submitted
        } else {
            let (submitted, taken) = self.apply_onto_unseen().await?;
            adopts = taken;
            submitted
        };
        Ok(self.with_adoption(submitted, adopts))
    }

    /// The live object with the rendered name, from the watch or, where the kind cannot be watched, from the server.
    pub(super) async fn held(self) -> Result<Option<Arc<Stamped>>, Failure> {
        let (key, address) = (self.key(), address(self.submission));
        if key.name.is_empty() {
            return Err(rejected(format!(
                "failed to get unstructured [{address}] from api server: resource name may not be empty"
            )));
        }
        match self.source {
            Source::Watch(watch) => Ok(watch.get(&key)),
            Source::Live(_, why) => {
                let live = self.client().get(&key).await;
                let live = live.map_err(|error| {
                    during(&format!("failed to get unstructured [{address}] from api server (the controller cannot watch the kind either: {why})"), error)
                })?;
                Ok(live.map(|live| self.recall(&live)))
            }
        }
    }

    /// Whether the object may be written. True when that takes it over from somebody else.
    fn admit(self, held: &Stamped) -> Result<bool, Failure> {
        match self.holder(held) {
            Holder::Ours => Ok(false),
            Holder::Adoptable => Ok(true),
            Holder::Contested(message) => Err(contested(message)),
        }
    }

    /// An object of somebody else that the watch does not show is not looked at with every reconcile.
    fn refuse_known_stranger(self) -> Result<(), Failure> {
        let (kind, digest) = (&self.served().kind, &*self.submission.digest);
        let foreign_objects = &self.submitter.foreign_objects;
        match foreign_objects.known(kind, &self.key(), (digest, self.moves()), now()) {
            Some(why) => Err(contested(&*why)),
            None => Ok(()),
        }
    }

    /// By which a look at the object is known to be older than its last change of hands.
    fn moves(self) -> u64 {
        let watches = &self.submitter.watches;
        watches.moves(&self.served().kind, &self.key())
    }

    /// The object is there without the label by which the watch would show it: somebody took the label away, or somebody
    /// else made the object.
    async fn apply_onto_unseen(self) -> Result<(Submitted, bool), Failure> {
        let moves = self.moves();
        let Some(live) = self.live().await? else {
            return Err(self.comes_and_goes("create"));
        };
        let adopts = self.admit(&live).inspect_err(|failure| {
            if let Failure::Step(step) = failure {
                let looked = (&*self.submission.digest, moves);
                let (kind, foreign_objects) =
                    (&self.served().kind, &self.submitter.foreign_objects);
                foreign_objects.found(kind, &self.key(), looked, &step.message, now());
            }
        })?;
        match self.apply(Some(&live)).await? {
            Some(submitted) => Ok((submitted, adopts)),
            // Only an apply that is bound to an absent object can come here.
            None => Err(self.comes_and_goes("patch")),
        }
    }

    fn comes_and_goes(self, operation: &str) -> Failure {
        rejected(format!(
            "{operation}: object [{}] comes and goes; trying again",
            address(self.submission)
        ))
    }

    /// The object is as it is rendered; during a conflict only for now.
    fn as_rendered(self, held: &Stamped) -> Submitted {
        match self.submitter.conflicts.is_on(self.rendering(), now()) {
            Some(left) => {
                let mut submitted = self.report(held, Write::Undone(Answer::None));
                submitted.look_again(left);
                submitted
            }
            None => self.report(held, Write::Unchanged),
        }
    }

    /// What there is, while it is too early to write: somebody keeps undoing the rendering, or we keep changing it.
    fn waiting(self, held: Option<&Arc<Stamped>>) -> Option<Submitted> {
        let submitter = self.submitter;
        let (present, wait) =
            if let Some(back) = submitter.conflicts.held_back(self.rendering(), now()) {
                (held.cloned().unwrap_or(back.applied), back.wait)
            } else {
                let (owner, render_loops) = (self.applicant.uid, &submitter.render_loops);
                let wait = render_loops.held_back(owner, self.submission, now())?;
                let present = held.cloned().or_else(|| self.renamed());
                (present?, wait)
            };
        let write = match submitter.conflicts.is_on(self.rendering(), now()) {
            Some(_) => Write::Undone(Answer::None),
            None => Write::Deferred,
        };
        let mut submitted = self.report(&present, write);
        submitted.look_again(wait);
        Some(submitted)
    }

    /// What the step stamped before; a rendering that changes may change its name, too.
    fn renamed(self) -> Option<Arc<Stamped>> {
        let Source::Watch(watch) = self.source else {
            return None;
        };
        let owner = self.applicant.key();
        let mut owned = watch.owned_by(&owner, self.applicant.uid);
        owned.retain(|held| {
            let step = held.labels().remove(labels::RESOURCE_NAME);
            held.belongs_to(self.applicant.kind, &owner, self.applicant.uid)
                && !held.terminating
                && step.as_deref() == Some(self.submission.resource.as_str())
        });
        owned.pop()
    }

    /// Decided from what arrived and from what only we can write: the object holds what it held after our last apply, and
    /// that was of this rendering.
    fn is_as_rendered(self, held: &Stamped) -> bool {
        // The Go controller's entry would co-own our fields, so that those a template drops would stay.
        let Some(state) = self.state_of(held).filter(|_| !held.legacy) else {
            return false;
        };
        held.memory.state == Some(state) || self.recorded_state(held) == Some(&state.to_string())
    }

    fn state_of(self, held: &Stamped) -> Option<State> {
        let values = held.values?;
        Some(State::of(&self.submission.digest, values))
    }

    /// What status says of the object.
    fn recorded_state(&self, held: &Stamped) -> Option<&String> {
        let applied = self.submission.recorded.applied.as_ref();
        applied
            .filter(|applied| *applied.uid == *held.uid)
            .and_then(|applied| applied.state.as_ref())
    }

    /// The object as the engine sees it: what it says of itself only as far as its values bear it out.
    pub(super) fn observed(self, stamped: &Stamped) -> Observed {
        let mut observed = stamped.observed(self.served());
        observed.is_known = true;
        if self.is_as_rendered(stamped) {
            observed.digest = Some(self.submission.digest.clone());
        }
        observed.is_as_left = stamped.values.is_some() && stamped.memory.left == stamped.values;
        observed.values = stamped.values.map(|values| values.to_string());
        observed.state = match (stamped.memory.state, self.recorded_state(stamped)) {
            (Some(state), _) if !stamped.memory.is_passing => Some(state.to_string()),
            (_, recorded) => recorded.cloned(),
        };
        observed
    }

    fn report(self, stamped: &Stamped, write: Write) -> Submitted {
        let observed = self.observed(stamped);
        self.submitted(Observation::Object { observed, write })
    }

    fn with_adoption(self, mut submitted: Submitted, adopts: bool) -> Submitted {
        if adopts {
            let message = format!(
                "[{}] took over {} [{}], which somebody else made; it is deleted with the {}",
                self.submission.resource,
                self.served().qualified(),
                address(self.submission),
                self.applicant.kind.to_lowercase(),
            );
            submitted.events.push((EventReason::ObjectAdopted, message));
        }
        submitted
    }

    fn rendering(self) -> Rendering {
        let kind = &self.served().kind;
        Rendering::of(kind, &self.key(), &self.submission.digest)
    }
}
