//! What to do about a validation that has not succeeded, and about a revision that waits for one.

use api_types::{Condition, Reason};

use super::{Subject, examine};
use crate::tree::Step;

/// Absent when the condition speaks of no validation.
pub(super) fn advice(
    subject: &Subject<'_>,
    step: &Step,
    condition: &Condition,
    read_template: &str,
) -> Option<String> {
    let is = |reason: &Reason| condition.reason == reason.as_str();
    let object = step.object.as_ref();
    let examine = object.map(|object| examine(object, subject.namespace));
    let examine = examine.as_deref();
    if is(&Reason::ValidationRunning) {
        let wait = "wait: it goes on by itself when the validation has ended, or its time is over";
        return Some(joined(wait, examine));
    }
    if is(&Reason::ValidationFailed) {
        let mend = "push a new commit that mends it: this revision is not validated again, however long you wait";
        return Some(joined(mend, examine));
    }
    if is(&Reason::ValidationTimedOut) {
        let find = format!(
            "see why it does not end; the environment is free for a new commit meanwhile, and spec.timeout of the \
             template gives it more time: {read_template}"
        );
        return Some(joined(&find, examine));
    }
    None
}

fn joined(what: &str, examine: Option<&str>) -> String {
    match examine {
        Some(examine) => format!("{what}; {examine}"),
        None => what.to_owned(),
    }
}
