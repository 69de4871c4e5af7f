//! Mutable objects: server-side apply, and only when something is to change.

use std::sync::Arc;

use api_types::{EventReason, labels};
use http::StatusCode;
use realizer::{Answer, Observation, Observed, Precondition, Submission, Write};
use submission::{Apply, State, address, migration};

use super::attempt::Attempt;
use super::conflict_backoff::{Rendering, fought_over};
use super::failure::{self, Failure, OwnerRequestError, contested, during};
use super::holder::{Holder, belongs_to_another, holder, is_stale};
use super::{Applicant, Source, Submitted, Submitter, now};
use crate::stamped::Stamped;

impl Submitter {
    pub(super) async fn submit_mutable(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<Submitted, Failure> {
        self.attempt(applicant, submission, source).run().await
    }

    /// The live object with the rendered name, from the watch or, where the kind cannot be watched, from the server.
    pub(super) async fn held(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Result<Option<Arc<Stamped>>, Failure> {
        let name = submission.object["metadata"]["name"]
            .as_str()
            .unwrap_or_default();
        if name.is_empty() {
            return Err(failure::rejected(format!(
                "failed to get unstructured [{}] from api server: resource name may not be empty",
                address(submission)
            )));
        }
        let key = applicant.key_of(submission, source.served());
        let (namespace, name) = (&key.namespace, &key.name);
        match source {
            Source::Watch(watch) => Ok(watch.get(&key)),
            Source::Live(watch, why) => {
                let live = self
                    .requests
                    .get(&applicant.account, watch.served(), namespace, name)
                    .await;
                let live = live.map_err(|error| {
                    during(&format!("failed to get unstructured [{}] from api server (the controller cannot watch the kind either: {why})", address(submission)), error)
                })?;
                Ok(live.map(|live| {
                    let mut live = self.project(source, &live);
                    if let Some(known) = watch.get(&key).filter(|known| known.uid == live.uid) {
                        live.memory.take_over(&known.memory);
                    }
                    Arc::new(live)
                }))
            }
        }
    }
}

impl Submitter {
    /// A mutable object as the engine sees it: what it says of itself only as far as its values bear it out.
    pub(super) fn verified(
        &self,
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
        held: &Stamped,
    ) -> Observed {
        self.attempt(applicant, submission, source).observed(held)
    }
}

/// What an apply was answered.
enum Applied {
    Done(super::requests::Applied),
    /// It was to create the object, and there is one that the watch does not show.
    Occupied,
}

/// Of a mutable object.
impl Attempt<'_> {
    async fn run(self) -> Result<Submitted, Failure> {
        let held = self
            .submitter
            .held(self.applicant, self.submission, self.source)
            .await?;
        let mut adopts = false;
        if let Some(held) = &held {
            if self.is_as_rendered(held) {
                self.submitter.requests.avoided();
                return Ok(self.as_rendered(held));
            }
            adopts = self.admit(held)?;
        }
        if held.is_none() {
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

    /// Whether the object may be written. True when that takes it over from somebody else.
    fn admit(self, held: &Stamped) -> Result<bool, Failure> {
        match holder(self.applicant, self.submission, held) {
            Holder::Ours => Ok(false),
            Holder::Adoptable => Ok(true),
            Holder::Contested(message) => Err(contested(message)),
        }
    }

    /// An object of somebody else that the watch does not show is not looked at with every reconcile.
    fn refuse_known_stranger(self) -> Result<(), Failure> {
        let (kind, digest) = (&self.source.served().kind, &self.submission.digest);
        let strangers = &self.submitter.strangers;
        match strangers.known(kind, &self.key(), (digest.as_str(), self.moves()), now()) {
            Some(told) => Err(contested(told.to_string())),
            None => Ok(()),
        }
    }

    /// By which a look at the object is known to be older than its last change of hands.
    fn moves(self) -> u64 {
        let kind = &self.source.served().kind;
        self.submitter.watches.moves(kind, &self.key())
    }

    /// The object is there without the label by which the watch would show it: somebody took the label away, or somebody
    /// else made the object.
    async fn apply_onto_unseen(self) -> Result<(Submitted, bool), Failure> {
        let moves = self.moves();
        let Some(live) = self.live().await? else {
            return Err(failure::rejected(format!(
                "create: object [{}] comes and goes; trying again",
                address(self.submission)
            )));
        };
        let adopts = self.admit(&live).inspect_err(|failure| {
            if let Failure::Step(step) = failure {
                let (kind, digest) = (&self.source.served().kind, &self.submission.digest);
                let strangers = &self.submitter.strangers;
                let looked = (digest.as_str(), moves);
                strangers.found(kind, &self.key(), looked, &step.message, now());
            }
        })?;
        match self.apply(Some(&live)).await? {
            Some(submitted) => Ok((submitted, adopts)),
            // Only an apply that is bound to an absent object can come here.
            None => Err(failure::rejected(format!(
                "patch: object [{}] comes and goes; trying again",
                address(self.submission)
            ))),
        }
    }

    /// The object is as it is rendered; during a fight only for now.
    fn as_rendered(self, held: &Stamped) -> Submitted {
        match self.submitter.fights.is_on(self.rendering(), now()) {
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
            if let Some(back) = submitter.fights.held_back(self.rendering(), now()) {
                (held.cloned().unwrap_or(back.applied), back.wait)
            } else {
                let wait =
                    submitter
                        .render_loops
                        .held_back(self.applicant.uid, self.submission, now())?;
                let present = held.cloned().or_else(|| self.renamed());
                (present?, wait)
            };
        let write = match submitter.fights.is_on(self.rendering(), now()) {
            Some(_) => Write::Undone(Answer::None),
            None => Write::Deferred,
        };
        let mut submitted = self.report(&present, write);
        submitted.look_again(wait);
        Some(submitted)
    }

    /// Applies; `None` when it was to create the object and there is one.
    async fn apply(self, held: Option<&Stamped>) -> Result<Option<Submitted>, Failure> {
        if let Some(held) = held {
            self.prepare(held).await?;
        }
        let applied = match self.send_apply(held).await? {
            Applied::Done(applied) => applied,
            Applied::Occupied => return Ok(None),
        };
        let mut stamped = self.submitter.project(self.source, &applied.answer.body);
        let changes_nothing = held.is_some_and(|held| {
            held.uid == stamped.uid && held.resource_version == stamped.resource_version
        });
        let fights = &self.submitter.fights;
        let answers = fights.written(self.rendering(), &stamped, !changes_nothing, now());
        let is_fight = fights.is_on(self.rendering(), now()).is_some();
        let write = match applied.answer.code {
            StatusCode::CREATED => {
                let brake = &self.submitter.brake;
                brake.created(self.applicant.uid, &self.submission.resource, now());
                if is_fight {
                    Write::Undone(Answer::Created)
                } else {
                    Write::Created
                }
            }
            _ if changes_nothing => Write::Unchanged,
            _ if is_fight => Write::Undone(Answer::Patched),
            _ => Write::Patched,
        };
        let render_loops =
            self.submitter
                .render_loops
                .written(self.applicant, self.submission, now());
        stamped.memory.state = self.state_of(&stamped);
        stamped.memory.is_passing =
            changes_nothing && answers > 0 && self.told_state(&stamped).is_some();
        let stamped = Submitter::keep(self.source, stamped);
        let mut submitted = self.report(&stamped, write);
        submitted.told.extend(render_loops);
        submitted
            .told
            .extend(left_out(self.submission, self.source, &applied.conformed));
        if is_fight {
            submitted
                .told
                .push(fought_over(self.submission, self.source));
        }
        if let Some(left) = self.submitter.fights.is_on(self.rendering(), now()) {
            submitted.look_again(left);
        }
        Ok(Some(submitted))
    }

    async fn send_apply(self, held: Option<&Stamped>) -> Result<Applied, Failure> {
        let Apply { object, is_bound } = self.manifest().applied(held.is_some());
        failure::check_size(&object, self.submitter.longest)?;
        if held.is_none() {
            self.submitter
                .hold_back_creation(self.applicant, self.submission, self.source)?;
        }
        let applied =
            self.submitter
                .requests
                .apply(&self.applicant.account, self.source.served(), &object);
        match applied.await {
            Ok(applied) => Ok(Applied::Done(applied)),
            Err(OwnerRequestError::Request(error))
                if is_bound && error.is(StatusCode::CONFLICT) && !error.passes_by_itself() =>
            {
                if self.submission.precondition == Precondition::None {
                    return Ok(Applied::Occupied);
                }
                self.learn_anew().await?;
                Err(failure::stale(&error))
            }
            Err(error) => Err(self.explain(held.is_some(), error).await),
        }
    }

    async fn live(self) -> Result<Option<Stamped>, Failure> {
        let key = self.key();
        let live = self
            .submitter
            .requests
            .get(
                &self.applicant.account,
                self.source.served(),
                &key.namespace,
                &key.name,
            )
            .await
            .map_err(|error| during("patch", error))?;
        Ok(live.map(|live| self.submitter.project(self.source, &live)))
    }

    /// The server knows a later version than the watch has shown: reads it, so that the next look does not find the same.
    async fn learn_anew(self) -> Result<(), Failure> {
        let key = self.key();
        match (self.live().await?, self.source.watch().get(&key)) {
            (Some(live), _) => {
                Submitter::keep(self.source, live);
            }
            (None, Some(held)) => {
                let kind = &self.source.served().kind;
                self.submitter.watches.deleted(kind, &key, &held.uid);
            }
            (None, None) => {}
        }
        Ok(())
    }

    /// An unknown object in the way: the server refuses a second controller. Say whose it is.
    async fn explain(self, exists: bool, error: OwnerRequestError) -> Failure {
        if let OwnerRequestError::Request(request) = &error
            && request.is(StatusCode::UNPROCESSABLE_ENTITY)
            && let Ok(Some(live)) = self.live().await
            && let Some(controller) = live
                .controller
                .as_ref()
                .filter(|controller| *controller.uid != *self.applicant.uid)
        {
            return contested(belongs_to_another(self.submission, controller));
        }
        during(if exists { "patch" } else { "create" }, error)
    }

    /// What has to go before our apply can own the object: the Go controller's entry, which would co-own its fields, and the
    /// reference to an owner that is no more, beside which the server allows no other.
    async fn prepare(self, held: &Stamped) -> Result<(), Failure> {
        let stale = is_stale(self.applicant, held) && !held.key.namespace.is_empty();
        if !held.legacy && !stale {
            return Ok(());
        }
        let served = self.source.served();
        let (namespace, name) = (&held.key.namespace, &held.key.name);
        let requests = &self.submitter.requests;
        let account = &self.applicant.account;
        let live = requests
            .get(account, served, namespace, name)
            .await
            .map_err(|error| during("patch", error))?;
        let released = held.controller.as_ref().filter(|_| stale);
        let patch = live.and_then(|live| {
            let manager = self.submitter.watches.field_manager();
            migration(&live, manager, released.map(|controller| &*controller.uid))
        });
        let Some(patch) = patch else {
            return Ok(());
        };
        let migrated = requests
            .json_patch(account, served, namespace, name, &patch)
            .await;
        migrated.map(|_| ()).map_err(|error| during("patch", error))
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
        held.memory.state == Some(state) || self.told_state(held) == Some(&state.to_string())
    }

    fn state_of(self, held: &Stamped) -> Option<State> {
        let values = held.values?;
        Some(State::of(&self.submission.digest, values))
    }

    /// What status says of the object.
    fn told_state(&self, held: &Stamped) -> Option<&String> {
        let applied = self.submission.told.applied.as_ref();
        applied
            .filter(|applied| *applied.uid == *held.uid)
            .and_then(|applied| applied.state.as_ref())
    }

    fn observed(self, stamped: &Stamped) -> Observed {
        let mut observed = stamped.observed(self.source.served());
        observed.is_known = true;
        if self.is_as_rendered(stamped) {
            observed.digest = Some(self.submission.digest.clone());
        }
        observed.state = match (stamped.memory.state, self.told_state(stamped)) {
            (Some(state), _) if !stamped.memory.is_passing => Some(state.to_string()),
            (_, told) => told.cloned(),
        };
        observed
    }

    fn report(self, stamped: &Stamped, write: Write) -> Submitted {
        let observed = self.observed(stamped);
        let mut submitted = Submitted::plain(Observation::Object { observed, write });
        Submitter::note_unwatched(self.source, &mut submitted);
        submitted
    }

    fn with_adoption(self, mut submitted: Submitted, adopts: bool) -> Submitted {
        if adopts {
            let message = format!(
                "[{}] took over {} [{}], which somebody else made; it is deleted with the {}",
                self.submission.resource,
                self.source.served().qualified(),
                address(self.submission),
                self.applicant.kind.to_lowercase(),
            );
            submitted.told.push((EventReason::ObjectAdopted, message));
        }
        submitted
    }

    fn rendering(self) -> Rendering {
        let kind = &self.source.served().kind;
        Rendering::of(kind, &self.key(), &self.submission.digest)
    }
}

/// Tells which fields had to be left out to apply the rendering.
fn left_out(
    submission: &Submission,
    source: &Source,
    fields: &[String],
) -> Option<(EventReason, String)> {
    let told = || {
        let message = format!(
            "[{}] left out of {} [{}] because its kind does not declare them or lists them twice: {}; correct the template",
            submission.resource,
            source.served().qualified(),
            address(submission),
            fields.join(", "),
        );
        (EventReason::FieldsDropped, message)
    };
    (!fields.is_empty()).then(told)
}
