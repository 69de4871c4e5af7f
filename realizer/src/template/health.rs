//! Health of a stamped object (docs/behaviour/health.md#rules).

use api_types::condition::ObservedCondition;
use api_types::templates::{ConditionRequirement, HealthMatch, HealthMatchField};
use api_types::{ConditionStatus, HealthRule, Reason, TemplateKind};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;

use crate::values::field_path::FieldPath;
use crate::values::matching::FieldMatcher;
use crate::values::redaction::REDACTED;
use template_language::go_format;

/// A health rule with its paths parsed.
#[derive(Clone, Debug)]
pub(crate) enum CompiledRule {
    /// None given: outputs decide.
    None,
    AlwaysHealthy,
    SingleCondition(String),
    MultiMatch {
        healthy: Side,
        unhealthy: Side,
    },
}

/// One side of a `multiMatch`.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    conditions: Vec<ConditionRequirement>,
    fields: Vec<FieldRule>,
}

#[derive(Clone, Debug)]
struct FieldRule {
    matcher: FieldMatcher,
    message_path: Option<FieldPath>,
    message_text: String,
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
            }) => Self::MultiMatch {
                healthy: Side::new(&rules.healthy),
                unhealthy: Side::new(&rules.unhealthy),
            },
            // The documentation said "Success"; the code, and Tekton, say "Succeeded"
            // (docs/behaviour/objects.md#immutable).
            _ if is_tekton => Self::SingleCondition("Succeeded".to_owned()),
            _ => Self::None,
        }
    }

    /// Whether every object is healthy as soon as it exists, so that nothing says when it has ended.
    pub(crate) fn is_always_healthy(&self) -> bool {
        match self {
            Self::None | Self::AlwaysHealthy => true,
            Self::SingleCondition(_) | Self::MultiMatch { .. } => false,
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
            (Self::SingleCondition(_) | Self::MultiMatch { .. }, None) => {
                Health::new(Unknown, Reason::Unknown)
            }
            (Self::SingleCondition(type_), Some(object)) => single_condition(type_, object),
            (Self::MultiMatch { healthy, unhealthy }, Some(object)) => {
                multi_match(healthy, unhealthy, object, subject.secret)
            }
        }
    }

    /// The health of one member of an immutable family, which decides about outputs and retention: without a rule, a
    /// member is healthy as soon as it exists.
    pub(crate) fn judge_member(&self, object: &Value, kind: TemplateKind) -> ConditionStatus {
        match self {
            Self::None | Self::AlwaysHealthy => ConditionStatus::True,
            Self::SingleCondition(_) | Self::MultiMatch { .. } => {
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
            Self::MultiMatch { healthy, unhealthy } => [unhealthy, healthy]
                .into_iter()
                .flat_map(|side| &side.conditions)
                .find_map(|rule| matching_condition(rule, &conditions)),
        };
        deciding?.last_transition_time.clone()
    }

    /// Whether the conditions of the object are read.
    pub(crate) fn reads_conditions(&self) -> bool {
        match self {
            Self::None | Self::AlwaysHealthy => false,
            Self::SingleCondition(_) | Self::MultiMatch { .. } => true,
        }
    }

    /// The paths it reads on the object, conditions aside.
    pub(crate) fn paths(&self) -> Vec<&FieldPath> {
        match self {
            Self::None | Self::AlwaysHealthy | Self::SingleCondition(_) => Vec::new(),
            Self::MultiMatch { healthy, unhealthy } => {
                let rules = healthy.fields.iter().chain(&unhealthy.fields);
                rules
                    .flat_map(|rule| [Some(rule.matcher.path()), rule.message_path.as_ref()])
                    .flatten()
                    .collect()
            }
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

fn multi_match(healthy: &Side, unhealthy: &Side, object: &Value, secret: bool) -> Health {
    let conditions = ObservedCondition::all_of(object);
    if let Some((reason, message)) = unhealthy.any(object, &conditions, secret) {
        return Health {
            status: ConditionStatus::False,
            reason,
            message,
        };
    }
    match healthy.all(object, &conditions, secret) {
        Some((reason, message)) => Health {
            status: ConditionStatus::True,
            reason,
            message,
        },
        None => Health::new(ConditionStatus::Unknown, Reason::NoMatchesFulfilled),
    }
}

impl Side {
    fn new(side: &HealthMatch) -> Self {
        Self {
            conditions: side.match_conditions.clone(),
            fields: side.match_fields.iter().map(FieldRule::new).collect(),
        }
    }

    /// The first match, conditions before fields.
    fn any(
        &self,
        object: &Value,
        conditions: &[ObservedCondition],
        secret: bool,
    ) -> Option<(Reason, String)> {
        let condition = self
            .conditions
            .iter()
            .find_map(|rule| matching_condition(rule, conditions));
        if let Some(condition) = condition {
            return Some((Reason::MatchedCondition, condition_message(condition)));
        }
        let field = self.fields.iter().find(|rule| rule.matches(object))?;
        Some((Reason::MatchedField, field.message(object, secret)))
    }

    /// What the first listed one says, if all match. A side that lists nothing never matches.
    fn all(
        &self,
        object: &Value,
        conditions: &[ObservedCondition],
        secret: bool,
    ) -> Option<(Reason, String)> {
        let matched: Option<Vec<_>> = self
            .conditions
            .iter()
            .map(|rule| matching_condition(rule, conditions))
            .collect();
        let matched = matched?;
        if !self.fields.iter().all(|rule| rule.matches(object)) {
            return None;
        }
        match (matched.first(), self.fields.first()) {
            (Some(condition), _) => Some((Reason::MatchedCondition, condition_message(condition))),
            (None, Some(field)) => Some((Reason::MatchedField, field.message(object, secret))),
            (None, None) => None,
        }
    }
}

fn matching_condition<'c>(
    rule: &ConditionRequirement,
    conditions: &'c [ObservedCondition],
) -> Option<&'c ObservedCondition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == rule.type_ && condition.status == rule.status)
}

fn condition_message(condition: &ObservedCondition) -> String {
    format!(
        "condition status: {}, message: {}",
        condition.status, condition.message
    )
}

impl FieldRule {
    fn new(rule: &HealthMatchField) -> Self {
        let message_text = rule.message_path.clone().unwrap_or_default();
        Self {
            matcher: FieldMatcher::new(&rule.requirement),
            message_path: Some(message_text.as_str())
                .filter(|path| !path.is_empty())
                .map(FieldPath::new),
            message_text,
        }
    }

    /// A path that cannot be evaluated does not match.
    fn matches(&self, object: &Value) -> bool {
        self.matcher.matches(object).unwrap_or(false)
    }

    fn message(&self, object: &Value, secret: bool) -> String {
        if secret {
            return format!("field value: {REDACTED}, message: {REDACTED}");
        }
        let value = match self.matcher.path().read(object) {
            Ok(value) => go_format::display(&value),
            Err(_) => "<error retrieving field value>".to_owned(),
        };
        let message = self
            .message_path
            .as_ref()
            .and_then(|path| path.read(object).ok());
        let message = match message {
            Some(message) => go_format::display(&message),
            None => format!(
                "unknown, error retrieving message path [{}]",
                self.message_text
            ),
        };
        format!("field value: {value}, message: {message}")
    }
}

#[cfg(test)]
mod tests;
