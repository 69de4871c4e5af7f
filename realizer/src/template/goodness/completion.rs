//! `observedCompletion`: the values by which an object says that it is done.

use api_types::templates::{CompletionCondition, ObservedCompletion};
use serde_json::Value;
use template_language::go_format;

use super::{NotDone, shown, shown_problem};
use crate::values::field_path::{FieldPath, PathProblem};
use crate::values::redaction::Veil;

#[derive(Clone, Debug)]
pub(super) struct Completion {
    generation: FieldPath,
    observed_generation: FieldPath,
    succeeded: Expected,
    failed: Option<Expected>,
}

/// A path and the string expected there.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    path: FieldPath,
    value: String,
}

impl Completion {
    pub(super) fn new(completion: &ObservedCompletion) -> Self {
        Self {
            generation: FieldPath::new("metadata.generation"),
            observed_generation: FieldPath::new("status.observedGeneration"),
            succeeded: Expected::new(&completion.succeeded),
            failed: completion.failed.as_ref().map(Expected::new),
        }
    }

    /// Whether the object says of which generation its status speaks.
    pub(super) fn says_generation(&self, object: &Value) -> bool {
        self.observed_generation.read(object).is_ok()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &FieldPath> {
        let expected = [Some(&self.succeeded), self.failed.as_ref()];
        let expected = expected.into_iter().flatten().map(Expected::path);
        [&self.generation, &self.observed_generation]
            .into_iter()
            .chain(expected)
    }

    pub(super) fn check(&self, object: &Value, veil: Veil<'_>) -> Result<(), NotDone> {
        if let Some(failed) = &self.failed {
            failed.check_failed(object)?;
        }
        self.succeeded.check_succeeded(object, veil)
    }

    pub(super) fn check_generation(&self, object: &Value) -> Result<(), NotDone> {
        let generation = self
            .generation
            .read(object)
            .map_err(|problem| NotDone::Path {
                path: self.generation.text().to_owned(),
                cause: format!("failed to evaluate metadata.generation: {problem}"),
                is_hopeless: false,
            })?;
        let observed = self.observed_generation.read(object).map_err(|problem| {
            NotDone::ObservedGeneration {
                problem,
                has_status: has_status(object),
            }
        })?;
        if generation == observed {
            return Ok(());
        }
        Err(NotDone::Condition(format!(
            "status.observedGeneration does not equal metadata.generation: {} != {}",
            go_format::display_exact(&observed),
            go_format::display_exact(&generation)
        )))
    }
}

impl Expected {
    pub(crate) fn path(&self) -> &FieldPath {
        &self.path
    }

    pub(crate) fn new(condition: &CompletionCondition) -> Self {
        Self {
            path: FieldPath::new(&condition.key),
            value: condition.value.clone(),
        }
    }

    /// The value shown is the one the template asks for, so it is no secret. The cause of a path error may quote the data.
    pub(crate) fn check_failed(&self, object: &Value) -> Result<(), NotDone> {
        let unread = |cause, is_hopeless| NotDone::Path {
            path: self.path.text().to_owned(),
            cause,
            is_hopeless,
        };
        match self.path.read(object) {
            Ok(value) if value.as_str() == Some(&self.value) => Err(NotDone::Failed(format!(
                "deployment failure condition [{}] was: {}",
                self.path.text(),
                self.value
            ))),
            Ok(_) | Err(PathProblem::Absent(_)) => Ok(()),
            Err(PathProblem::EmptyList(cause)) => Err(unread(cause, false)),
            Err(PathProblem::Broken(cause)) => Err(unread(cause, true)),
        }
    }

    fn check_succeeded(&self, object: &Value, veil: Veil<'_>) -> Result<(), NotDone> {
        let path = self.path.text();
        let value = self.path.read(object).map_err(|problem| {
            let text = format!(
                "failed to evaluate succeededCondition.Key [{path}]: {}",
                shown_problem(&problem, veil.hides_all())
            );
            NotDone::unread(&problem, text)
        })?;
        if value.as_str() == Some(&self.value) {
            return Ok(());
        }
        Err(NotDone::Condition(format!(
            "deployment success condition [{path}] was: {}, expected: {}",
            shown(&value, veil.hides_all()),
            self.value
        )))
    }
}

/// Whether anything of the status is there, as far as the rules read it. Some kinds begin with an empty one.
fn has_status(object: &Value) -> bool {
    match object.get("status") {
        None | Some(Value::Null) => false,
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(_) => true,
    }
}
