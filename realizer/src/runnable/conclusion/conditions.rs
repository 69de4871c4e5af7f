//! The conditions of a Runnable, and what is news about them.

use api_types::event::EventReason;
use api_types::{Condition, ConditionStatus, ConditionType, Reason};

use super::RunConclusion;
use crate::runnable::error::{NotRun, RunError, Shown};
use crate::runnable::{RunTemplate, history};
use crate::status::conditions::{self, Conditions};
use crate::status::events;
use crate::status::progress::{self, Hindrance};
use crate::status::report::Extras;
use crate::template::family_members::object_ref;
use crate::template::health::Health;
use crate::{FailedRemoval, ObjectRef, Observed, OwnerEvent};

impl RunConclusion<'_> {
    pub(super) fn conditions(&self, failed: &[FailedRemoval]) -> Vec<Condition> {
        let mut conditions = Conditions::new(&self.runnable.status.conditions, &self.now);
        let template = ConditionType::RunTemplateReady;
        match &self.error {
            Some(error) => {
                let verdict = error.verdict();
                let message = error.message(self.runnable, &self.shown_run());
                let message = self.taint.scrub(message);
                conditions.add(template, verdict.status, &verdict.reason, message);
            }
            None => conditions.add(template, ConditionStatus::True, &Reason::Ready, ""),
        }
        let before = &self.runnable.status.conditions;
        let before = conditions::of_type(before, ConditionType::StampedObjectCondition);
        if let Some(before) = before.filter(|_| self.is_gone) {
            conditions.carry_over(before.clone());
        } else if let Some(Health {
            status,
            reason,
            message,
        }) = self.health_of_run()
        {
            conditions.add(
                ConditionType::StampedObjectCondition,
                status,
                &reason,
                message,
            );
        }
        conditions.derive_ready();
        let extras = Extras {
            failed,
            kept: &[],
            contested: Vec::new(),
            unwatched: &self.shell.unwatched,
        };
        extras.add(&mut conditions);
        if let Some(ready) = progress::unready(conditions.list()).cloned() {
            let is_stuck = self.is_stuck(conditions.list());
            Hindrance::of(&ready, is_stuck).add(&mut conditions);
        }
        conditions.finish()
    }

    /// Whether nothing will change until somebody does something: a run that failed is not tried again, gone or not.
    fn is_stuck(&self, conditions: &[Condition]) -> bool {
        let of_run = conditions::of_type(conditions, ConditionType::StampedObjectCondition);
        let failed = of_run.is_some_and(|of_run| of_run.status == ConditionStatus::False);
        let error = self.error.as_ref();
        error.is_some_and(RunError::is_stuck) || (failed && self.again.is_none())
    }

    /// Of the run that was submitted last. Without one nothing is known, and that is said, too, unless the walk ended before
    /// anything was asked for: lists are compared by position.
    fn health_of_run(&self) -> Option<Health> {
        let has_no_identity = matches!(
            self.error,
            Some(RunError::NotRun(
                NotRun::StampedTooDeep(_)
                    | NotRun::TooLarge(..)
                    | NotRun::ServiceAccount { .. }
                    | NotRun::ServiceAccountToken(_)
                    | NotRun::Unavailable(_)
            ))
        );
        match &self.latest {
            Some((_, health)) => Some(health.clone()),
            None if has_no_identity => None,
            None => Some(unknown()),
        }
    }

    fn shown_run(&self) -> Shown {
        let Some((latest, _)) = &self.latest else {
            return Shown::default();
        };
        let object = object_ref(latest);
        Shown {
            resource: object
                .qualified_resource
                .unwrap_or_else(|| api_types::status::UNKNOWN_RESOURCE.to_owned()),
            name: object.name,
        }
    }

    /// A warning if the failure is news and somebody has to act.
    pub(super) fn warning(&self) -> Option<OwnerEvent> {
        self.error.as_ref().filter(|error| error.is_warning())?;
        let type_ = ConditionType::RunTemplateReady;
        let now = conditions::of_type(&self.status.conditions, type_)?;
        let before = conditions::of_type(&self.runnable.status.conditions, type_);
        if before.is_some_and(|before| before.says_the_same_as(now)) {
            return None;
        }
        Some(events::of_status(
            EventReason::ResourceFailed,
            now.message.clone(),
        ))
    }
}

/// What condition `StampedObjectCondition` says (docs/behaviour/runnables.md#conditions). Without a
/// rule of the template it mirrors the condition
/// `Succeeded`, and says nothing as long as there is none.
pub(super) fn mirrored(template: &RunTemplate, run: &Observed) -> Health {
    let health = history::judge(template, run);
    let says_something = template.has_own_rule
        || api_types::condition::ObservedCondition::all_of(&run.object)
            .iter()
            .any(|condition| condition.type_ == "Succeeded");
    if says_something { health } else { unknown() }
}

fn unknown() -> Health {
    Health {
        status: ConditionStatus::Unknown,
        reason: Reason::Unknown,
        message: String::new(),
    }
}

/// Whether the condition named the deletion before, and this reason.
pub(super) fn was_pending(previous: &[Condition], object: &ObjectRef, why: &str) -> bool {
    let pending = conditions::of_type(previous, ConditionType::DeletionPending);
    let named = events::shown(object).map(|shown| format!("[{shown}]: {why}"));
    pending.is_some_and(|pending| named.is_some_and(|named| pending.message.contains(&named)))
}
