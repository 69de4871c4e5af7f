//! Outputs: those of the newest run that succeeded (docs/behaviour/runnables.md#outputs).

use std::collections::BTreeMap;

use serde_json::Value;

use super::RunTemplate;
use super::error::RunError;
use crate::Observed;
use crate::values::redaction::{self, Taint};

/// Reads all outputs of a run; of several paths that fail, the last one is told.
///
/// Values of a Secret are not read, and those that hold a value of the selected one (`taint`) are not, either: status is
/// where they would end, and everyone who may read the Runnable would see them.
pub(super) fn read(
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
