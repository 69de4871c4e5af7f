//! Outputs: those of the newest run that succeeded (docs/behaviour/runnables.md#outputs).

use std::collections::BTreeMap;

use api_types::ConditionStatus;
use api_types::event::EventReason;
use api_types::runnable::RunResult;
use serde_json::Value;

use super::{RunConclusion, of_template};
use crate::Observed;
use crate::runnable::attempt::Attempts;
use crate::runnable::error::RunError;
use crate::runnable::{Run, RunTemplate, history};
use crate::status::events;
use crate::template::family_members::{newest, object_ref};
use crate::values::redaction::{self, Taint};

impl RunConclusion<'_> {
    /// Of the newest run that succeeded. Without one, or if a path fails, the outputs stay what they were: who reads them
    /// must not see them vanish because of an error.
    pub(super) fn read_outputs(&mut self, walk: &Run<'_>, runs: &[Observed], attempts: &Attempts) {
        let (template, taint) = (walk.template, &walk.taint);
        self.status
            .outputs
            .retain(|_, value| taint.carried_by([&*value]).is_none());
        let rule = template.rule(self.runnable.retention);
        // A run that succeeded has succeeded, also while it is being deleted.
        let succeeded = |run: &&Observed| run.is_known && rule.judge(run) == ConditionStatus::True;
        let newest = newest(of_template(template, runs).filter(succeeded));
        let Some(run) = newest.filter(|run| !self.is_remembered_behind(run)) else {
            return;
        };
        // A run of other inputs may hold a value that the Secret had before, and by which it is not recognized any more.
        let is_safe = if taint.is_none() {
            redaction::is_secret(&run.object) || !walk.was_secret(run)
        } else {
            let digest = run.digest.as_deref();
            digest.is_some_and(|digest| attempts.number(digest).is_some())
        };
        if template.outputs.is_empty() || !is_safe {
            return;
        }
        match read(template, run, taint) {
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
}

/// Reads all outputs of a run; of several paths that fail, the last one is told.
///
/// Values of a Secret are not read, and those that hold a value of the selected one (`taint`) are not, either: status is
/// where they would end, and everyone who may read the Runnable would see them.
fn read(
    template: &RunTemplate,
    run: &Observed,
    taint: &Taint,
) -> Result<BTreeMap<String, Value>, RunError> {
    let secret = redaction::is_secret(&run.object);
    let mut values = BTreeMap::new();
    let mut failure = None;
    for (name, path) in &template.outputs {
        let read = if secret {
            Err("the object is a Secret, whose values are not written into a status".to_owned())
        } else {
            match path.read(&run.object) {
                Ok(value) if !taint.carried_by([&*value]).is_none() => Err(
                    "it holds a value of the selected Secret, which is not written into a status"
                        .to_owned(),
                ),
                read => read.map_err(|problem| taint.scrub(problem.to_string())),
            }
        };
        match read {
            Ok(value) => {
                values.insert(name.clone(), value.into_owned());
            }
            Err(cause) => {
                failure = Some(RunError::Output {
                    path: path.text().to_owned(),
                    cause,
                });
            }
        }
    }
    failure.map_or(Ok(values), Err)
}
