//! What is to be done, given the runs there are.

use std::time::Duration;

use api_types::ConditionStatus;
use api_types::runnable::Concurrency;
use jiff::Timestamp;

use super::attempt::{Attempts, backoff};
use super::{RunTemplate, Runnable, history};
use crate::{Observed, Removal, RemovalReason, family_members};

/// A held run is looked at again after this time, should no event come: its kind may be one that cannot be watched.
pub(super) const HELD_LOOK: Duration = Duration::from_secs(30);

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// The cluster is to hold this attempt.
    Submit(u32),
    /// Nothing may be started before these runs are over.
    Hold(Vec<String>),
}

/// The runs there are, oldest first, and what they are judged by.
pub(super) struct Situation<'s> {
    pub(super) runnable: &'s Runnable,
    pub(super) template: &'s RunTemplate,
    pub(super) attempts: &'s Attempts,
    pub(super) runs: &'s [Observed],
    pub(super) now: Timestamp,
}

impl Situation<'_> {
    /// Decides.
    pub(super) fn plan(&self) -> Plan {
        match self.newest().and_then(|run| Some((run, self.number(run)?))) {
            Some((run, number)) if self.wait(run, number) == Some(Duration::ZERO) => {
                self.start(number + 1)
            }
            Some((_, number)) => Plan::Submit(number),
            None => self.start(1),
        }
    }

    /// When the newest run, which failed, is to be tried again.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        let run = self.newest()?;
        let wait = self.wait(run, self.number(run)?)?;
        // Not at once: if it could have been tried again, it would have been.
        Some(wait.max(Duration::from_secs(1)))
    }

    /// Runs of other inputs that are going, if the Runnable wants them replaced.
    pub(super) fn replaced(&self) -> Vec<Removal> {
        if self.runnable.concurrency != Concurrency::Replace {
            return Vec::new();
        }
        let going = self.going().filter(|run| !run.terminating);
        let removals = going.map(|run| Removal {
            resource: super::run::step(),
            object: family_members::object_ref(run),
            reason: RemovalReason::Replaced,
        });
        removals.collect()
    }

    /// The run that was started last; what is being deleted does not count.
    pub(super) fn newest(&self) -> Option<&Observed> {
        let staying = self.runs.iter().filter(|run| !run.terminating);
        staying.max_by(|a, b| a.age().cmp(&b.age()))
    }

    /// Which attempt at the present rendering a run is.
    fn number(&self, run: &Observed) -> Option<u32> {
        self.attempts.number(run.digest.as_deref()?)
    }

    fn health(&self, run: &Observed) -> ConditionStatus {
        self.template.rule(self.runnable.retention).judge(run)
    }

    /// How long to wait until a failed run is tried again; `None` if it is not.
    fn wait(&self, run: &Observed, number: u32) -> Option<Duration> {
        let is_last = number >= self.runnable.attempts;
        if is_last || self.health(run) != ConditionStatus::False {
            return None;
        }
        let finished = history::finished(self.runnable, self.template, run, self.now);
        let since = self.now.duration_since(finished.0).unsigned_abs();
        let since = if finished.0 > self.now {
            Duration::ZERO
        } else {
            since
        };
        Some(backoff(self.runnable.backoff, number).saturating_sub(since))
    }

    fn start(&self, number: u32) -> Plan {
        if self.runnable.concurrency == Concurrency::Allow {
            return Plan::Submit(number);
        }
        let going: Vec<String> = self.going().map(name).collect();
        if going.is_empty() {
            Plan::Submit(number)
        } else {
            Plan::Hold(going)
        }
    }

    /// Runs that are going and not those of the present rendering; or on their way out, of whatever rendering. One of the
    /// Go controller has no digest and may well be of the present rendering: it is adopted then, and never in the way.
    fn going(&self) -> impl Iterator<Item = &Observed> {
        let is_other = |run: &Observed| run.digest.is_some() && self.number(run).is_none();
        self.runs.iter().filter(move |run| {
            self.health(run) == ConditionStatus::Unknown && (run.terminating || is_other(run))
        })
    }
}

/// Name of a run.
pub(super) fn name(run: &Observed) -> String {
    family_members::object_ref(run).name
}
