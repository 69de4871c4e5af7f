//! A finished walk of a Runnable: what is to be deleted, and then what to report.

use std::collections::BTreeSet;
use std::time::Duration;

use api_types::event::EventReason;
use api_types::runnable::{RunRecord, RunResult, RunnableStatus};
use api_types::{Condition, ConditionStatus, ConditionType, Reason, StampedRef, labels};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::attempt::Attempts;
use super::error::{NotRun, RunError, Shown};
use super::plan::HELD_LOOK;
use super::run::{End, step};
use super::{Run, RunTemplate, Runnable, history, outputs};
use crate::ErrorKind;
use crate::owner::owner_status::stamped_ref;
use crate::status::conditions::{self, Conditions};
use crate::status::events;
use crate::status::progress::{self, Hindrance};
use crate::status::report::{self, Extras};
use crate::template::family_members::{object_ref, superseded};
use crate::template::health::Health;
use crate::values::redaction::Taint;
use crate::{Ended, FailedRemoval, Observed, Outcome, OwnerEvent, Removal, Retry, Write};

/// A finished walk of a Runnable.
pub struct RunConclusion<'a> {
    runnable: &'a Runnable,
    now: Time,
    /// The new status, conditions aside.
    status: RunnableStatus,
    error: Option<RunError>,
    /// The run that was submitted last, and the verdict on it.
    latest: Option<(Observed, Health)>,
    /// Whether a run was made that status does not know yet.
    made_run: bool,
    /// Whether the run that was submitted last is gone, so that what was said of it stays.
    is_gone: bool,
    events: Vec<OwnerEvent>,
    removals: Vec<Removal>,
    again: Option<Duration>,
    /// What is missing to watch the kind.
    unwatched: BTreeSet<String>,
    /// What was to be deleted and was gone already, or on its way out.
    absent: Vec<Removal>,
    /// What of the selected object must not be shown.
    taint: Taint,
}

impl<'a> RunConclusion<'a> {
    pub(super) fn of(mut run: Run<'a>) -> Self {
        let end = run.end();
        let mut conclusion = Self {
            taint: run.taint.clone(),
            ..Self::nothing(run.runnable, run.now)
        };
        match end {
            End::Failed(error) => conclusion.error = Some(error),
            End::Held {
                going,
                runs,
                rendering,
            } => conclusion.hold(&run, going, &runs, &rendering),
            End::Rested { runs, rendering } => conclusion.rest(&run, &runs, &rendering),
            End::Submitted {
                submitted,
                runs,
                write,
                rendering,
            } => conclusion.submitted(&run, *submitted, &runs, write, &rendering),
        }
        conclusion
    }

    /// What there was stays.
    fn nothing(runnable: &'a Runnable, now: Timestamp) -> Self {
        Self {
            runnable,
            now: Time(now),
            status: RunnableStatus {
                observed_generation: Some(runnable.generation),
                conditions: Vec::new(),
                stamped_for: runnable.stamped_for.clone(),
                ..runnable.status.clone()
            },
            error: None,
            latest: None,
            made_run: false,
            is_gone: false,
            events: Vec::new(),
            removals: Vec::new(),
            again: None,
            unwatched: BTreeSet::new(),
            absent: Vec::new(),
            taint: Taint::NONE,
        }
    }

    fn hold(&mut self, run: &Run<'_>, going: Vec<String>, runs: &[Observed], rendering: &str) {
        let attempts = Attempts::of(rendering, self.runnable.rerun.as_deref());
        let situation = run.situation(&attempts, runs);
        let latest = situation.newest().cloned();
        self.removals = situation.replaced();
        self.again = Some(HELD_LOOK);
        self.error = Some(RunError::Held { going });
        self.observe(run, latest, runs);
        self.read_outputs(run, runs, &attempts);
    }

    /// The newest run has ended and is gone: all that status says of it stays, and what it did not say yet is added.
    fn rest(&mut self, run: &Run<'_>, runs: &[Observed], rendering: &str) {
        let attempts = Attempts::of(rendering, self.runnable.rerun.as_deref());
        let situation = run.situation(&attempts, runs);
        self.again = situation.retry_in();
        self.removals = situation.replaced();
        self.status
            .last_rerun_requested_at
            .clone_from(&self.runnable.rerun);
        let is_attempt = |run: &&Observed| {
            let digest = run.digest.as_deref().filter(|_| run.is_known);
            digest.is_some_and(|digest| attempts.number(digest).is_some())
        };
        let of_attempts = runs.iter().filter(is_attempt);
        let leaving = of_attempts.max_by(|a, b| a.order_key().cmp(&b.order_key()));
        self.observe(run, leaving.cloned(), runs);
        self.is_gone = self.latest.is_none();
        self.read_outputs(run, runs, &attempts);
    }

