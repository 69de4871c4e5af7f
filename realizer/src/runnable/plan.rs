//! What is to be done, given the runs there are.

use std::time::Duration;

use api_types::ConditionStatus;
use api_types::runnable::{Concurrency, RunRecord, RunResult};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::attempt::{Attempts, backoff};
use super::{RunTemplate, Runnable, history};
use crate::template::{family_members, runs};
use crate::{Observed, Position, Removal, RemovalReason};

/// A held run is looked at again after this time, should no event come: its kind may be one that cannot be watched.
pub(super) const HELD_LOOK: Duration = Duration::from_secs(30);

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plan {
    /// The cluster is to hold this attempt, at this position.
    Submit {
        /// Which attempt.
        number: u32,
        /// Where it stands among the runs.
        position: Position,
    },
    /// The newest run has ended and is gone; there is nothing to do.
    Rest,
    /// Nothing may be started before these runs are over.
    Hold(Vec<String>),
}

/// The runs there are, oldest first, and what they are judged by.
pub(super) struct RunFacts<'s> {
    pub(super) runnable: &'s Runnable,
    pub(super) template: &'s RunTemplate,
    pub(super) attempts: &'s Attempts,
    pub(super) runs: &'s [Observed],
    pub(super) now: Timestamp,
}

/// A run that is there, or one that has ended and that somebody deleted: what it came to is known, and it is not run again.
struct Latest<'s> {
    sequence: u64,
    /// Which attempt at the present rendering it is.
    number: Option<u32>,
    status: ConditionStatus,
    finished: Time,
    /// `None` when it is gone, or on its way out.
    live: Option<&'s Observed>,
}

impl<'s> RunFacts<'s> {
    /// Decides.
    pub(super) fn plan(&self) -> Plan {
        let latest = self.latest();
        match latest.as_ref().and_then(|run| Some((run, run.number?))) {
            Some((run, number)) if self.wait(run, number) == Some(Duration::ZERO) => {
                self.start(number + 1)
            }
            Some((run, _)) if run.live.is_none() => Plan::Rest,
            Some((run, number)) => Plan::Submit {
                number,
                position: Position {
                    sequence: run.sequence,
                    is_there: true,
                },
            },
            None => self.start(1),
        }
    }

    /// When the newest run, which failed, is to be tried again.
    pub(super) fn retry_in(&self) -> Option<Duration> {
        let run = self.latest()?;
        let wait = self.wait(&run, run.number?)?;
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
            resource: super::submission::step(),
            object: family_members::object_ref(run),
            reason: RemovalReason::Replaced,
        });
        removals.collect()
    }

    /// The run that was started last and is there; what is being deleted does not count.
    pub(super) fn newest(&self) -> Option<&'s Observed> {
        family_members::newest(self.known().filter(|run| !run.terminating))
    }

    /// The run that was started last for the present rendering.
    pub(super) fn newest_attempt(&self) -> Option<&'s Observed> {
        family_members::newest(self.known().filter(|run| self.number(run).is_some()))
    }

    /// The run that was started last, whether it is there or has ended and is gone.
    fn latest(&self) -> Option<Latest<'s>> {
        let found = self.known().map(|run| Latest {
            sequence: run.sequence,
            number: self.number(run),
            status: self.health(run),
            finished: history::finished(self.runnable, self.template, run, self.now),
            live: (!run.terminating).then_some(run),
        });
        let counts = |run: &Latest<'_>| run.live.is_some() || self.is_over(run.status);
        let gone = self.gone().filter_map(|(sequence, record)| {
            let status = match record.result {
                RunResult::Succeeded => ConditionStatus::True,
                RunResult::Failed => ConditionStatus::False,
                RunResult::Running | RunResult::Removed => return None,
            };
            Some(Latest {
                sequence,
                number: self.attempts.number(record.digest.as_deref()?),
                status,
                finished: record.finished.clone().unwrap_or(Time(self.now)),
                live: None,
            })
        });
        found
            .chain(gone)
            .filter(counts)
            .max_by_key(|run| run.sequence)
    }

    /// Runs that status remembers and the cluster does not hold, with their positions.
    fn gone(&self) -> impl Iterator<Item = (u64, &'s RunRecord)> {
        let records = history::numbered(&self.runnable.status.runs);
        let runs = self.runs;
        records.filter(move |(_, record)| !runs.iter().any(|run| history::is_of(record, run)))
    }

    fn known(&self) -> impl Iterator<Item = &'s Observed> {
        self.runs.iter().filter(|run| run.is_known)
    }

    /// Whether a run with this verdict has ended. Without a rule nothing says so, except that its outputs are there.
    fn is_over(&self, status: ConditionStatus) -> bool {
        let judges = !self.template.health.is_always_healthy() || !self.template.outputs.is_empty();
        judges && status != ConditionStatus::Unknown
    }

    /// Which attempt at the present rendering a run is.
    fn number(&self, run: &Observed) -> Option<u32> {
        self.attempts.number(run.digest.as_deref()?)
    }

    fn health(&self, run: &Observed) -> ConditionStatus {
        self.template.rule(self.runnable.retention).judge(run)
    }

    /// How long to wait until a failed run is tried again; `None` if it is not.
    fn wait(&self, run: &Latest<'_>, number: u32) -> Option<Duration> {
        let is_last = number >= self.runnable.attempts;
        if is_last || run.status != ConditionStatus::False {
            return None;
        }
        let since = self.now.duration_since(run.finished.0).unsigned_abs();
        let since = if run.finished.0 > self.now {
            Duration::ZERO
        } else {
            since
        };
        Some(backoff(self.runnable.backoff, number).saturating_sub(since))
    }

    fn start(&self, number: u32) -> Plan {
        let sequence = self.next_sequence(self.attempts.digest(number));
        let position = Position::to_be_made(sequence);
        if self.runnable.concurrency == Concurrency::Allow {
            return Plan::Submit { number, position };
        }
        let going: Vec<String> = self.going().map(name).collect();
        if going.is_empty() {
            Plan::Submit { number, position }
        } else {
            Plan::Hold(going)
        }
    }

    /// Behind all others. Only a run that vanished before its end is made again where it was: if it has just lost its labels,
    /// it is found by its name.
    fn next_sequence(&self, digest: &str) -> u64 {
        let found = self.known().map(|run| run.sequence).max().unwrap_or(0);
        let newest_gone = self.gone().max_by_key(|(sequence, _)| *sequence);
        match newest_gone.filter(|(sequence, _)| *sequence > found) {
            Some((sequence, record)) => {
                let is_same = record.digest.as_deref() == Some(digest);
                let vanished = matches!(record.result, RunResult::Running | RunResult::Removed);
                if is_same && vanished {
                    sequence
                } else {
                    sequence.saturating_add(1).min(runs::HIGHEST)
                }
            }
            None => found.saturating_add(1).min(runs::HIGHEST),
        }
    }

    /// Runs that are going and not those of the present rendering; or on their way out, of whatever rendering. One of the
    /// Go controller has no digest and may well be of the present rendering: it is adopted then, and never in the way.
    fn going(&self) -> impl Iterator<Item = &'s Observed> {
        let is_other = |run: &Observed| run.digest.is_some() && self.number(run).is_none();
        let there = self.known().filter(|run| !run.is_gone);
        there.filter(move |run| {
            self.health(run) == ConditionStatus::Unknown && (run.terminating || is_other(run))
        })
    }
}

/// Name of a run.
pub(super) fn name(run: &Observed) -> String {
    family_members::object_ref(run).name
}
