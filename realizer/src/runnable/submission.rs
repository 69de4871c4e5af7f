//! From a rendering to the run that is asked for, and by which digest it is known.

use std::collections::BTreeMap;

use api_types::labels;
use api_types::names::ResourceName;
use serde_json::Value;

use super::error::RunError;
use super::{Run, RunTemplate, Runnable, attempt, history};
use crate::template::stamp::{WantedLabels, check_submittable, decorate, display_name};
use crate::values::{canonical, redaction};
use crate::{
    Lifecycle, Observed, Precondition, Recorded, Rendered, Submission, SubmitFailure,
    SubmitFailureKind,
};

/// What stands for the name of a step, which a Runnable does not have.
pub(super) fn step() -> ResourceName {
    "run".into()
}

impl Run<'_> {
    pub(super) fn submission(&self, rendered: Rendered) -> Result<Submission, RunError> {
        let object = rendered
            .and_then(|rendering| {
                decorate(rendering, self.runnable.identity(), &self.labels)
                    .map_err(|error| error.to_string().into())
            })
            .map_err(|failure| RunError::Stamp {
                cause: self.shown(&failure.message),
                passes_by_itself: failure.passes_by_itself,
            })?;
        let mut labels =
            check_submittable(&object, Lifecycle::Immutable, &self.labels).map_err(|error| {
                let cause = error.to_string();
                self.refused(&object, SubmitFailureKind::Rejected, &cause)
            })?;
        labels.retain(|key, _| *key == labels::RUNNABLE_NAME);
        Ok(Submission {
            resource: step(),
            name_seed: redaction::name_seed(&object, &self.taint, &self.key),
            digest: self.digest(&object),
            basis: self.template.body.basis(|| self.context()),
            object,
            lifecycle: Lifecycle::Immutable,
            family: labels,
            reads: self.template.reads(),
            precondition: Precondition::None,
            recorded: Recorded {
                runs: history::known(&self.runnable.status.runs),
                ..Recorded::default()
            },
            adopt: false,
            refuses_foreign_fields: false,
            asks_whose_values: false,
        })
    }

    fn refused(&self, object: &Value, kind: SubmitFailureKind, cause: &str) -> RunError {
        RunError::Apply {
            kind,
            object: self.shown(&name_or_prefix(object)),
            cause: self.shown(cause),
        }
    }

    pub(super) fn failed(&self, submission: &Submission, failure: &SubmitFailure) -> RunError {
        if failure.kind == SubmitFailureKind::List {
            let cause = self.shown(&failure.message);
            return RunError::List { cause };
        }
        self.refused(&submission.object, failure.kind, &failure.message)
    }

    /// A text without the values of a selected Secret.
    pub(super) fn shown(&self, text: &str) -> String {
        self.taint.scrub(text)
    }

    /// The digest that a run with this rendering is known by: with values of a Secret in it, under the key of the
    /// installation, since status tells it.
    pub(super) fn digest(&self, object: &Value) -> String {
        let digest = canonical::digest(object);
        if self.taint.is_none() && !redaction::is_secret(object) {
            return digest;
        }
        let keyed = self.key.digest("run", &digest);
        keyed.map_or(digest, |keyed| attempt::marked(&keyed))
    }

    /// The digest of a run as status tells it; without a key, that of a run with values of a Secret in it is not told.
    pub(super) fn shown_digest(&self, run: &Observed) -> Option<String> {
        let is_secret = || !self.taint.is_none() || redaction::is_secret(&run.object);
        let digest = run.digest.clone()?;
        let is_tellable = attempt::is_marked(&digest) || !(is_secret() || self.was_secret(run));
        is_tellable.then_some(digest)
    }

    /// Whether a run was rendered from a Secret: its digest says so, or was not told.
    pub(super) fn was_secret(&self, run: &Observed) -> bool {
        let recorded = || history::record_of(&self.runnable.status.runs, run);
        run.digest.as_deref().is_some_and(attempt::is_marked)
            || recorded()
                .is_some_and(|recorded| recorded.uid.is_some() && recorded.digest.is_none())
    }
}

/// The labels of a run (docs/behaviour/stamping.md#labels).
pub(super) fn run_labels(runnable: &Runnable, template: &RunTemplate) -> WantedLabels {
    let mut labels = family(runnable);
    labels.insert(labels::RUN_TEMPLATE_NAME, template.name.to_string());
    labels
}

/// The label that all runs of a Runnable have, whatever they were stamped from
/// (docs/behaviour/runnables.md#runs).
pub(super) fn family(runnable: &Runnable) -> WantedLabels {
    BTreeMap::from([(labels::RUNNABLE_NAME, runnable.name.to_string())])
}

/// `<ns>/<name>`, or the prefix of a name that is generated.
fn name_or_prefix(object: &Value) -> String {
    let metadata = &object["metadata"];
    let prefix = metadata["generateName"].as_str();
    let prefix = prefix.filter(|_| metadata.get("name").is_none());
    format!("{}{}", display_name(object), prefix.unwrap_or_default())
}
