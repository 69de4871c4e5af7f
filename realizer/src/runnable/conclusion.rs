//! A finished walk of a Runnable: what is to be deleted, and then what to report.

mod conditions;
mod outputs;

use std::time::Duration;

use api_types::runnable::{RunRecord, RunnableStatus};
use api_types::{StampedRef, labels};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use self::conditions::{mirrored, was_pending};
use super::attempt::Attempts;
use super::error::{NotRun, RunError};
use super::plan::HELD_LOOK;
use super::run::{CameTo, End};
use super::submission::step;
use super::{Run, RunTemplate, Runnable, history};
use crate::owner::owner_status::stamped_ref;
use crate::status::{events, report};
use crate::template::family_members::{object_ref, superseded};
use crate::template::health::Health;
use crate::values::redaction::Taint;
use crate::{
    Ended, ErrorKind, FailedRemoval, Observed, Outcome, OwnerEvent, Removal, Retry, ShellFacts,
    Write,
};

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
    /// What of the selected object must not be shown.
    taint: Taint,
    /// What the shell met with.
    pub shell: ShellFacts,
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
            End::Looked {
                runs,
                rendering,
                came_to,
            } => conclusion.looked(&run, &runs, &rendering, came_to),
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
            taint: Taint::NONE,
            shell: ShellFacts::default(),
        }
    }

    fn looked(&mut self, run: &Run<'_>, runs: &[Observed], rendering: &str, came_to: CameTo) {
        let attempts = Attempts::of(rendering, self.runnable.rerun.as_deref());
        let situation = run.situation(&attempts, runs);
        self.removals = situation.replaced();
        let rests = came_to == CameTo::Rested;
        if !matches!(came_to, CameTo::Held(_)) {
            self.again = situation.retry_in();
            let rerun = &mut self.status.last_rerun_requested_at;
            rerun.clone_from(&self.runnable.rerun);
        }
        let latest = match came_to {
            CameTo::Held(going) => {
                self.again = Some(HELD_LOOK);
                self.error = Some(RunError::Held { going });
                situation.newest().cloned()
            }
            CameTo::Submitted { submitted, write } => {
                self.submitted(run, &submitted, write, runs);
                Some(*submitted)
            }
            // All that status says of the run stays, and what it did not say yet is added.
            CameTo::Rested => situation.newest_attempt().cloned(),
        };
        self.observe(run, latest, runs);
        self.is_gone = rests && self.latest.is_none();
        self.read_outputs(run, runs, &attempts);
    }

    fn submitted(&mut self, run: &Run<'_>, submitted: &Observed, write: Write, runs: &[Observed]) {
        let rule = run.template.rule(self.runnable.retention);
        let retired = superseded(rule, &step(), submitted, of_template(run.template, runs));
        self.removals.extend(retired);
        self.made_run = write == Write::Created;
        self.applied(submitted, write);
    }

    fn applied(&mut self, submitted: &Observed, write: Write) {
        let Some(shown) = events::shown(&object_ref(submitted)) else {
            return;
        };
        let done = match write {
            // Runs are immutable: nothing of them can be undone but by deleting them.
            Write::Unchanged | Write::Deferred | Write::Undone(_) => return,
            Write::Created => "Created",
            Write::Patched => "Patched",
        };
        let event = events::applied(format!("{done} object [{shown}]"));
        self.events.push(event);
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
            &self.shell.absent,
            &|object, why| was_pending(&previous.conditions, object, why),
        ));
        for event in &mut events {
            // Names of objects, above all: a template may have put anything into them.
            event.message = self.taint.scrub(std::mem::take(&mut event.message));
        }
        let verdict = self.error.as_ref().map(RunError::verdict);
        let kinds = verdict.iter().map(|verdict| verdict.kind);
        let deletions = failed
            .iter()
            .map(|(_, why)| ErrorKind::of_deletion(why.kind));
        let retries = verdict.iter().map(|verdict| verdict.retry);
        let retries = retries.chain(failed.iter().map(|_| Retry::Backoff));
        let (ready, reason) = report::ready(&self.status.conditions);
        Outcome {
            changed: self.status != *previous,
            // The types have string keys and no failing serializer, so the fallback is never taken.
            status: serde_json::to_value(&self.status).unwrap_or_default(),
            events,
            retry: retries.max().unwrap_or(Retry::AwaitChange),
            removals: self.removals,
            again: self.again,
            write_now: self.made_run || tells_of_an_end(&self.status, previous),
            unless_changed: None,
            obsolete_artifacts: Vec::new(),
            tells_all: false,
            ready,
            reason,
            end: Ended::of(kinds.chain(deletions), ready),
        }
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

/// The runs that were stamped from this template: outputs and retention are about these
/// (docs/behaviour/runnables.md#history).
fn of_template<'r>(
    template: &'r RunTemplate,
    runs: &'r [Observed],
) -> impl Iterator<Item = &'r Observed> {
    runs.iter().filter(|run| {
        let labels = &run.object["metadata"]["labels"];
        labels[labels::RUN_TEMPLATE_NAME].as_str() == Some(template.name.as_str())
    })
}