    fn submitted(
        &mut self,
        run: &Run<'_>,
        submitted: Observed,
        runs: &[Observed],
        write: Write,
        rendering: &str,
    ) {
        let attempts = Attempts::of(rendering, self.runnable.rerun.as_deref());
        let situation = run.situation(&attempts, runs);
        self.again = situation.retry_in();
        self.removals = situation.replaced();
        let rule = run.template.rule(self.runnable.retention);
        let retired = superseded(rule, &step(), &submitted, of_template(run.template, runs));
        self.removals.extend(retired);
        self.status
            .last_rerun_requested_at
            .clone_from(&self.runnable.rerun);
        self.made_run = write == Write::Created;
        self.applied(&submitted, write);
        self.observe(run, Some(submitted), runs);
        self.read_outputs(run, runs, &attempts);
    }

    fn applied(&mut self, submitted: &Observed, write: Write) {
        let Some(shown) = events::shown(&object_ref(submitted)) else {
            return;
        };
        match write {
            // Runs are immutable: nothing of them can be undone but by deleting them.
            Write::Unchanged | Write::Deferred | Write::Undone(_) => {}
            Write::Created => self
                .events
                .push(events::applied(format!("Created object [{shown}]"))),
            Write::Patched => self
                .events
                .push(events::applied(format!("Patched object [{shown}]"))),
        }
    }

    fn observe(&mut self, run: &Run<'_>, latest: Option<Observed>, runs: &[Observed]) {
        self.status.runs = history::records(run, runs);
        self.latest = latest.map(|latest| {
            let health = mirrored(run.template, &latest);
            let message = run.shown(&health.message);
            self.status.stamped_ref = Some(StampedRef {
                uid: None,
                ..stamped_ref(&object_ref(&latest))
            });
            (latest, Health { message, ..health })
        });
    }

    /// Of the newest run that succeeded. Without one, or if a path fails, the outputs stay what they were: who reads them
    /// must not see them vanish because of an error.
    fn read_outputs(&mut self, walk: &Run<'_>, runs: &[Observed], attempts: &Attempts) {
        let (template, taint) = (walk.template, &walk.taint);
        self.status
            .outputs
            .retain(|_, value| taint.carried_by([&*value]).is_none());
        let rule = template.rule(self.runnable.retention);
        // A run that succeeded has succeeded, also while it is being deleted.
        let succeeded = |run: &&Observed| run.is_known && rule.judge(run) == ConditionStatus::True;
        let newest = of_template(template, runs)
            .filter(succeeded)
            .max_by(|a, b| a.order_key().cmp(&b.order_key()));
        let Some(run) = newest.filter(|run| !self.is_remembered_behind(run)) else {
            return;
        };
        // A run of other inputs may hold a value that the Secret had before, and by which it is not recognized any more.
        let is_safe = if taint.is_none() {
            crate::values::redaction::is_secret(&run.object) || !walk.was_secret(run)
        } else {
            let digest = run.digest.as_deref();
            digest.is_some_and(|digest| attempts.number(digest).is_some())
        };
        if template.outputs.is_empty() || !is_safe {
            return;
        }
        match outputs::read(template, run, taint) {
            Ok(outputs) => {
                if self.status.outputs != outputs {
                    self.status.outputs = outputs;
                    self.found_outputs();
                }
            }
            Err(error) => self.error = self.error.take().or(Some(error)),
        }
    }

    /// Whether a later run succeeded that is gone; the outputs are of that one.
    fn is_remembered_behind(&self, run: &Observed) -> bool {
        history::numbered(&self.runnable.status.runs).any(|(sequence, record)| {
            record.result == RunResult::Succeeded && sequence > run.sequence
        })
    }

    fn found_outputs(&mut self) {
        let latest = self.latest.as_ref().map(|(latest, _)| object_ref(latest));
        if let Some(shown) = latest.as_ref().and_then(events::shown) {
            let name = &self.runnable.name;
            let message = format!("Runnable [{name}] found a new output in [{shown}]");
            self.events.push(events::of_status(
                EventReason::ResourceOutputChanged,
                message,
            ));
        }
    }

