//! What the object of a validation says of the arrival it was submitted for.

use std::time::Duration;

use api_types::{ClusterDeploymentValidationTemplateSpec, ConditionStatus};
use serde_json::Value;

use crate::Template;
use crate::template::goodness::{Evidence, NotDone, Readiness};
use crate::template::health::Subject;
use crate::values::field_path::FieldPath;
use crate::values::redaction::{Taint, Veil};

/// The rules of a validation template with their paths parsed.
#[derive(Clone, Debug)]
pub(crate) struct Judgement {
    readiness: Readiness,
    /// How long the environment is kept; `None` for ever.
    pub(crate) limit: Option<Duration>,
}

/// What a validation came to, for one arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValidationState {
    /// There is no object for this arrival. With `first_told`, it begins once status says that it has not ended.
    NotBegun { is_reported: bool },
    /// Not ended; what it waits for.
    Running(String),
    /// It succeeded.
    Succeeded,
    /// It failed; why.
    Failed(String),
}

impl Judgement {
    pub(crate) fn new(spec: &ClusterDeploymentValidationTemplateSpec) -> Self {
        Self {
            readiness: Readiness::of_deployment(&spec.deployment.success, false),
            limit: spec.time_limit(),
        }
    }

    /// Judges the object that holds the rendering for this arrival, and never another one: the newest healthy member of a
    /// family may have validated an older revision.
    pub(crate) fn judge(
        &self,
        template: &Template,
        object: &Value,
        inputs: &Taint,
    ) -> ValidationState {
        if !self.readiness.is_given() {
            let veil = Veil::over(object, inputs);
            return by_health(template, object, veil.hides_all());
        }
        let evidence = Evidence::of(object, inputs, &[]);
        let checked = if template.lifecycle.is_immutable() {
            self.readiness.check_run(evidence)
        } else {
            self.readiness.check(evidence, &[])
        };
        checked.map_or_else(not_done, |()| ValidationState::Succeeded)
    }

    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        self.readiness.paths()
    }
}

fn not_done(error: NotDone) -> ValidationState {
    match error {
        NotDone::Failed(cause) => ValidationState::Failed(cause),
        other @ (NotDone::Condition(_)
        | NotDone::Hopeless(_)
        | NotDone::Refused(_)
        | NotDone::Unavailable(_)
        | NotDone::ObservedGeneration { .. }
        | NotDone::Path { .. }) => ValidationState::Running(other.to_string()),
    }
}

fn by_health(template: &Template, object: &Value, secret: bool) -> ValidationState {
    if template.health.judge_member(object, template.kind) == ConditionStatus::True {
        return ValidationState::Succeeded;
    }
    let health = template.health.judge(Subject {
        object: Some(object),
        kind: template.kind,
        has_outputs: false,
        secret,
    });
    match health.status {
        ConditionStatus::False => ValidationState::Failed(health.message),
        ConditionStatus::True | ConditionStatus::Unknown => {
            ValidationState::Running(health.message)
        }
    }
}

#[cfg(test)]
mod tests;
