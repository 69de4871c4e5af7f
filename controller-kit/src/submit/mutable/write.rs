//! Writing a mutable object, and what follows from the reply.

use api_types::EventReason;
use http::StatusCode;
use realizer::{Answer, Precondition, Write};
use submission::{Apply, address, belongs_to_another, migration};

use crate::stamped::Stamped;
use crate::submit::attempt::Attempt;
use crate::submit::conflict_backoff::fought_over;
use crate::submit::failure::{Failure, OwnerRequestError, check_size, contested, during, stale};
use crate::submit::requests::Applied;
use crate::submit::{Submitted, now};

impl Attempt<'_> {
    /// Applies; `None` when it was to create the object and there is one that the watch does not show.
    pub(super) async fn apply(self, held: Option<&Stamped>) -> Result<Option<Submitted>, Failure> {
        if let Some(held) = held {
            self.prepare(held).await?;
        }
        let applied = self.send_apply(held).await?;
        Ok(applied.map(|applied| self.take_in(held, &applied)))
    }

    /// Takes in the reply to an apply.
    fn take_in(self, held: Option<&Stamped>, applied: &Applied) -> Submitted {
        let mut stamped = self.project(&applied.answer.body);
        let changes_nothing = held.is_some_and(|held| {
            held.uid == stamped.uid && held.resource_version == stamped.resource_version
        });
        let (conflicts, rendering) = (&self.submitter.conflicts, self.rendering());
        let answers = conflicts.written(rendering, &stamped, !changes_nothing, now());
        let conflict = conflicts.is_on(rendering, now());
        let is_created = applied.answer.code == StatusCode::CREATED;
        if is_created {
            self.count_creation();
        }
        let write = match (is_created, conflict) {
            (true, Some(_)) => Write::Undone(Answer::Created),
            (true, None) => Write::Created,
            (false, _) if changes_nothing => Write::Unchanged,
            (false, Some(_)) => Write::Undone(Answer::Patched),
            (false, None) => Write::Patched,
        };
        let render_loops = &self.submitter.render_loops;
        let render_loops = render_loops.written(self.applicant, self.submission, now());
        stamped.memory.state = self.state_of(&stamped);
        stamped.memory.left = stamped.values;
        stamped.memory.is_passing =
            changes_nothing && answers > 0 && self.recorded_state(&stamped).is_some();
        let mut submitted = self.report(&self.keep(stamped), write);
        submitted.events.extend(render_loops);
        submitted.events.extend(self.left_out(&applied.conformed));
        if let Some(left) = conflict {
            let event = fought_over(self.submission, self.source);
            submitted.events.push(event);
            submitted.look_again(left);
        }
        submitted
    }

    /// Tells which fields had to be left out to apply the rendering.
    fn left_out(self, fields: &[String]) -> Option<(EventReason, String)> {
        let event = || {
            let message = format!(
                "[{}] left out of {} [{}] because its kind does not declare them or lists them twice: {}; correct the template",
                self.submission.resource,
                self.served().qualified(),
                address(self.submission),
                fields.join(", "),
            );
            (EventReason::FieldsDropped, message)
        };
        (!fields.is_empty()).then(event)
    }

    async fn send_apply(self, held: Option<&Stamped>) -> Result<Option<Applied>, Failure> {
        let Apply { object, is_bound } = self.manifest().applied(held.is_some());
        check_size(&object, self.submitter.longest)?;
        if held.is_none() {
            self.hold_back_creation()?;
        }
        match self.client().apply(&object).await {
            Ok(applied) => Ok(Some(applied)),
            Err(OwnerRequestError::Request(error))
                if is_bound && error.is(StatusCode::CONFLICT) && !error.passes_by_itself() =>
            {
                if self.submission.precondition == Precondition::None {
                    return Ok(None);
                }
                self.learn_anew().await?;
                Err(stale(&error))
            }
            Err(error) => Err(self.explain(held.is_some(), error).await),
        }
    }

    pub(super) async fn live(self) -> Result<Option<Stamped>, Failure> {
        let live = self.client().get(&self.key()).await;
        let live = live.map_err(|error| during("patch", error))?;
        Ok(live.map(|live| self.project(&live)))
    }

    /// The server knows a later version than the watch has shown: reads it, so that the next look does not find the same.
    async fn learn_anew(self) -> Result<(), Failure> {
        let key = self.key();
        match (self.live().await?, self.source.watch().get(&key)) {
            (Some(live), _) => {
                self.keep(live);
            }
            (None, Some(held)) => {
                let watches = &self.submitter.watches;
                watches.deleted(&self.served().kind, &key, &held.uid);
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
        let stale = self.is_stale(held) && !held.key.namespace.is_empty();
        if !held.legacy && !stale {
            return Ok(());
        }
        let live = self.client().get(&held.key).await;
        let live = live.map_err(|error| during("patch", error))?;
        let released = held.controller.as_ref().filter(|_| stale);
        let patch = live.and_then(|live| {
            let manager = self.submitter.watches.field_manager();
            migration(&live, manager, released.map(|controller| &*controller.uid))
        });
        let Some(patch) = patch else {
            return Ok(());
        };
        let migrated = self.client().json_patch(&held.key, &patch).await;
        migrated.map(|_| ()).map_err(|error| during("patch", error))
    }
}