    /// Reports kinds whose objects the shell cannot watch, too: one text each that names the kind and what is missing.
    #[must_use]
    pub fn with_unwatched(self, unwatched: BTreeSet<String>) -> Self {
        Self { unwatched, ..self }
    }

    /// Tells of no deletion of these: they were gone already, or on their way out.
    #[must_use]
    pub fn with_absent(self, absent: Vec<Removal>) -> Self {
        Self { absent, ..self }
    }

    /// What is to be deleted with the Runnable's rights, the uid being the precondition.
    pub fn removals(&self) -> &[Removal] {
        &self.removals
    }

    /// The outcome, given the deletions that failed (NotFound is no failure) and why.
    pub fn report(mut self, failed: &[FailedRemoval]) -> Outcome {
        let failed = &report::scrubbed(failed, &self.taint);
        let previous = &self.runnable.status;
        self.status.conditions = self.conditions(failed);
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.warning());
        events.extend(report::unwatched_event(
            &previous.conditions,
            &self.status.conditions,
        ));
        events.extend(report::removal_events(
            &self.removals,
            failed,
            &self.absent,
            &|object, why| was_pending(&previous.conditions, object, why),
        ));
        for event in &mut events {
            // Names of objects, above all: a template may have put anything into them.
            event.message = self.taint.scrub(std::mem::take(&mut event.message));
        }
        let hindrances: Vec<ErrorKind> = self
            .error
            .iter()
            .map(|error| error.verdict().kind)
            .chain(
                failed
                    .iter()
                    .map(|(_, why)| ErrorKind::of_deletion(why.kind)),
            )
            .collect();
        let retry = self.error.as_ref().map(|error| error.verdict().retry);
        let retry = retry
            .into_iter()
            .chain(failed.iter().map(|_| Retry::Backoff));
        let (ready, reason) = report::ready(&self.status.conditions);
        Outcome {
            changed: self.status != *previous,
            // The types have string keys and no failing serializer, so the fallback is never taken.
            status: serde_json::to_value(&self.status).unwrap_or_default(),
            events,
            retry: retry.max().unwrap_or(Retry::AwaitChange),
            removals: self.removals,
            again: self.again,
            write_now: self.made_run || tells_of_an_end(&self.status, previous),
            unless_changed: None,
            ready,
            reason,
            end: Ended::of(hindrances, ready),
        }
    }

    fn conditions(&self, failed: &[FailedRemoval]) -> Vec<Condition> {
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
            unwatched: &self.unwatched,
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
                    | NotRun::ServiceAccount(_)
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
    fn warning(&self) -> Option<OwnerEvent> {
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

/// Whether a run is over that was not when the status was last written. Ready is often what it was, so a queue that
/// holds back what changes nothing there would make each run again a quarter of a second longer.
fn tells_of_an_end(status: &RunnableStatus, previous: &RunnableStatus) -> bool {
    let ended = |run: &RunRecord| run.finished.is_some() && !previous.runs.contains(run);
    status.runs.iter().any(ended)
}

/// The outcome for a Runnable that did not come to a run. `now` is for transition times.
pub fn report_not_run(runnable: &Runnable, why: NotRun, now: Timestamp) -> Outcome {
    let conclusion = RunConclusion {
        error: Some(RunError::NotRun(why)),
        ..RunConclusion::nothing(runnable, now)
    };
    conclusion.report(&[])
}

/// What condition `StampedObjectCondition` says (docs/behaviour/runnables.md#conditions). Without a
/// rule of the template it mirrors the condition
/// `Succeeded`, and says nothing as long as there is none.
fn mirrored(template: &RunTemplate, run: &Observed) -> Health {
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

/// The runs that were stamped from this template: outputs and retention are about these
/// (docs/behaviour/runnables.md#history).
fn of_template<'r>(
    template: &'r RunTemplate,
    runs: &'r [Observed],
) -> impl Iterator<Item = &'r Observed> {
    runs.iter().filter(|run| {
        let labels = run.object.get("metadata").and_then(|it| it.get("labels"));
        let name = labels.and_then(|it| it.get(labels::RUN_TEMPLATE_NAME));
        name.and_then(Value::as_str) == Some(template.name.as_str())
    })
}

/// Whether the condition named the deletion before, and this reason.
fn was_pending(previous: &[Condition], object: &crate::ObjectRef, why: &str) -> bool {
    let pending = conditions::of_type(previous, ConditionType::DeletionPending);
    let named = events::shown(object).map(|shown| format!("[{shown}]: {why}"));
    pending.is_some_and(|pending| named.is_some_and(|named| pending.message.contains(&named)))
}
