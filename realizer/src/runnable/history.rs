//! The runs that status remembers.

use api_types::ConditionStatus;
use api_types::condition::whole_seconds;
use api_types::runnable::{MOST_RUNS, RunRecord, RunResult};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use super::plan::name;
use super::{RunTemplate, Runnable};
use crate::health::{Health, Subject};
use crate::{Observed, redaction};

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

/// The runs, newest first. `shown` takes secret values out of messages.
pub(super) fn records(
    runnable: &Runnable,
    template: &RunTemplate,
    runs: &[Observed],
    shown: &dyn Fn(&str) -> String,
    now: Timestamp,
) -> Vec<RunRecord> {
    let mut newest_first: Vec<&Observed> = runs.iter().collect();
    newest_first.sort_by(|a, b| b.age().cmp(&a.age()));
    let present = newest_first.iter().map(|run| {
        let health = judge(template, run);
        let is_over = health.status != ConditionStatus::Unknown;
        RunRecord {
            name: name(run),
            digest: run.digest.clone(),
            started: started(run),
            finished: is_over.then(|| finished(runnable, template, run, now)),
            result: match health.status {
                ConditionStatus::True => RunResult::Succeeded,
                ConditionStatus::False => RunResult::Failed,
                ConditionStatus::Unknown => RunResult::Running,
            },
            message: cut(shown(&health.message)),
        }
    });
    let known = runnable.status.runs.iter();
    let gone = known.filter(|record| !newest_first.iter().any(|run| is_of(record, run)));
    let gone = gone.map(|record| removed(record, now));
    let mut records: Vec<RunRecord> = present.chain(gone).collect();
    // Stable: what started in the same second stays in this order.
    records.sort_by_key(|record| std::cmp::Reverse(record.started.as_ref().map(|time| time.0)));
    records.truncate(MOST_RUNS);
    records
}

fn record_of<'r>(records: &'r [RunRecord], run: &Observed) -> Option<&'r RunRecord> {
    records.iter().find(|record| is_of(record, run))
}

/// A template may give its objects a fixed name, so that the name alone does not tell.
fn is_of(record: &RunRecord, run: &Observed) -> bool {
    record.name == name(run) && record.started == started(run)
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
    let text = run.object.pointer("/metadata/creationTimestamp");
    let time = text.and_then(Value::as_str)?.parse().ok()?;
    Some(Time(time))
}

fn cut(mut message: String) -> String {
    if let Some((end, _)) = message.char_indices().nth(MOST_MESSAGE_CHARS) {
        message.truncate(end);
    }
    message
}
