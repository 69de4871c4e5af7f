//! The runs that status remembers.

use api_types::ConditionStatus;
use api_types::condition::{cut, whole_seconds};
use api_types::runnable::{MOST_RUNS, RunRecord, RunResult};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::plan::name;
use super::{Run, RunTemplate, Runnable};
use crate::template::health::{Health, Subject};
use crate::values::redaction;
use crate::{KnownRun, Observed};

/// The most characters of a message that are remembered.
const MOST_MESSAGE_CHARS: usize = 1024;

/// When a run ended: what the run says, else what status says, else now.
pub(super) fn finished(
    runnable: &Runnable,
    template: &RunTemplate,
    run: &Observed,
    now: Timestamp,
) -> Time {
    let said = template.health.decided_at(&run.object);
    let known = || record_of(&runnable.status.runs, run)?.finished.clone();
    whole_seconds(&said.or_else(known).unwrap_or(Time(now)))
}

/// The verdict on a run.
pub(super) fn judge(template: &RunTemplate, run: &Observed) -> Health {
    template.health.judge(Subject {
        object: Some(&run.object),
        kind: api_types::TemplateKind::Plain,
        has_outputs: false,
        secret: redaction::is_secret(&run.object),
    })
}

/// The runs, newest first, without values of a selected Secret.
pub(super) fn records(walk: &Run<'_>, runs: &[Observed]) -> Vec<RunRecord> {
    let &Run { runnable, now, .. } = walk;
    // What is not known to be ours must not look as if status knew it.
    let mut newest_first: Vec<&Observed> = runs.iter().filter(|run| run.is_known).collect();
    newest_first.sort_by(|a, b| b.order_key().cmp(&a.order_key()));
    let present = newest_first.iter().map(|run| record(walk, run));
    let known = runnable.status.runs.iter();
    let gone = known.filter(|record| !newest_first.iter().any(|run| is_of(record, run)));
    let gone = gone.map(|record| removed(record, now));
    let mut records: Vec<RunRecord> = present.chain(gone).collect();
    // Stable: what started in the same second stays in this order.
    records.sort_by_key(|record| {
        let started = record.started.as_ref().map(|time| time.0);
        std::cmp::Reverse((record.sequence, started))
    });
    records.truncate(MOST_RUNS);
    records
}

fn record(walk: &Run<'_>, run: &Observed) -> RunRecord {
    let health = judge(walk.template, run);
    let is_over = health.status != ConditionStatus::Unknown;
    let record = RunRecord {
        name: name(run),
        uid: uid(run).map(str::to_owned),
        sequence: Some(run.sequence),
        digest: walk.shown_digest(run),
        started: started(run),
        finished: is_over.then(|| finished(walk.runnable, walk.template, run, walk.now)),
        result: match health.status {
            ConditionStatus::True => RunResult::Succeeded,
            ConditionStatus::False => RunResult::Failed,
            ConditionStatus::Unknown => RunResult::Running,
        },
        message: cut(walk.shown(&health.message), MOST_MESSAGE_CHARS),
    };
    if run.is_gone {
        return removed(&record, walk.now);
    }
    record
}

pub(super) fn record_of<'r>(records: &'r [RunRecord], run: &Observed) -> Option<&'r RunRecord> {
    records.iter().find(|record| is_of(record, run))
}

/// Whether a record is that of a run. An earlier version wrote no uid. The name alone does not tell: a template may give its
/// objects a fixed one.
pub(super) fn is_of(record: &RunRecord, run: &Observed) -> bool {
    match &record.uid {
        Some(known) => uid(run) == Some(known),
        None => record.name == name(run) && record.started == started(run),
    }
}

/// Records with their positions. An earlier version wrote none; the newest stands first.
pub(super) fn numbered(records: &[RunRecord]) -> impl Iterator<Item = (u64, &RunRecord)> {
    let position = |behind: usize| u64::try_from(behind).unwrap_or(0) + 1;
    let ranks = records.iter().rev().enumerate();
    ranks.map(move |(behind, record)| {
        let sequence = record.sequence.unwrap_or_else(|| position(behind));
        (sequence, record)
    })
}

/// The runs that status knows, for the shell.
pub(super) fn known(records: &[RunRecord]) -> std::sync::Arc<[KnownRun]> {
    let known = numbered(records).map(|(sequence, record)| KnownRun {
        uid: record.uid.clone(),
        name: record.name.clone(),
        started: record.started.as_ref().map(|time| time.0.to_string()),
        digest: record.digest.clone(),
        sequence,
        state: None,
        beside: None,
    });
    known.collect()
}

fn uid(run: &Observed) -> Option<&str> {
    run.object["metadata"]["uid"].as_str()
}

fn removed(record: &RunRecord, now: Timestamp) -> RunRecord {
    match record.result {
        RunResult::Running => RunRecord {
            result: RunResult::Removed,
            finished: Some(whole_seconds(&Time(now))),
            ..record.clone()
        },
        RunResult::Succeeded | RunResult::Failed | RunResult::Removed => record.clone(),
    }
}

fn started(run: &Observed) -> Option<Time> {
    let text = run.object["metadata"]["creationTimestamp"].as_str()?;
    text.parse().ok().map(Time)
}
