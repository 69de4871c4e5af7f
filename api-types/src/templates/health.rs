//! Health rules.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::selector::FieldRequirement;

/// When a stamped object is healthy. Exactly one of the fields is given when admitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HealthRule {
    /// As soon as it exists; the content, normally `{}`, means nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub always_healthy: Option<Value>,
    /// When its condition of this type is `True`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_condition_type: Option<String>,
    /// When conditions and fields say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub multi_match: Option<MultiMatch>,
}

/// Health by several conditions and fields; `unhealthy` (any match) is asked before `healthy` (all match).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MultiMatch {
    /// All of these must match.
    pub healthy: HealthMatch,
    /// Any of these suffices.
    pub unhealthy: HealthMatch,
}

/// One side of a [`MultiMatch`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HealthMatch {
    /// Conditions of the stamped object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_conditions: Vec<ConditionRequirement>,
    /// Fields of the stamped object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_fields: Vec<HealthMatchField>,
}

/// A condition of the stamped object with a given status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConditionRequirement {
    /// Type of the condition.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status, compared as a string; any is allowed.
    pub status: String,
}

/// A field of the stamped object that meets a requirement, and where to read a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HealthMatchField {
    /// The requirement; written inline.
    #[serde(flatten)]
    pub requirement: FieldRequirement,
    /// Path of the message that explains the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_path: Option<String>,
}
