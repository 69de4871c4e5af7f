//! Health of a stamped object (docs/behaviour/health.md#rules).

mod multi_match;

use api_types::condition::ObservedCondition;
use api_types::{ConditionStatus, HealthRule, Reason, TemplateKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use self::multi_match::MultiMatch;
use crate::values::field_path::FieldPath;

/// A health rule with its paths parsed.
#[derive(Clone, Debug)]
pub(crate) enum CompiledRule {
    /// None given: outputs decide.
    None,
    AlwaysHealthy,
    SingleCondition(String),
    MultiMatch(MultiMatch),
}

/// The verdict on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub(crate) status: ConditionStatus,
    pub(crate) reason: Reason,
    pub(crate) message: String,
}

impl Health {
    fn new(status: ConditionStatus, reason: Reason) -> Self {
        Self {
            status,
            reason,
            message: String::new(),
        }
    }
}

/// What is judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'o> {
    /// The stamped object, if there is one.
    pub(crate) object: Option<&'o Value>,
    /// Kind of the template that stamped it.
    pub(crate) kind: TemplateKind,
    /// Whether the step has outputs.
    pub(crate) has_outputs: bool,
    /// Whether its values must not be shown.
    pub(crate) secret: bool,
}

impl CompiledRule {
    pub(crate) fn new(rule: Option<&HealthRule>, is_tekton: bool) -> Self {
        match rule {
            Some(HealthRule {
                always_healthy: Some(content),
                ..
            }) if !content.is_null() => Self::AlwaysHealthy,
            Some(HealthRule {
                single_condition_type: Some(type_),
                ..
            }) if !type_.is_empty() => Self::SingleCondition(type_.clone()),
            Some(HealthRule {
                multi_match: Some(rules),
                ..
            }) => Self::MultiMatch(MultiMatch::new(rules)),
            // The documentation said "Success"; the code, and Tekton, say "Succeeded"
            // (docs/behaviour/objects.md#immutable).
            _ if is_tekton => Self::SingleCondition("Succeeded".to_owned()),
            _ => Self::None,
        }
    }

    /// Whether every object is healthy as soon as it exists, so that nothing says when it has ended, and no condition is read.
    pub(crate) fn is_always_healthy(&self) -> bool {
        match self {
            Self::None | Self::AlwaysHealthy => true,
            Self::SingleCondition(_) | Self::MultiMatch(_) => false,
        }
    }

    /// The health a step reports.
    pub(crate) fn judge(&self, subject: Subject<'_>) -> Health {
        use ConditionStatus::{True, Unknown};
        match (self, subject.object) {
            (Self::None, _) if subject.has_outputs => Health::new(True, Reason::OutputsAvailable),
            (Self::None, Some(_)) if subject.kind == TemplateKind::Plain => {
                Health::new(True, Reason::AlwaysHealthy)
            }
            (Self::None, None) if subject.kind == TemplateKind::Plain => {
                Health::new(Unknown, Reason::NoStampedObject)
            }
            (Self::None, _) => Health::new(Unknown, Reason::OutputNotAvailable),
            (Self::AlwaysHealthy, Some(_)) => Health::new(True, Reason::AlwaysHealthy),
            (Self::AlwaysHealthy, None) => Health::new(Unknown, Reason::NoStampedObject),
            (Self::SingleCondition(_) | Self::MultiMatch(_), None) => {
                Health::new(Unknown, Reason::Unknown)
            }
            (Self::SingleCondition(type_), Some(object)) => single_condition(type_, object),
            (Self::MultiMatch(rules), Some(object)) => rules.judge(object, subject.secret),
        }
    }

    /// The health of one member of an immutable family, which decides about outputs and retention: without a rule, a
    /// member is healthy as soon as it exists.
    pub(crate) fn judge_member(&self, object: &Value, kind: TemplateKind) -> ConditionStatus {
        match self {
            Self::None | Self::AlwaysHealthy => ConditionStatus::True,
            Self::SingleCondition(_) | Self::MultiMatch(_) => {
                self.judge(Subject {
                    object: Some(object),
                    kind,
                    has_outputs: false,
                    secret: true,
                })
                .status
            }
        }
    }

    /// When the condition that decides got the status by which it decides; `None` when none does, or does not say.
    pub(crate) fn decided_at(&self, object: &Value) -> Option<Time> {
        let conditions = ObservedCondition::all_of(object);
        let deciding = match self {
            Self::None | Self::AlwaysHealthy => None,
            Self::SingleCondition(type_) => conditions
                .iter()
                .find(|condition| condition.type_ == *type_),
            Self::MultiMatch(rules) => rules.deciding(&conditions),
        };
        deciding?.last_transition_time.clone()
    }

    /// The paths it reads on the object, conditions aside.
    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        match self {
            Self::None | Self::AlwaysHealthy | Self::SingleCondition(_) => Vec::new(),
            Self::MultiMatch(rules) => rules.paths(),
        }
    }
}

fn single_condition(type_: &str, object: &Value) -> Health {
    let conditions = ObservedCondition::all_of(object);
    let (status, message) = match conditions.iter().find(|condition| condition.type_ == type_) {
        Some(condition) => (
            ConditionStatus::from_text(&condition.status),
            condition.message.clone(),
        ),
        None => (
            ConditionStatus::Unknown,
            format!("condition with type [{type_}] not found on resource status"),
        ),
    };
    Health {
        status,
        reason: Reason::condition(type_),
        message,
    }
}

#[cfg(test)]
mod tests;
