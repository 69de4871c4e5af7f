//! `multiMatch`: health by several conditions and fields.

use api_types::condition::ObservedCondition;
use api_types::templates::{self, ConditionRequirement, HealthMatch, HealthMatchField};
use api_types::{ConditionStatus, Reason};
use serde_json::Value;
use template_language::go_format;

use super::Health;
use crate::values::field_path::FieldPath;
use crate::values::matching::FieldMatcher;
use crate::values::redaction::REDACTED;

/// Its rules with their paths parsed.
#[derive(Clone, Debug)]
pub(crate) struct MultiMatch {
    healthy: Side,
    unhealthy: Side,
}

#[derive(Clone, Debug)]
struct Side {
    conditions: Vec<ConditionRequirement>,
    fields: Vec<FieldRule>,
}

#[derive(Clone, Debug)]
struct FieldRule {
    matcher: FieldMatcher,
    message_path: Option<FieldPath>,
    message_text: String,
}

impl MultiMatch {
    pub(super) fn new(rules: &templates::MultiMatch) -> Self {
        Self {
            healthy: Side::new(&rules.healthy),
            unhealthy: Side::new(&rules.unhealthy),
        }
    }

    pub(super) fn judge(&self, object: &Value, secret: bool) -> Health {
        let conditions = ObservedCondition::all_of(object);
        let unhealthy = self.unhealthy.any(object, &conditions, secret);
        let (status, matched) = match unhealthy {
            Some(matched) => (ConditionStatus::False, Some(matched)),
            None => (
                ConditionStatus::True,
                self.healthy.all(object, &conditions, secret),
            ),
        };
        match matched {
            Some((reason, message)) => Health {
                status,
                reason,
                message,
            },
            None => Health::new(ConditionStatus::Unknown, Reason::NoMatchesFulfilled),
        }
    }

    /// The condition that decides, if one does.
    pub(super) fn deciding<'c>(
        &self,
        conditions: &'c [ObservedCondition],
    ) -> Option<&'c ObservedCondition> {
        let sides = [&self.unhealthy, &self.healthy].into_iter();
        sides
            .flat_map(|side| &side.conditions)
            .find_map(|rule| matching_condition(rule, conditions))
    }

    pub(super) fn paths(&self) -> Vec<&FieldPath> {
        let rules = self.healthy.fields.iter().chain(&self.unhealthy.fields);
        rules
            .flat_map(|rule| [Some(rule.matcher.path()), rule.message_path.as_ref()])
            .flatten()
            .collect()
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
