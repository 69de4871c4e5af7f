//! Conditions: the only place where condition types and reasons exist as text.
//!
//! Our own conditions are built from [`ConditionType`] and [`Reason`]; what is read back, from our own status or from
//! stamped objects, may hold any text, so [`Condition`] and [`ObservedCondition`] keep strings.

mod reason;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json_any;
use crate::texts::text_enum;

pub use reason::{Reason, is_valid_reason};

/// The most characters the schema allows in a condition's message.
pub const MAX_MESSAGE_CHARS: usize = 32_768;

/// One entry of `status.conditions` of our own kinds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition speaks of; see [`ConditionType`].
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word; see [`Reason`].
    #[serde(default)]
    pub reason: String,
    /// Why, for people; may be empty.
    #[serde(default)]
    pub message: String,
    /// When anything in the condition last changed; whole seconds.
    pub last_transition_time: Time,
    /// In the schema, never written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl Condition {
    /// A condition as the schema accepts it: the message is cut at 32768 characters, the time to whole seconds.
    ///
    /// ```
    /// use api_types::condition::{Condition, ConditionStatus, ConditionType, Reason};
    /// use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    ///
    /// let now = Time(Timestamp::from_second(1_700_000_000)?);
    /// let ready = Condition::new(ConditionType::Ready, ConditionStatus::True, &Reason::Ready, "", &now);
    /// assert_eq!(ready.reason, "Ready");
    /// assert!(ready.is(ConditionType::Ready));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        type_: ConditionType,
        status: ConditionStatus,
        reason: &Reason,
        message: impl Into<String>,
        now: &Time,
    ) -> Self {
        Self {
            type_: type_.as_str().to_owned(),
            status,
            reason: reason.as_str().into_owned(),
            message: cut(message.into(), MAX_MESSAGE_CHARS),
            last_transition_time: whole_seconds(now),
            observed_generation: None,
        }
    }

    /// Whether it is of this type.
    pub fn is(&self, type_: ConditionType) -> bool {
        self.type_ == type_.as_str()
    }

    /// Whether everything but the time is equal; then the earlier time is kept.
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        self.type_ == other.type_
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
            && self.observed_generation == other.observed_generation
    }
}

/// A text of at most so many characters: statuses are bounded, whatever others write into their messages.
pub fn cut(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
    }
    text
}

/// The time without its fraction: status carries whole seconds, so a fraction would look like a change on every read.
pub fn whole_seconds(time: &Time) -> Time {
    // The second of an existing timestamp is always in range; the fallback keeps the function total.
    Time(k8s_openapi::jiff::Timestamp::from_second(time.0.as_second()).unwrap_or(time.0))
}

text_enum! {
    /// Whether a condition holds.
    #[derive(Serialize, Deserialize)]
    pub enum ConditionStatus {
        /// It holds.
        True,
        /// It does not hold.
        False,
        /// Not known, or not yet.
        Unknown,
    }
}

impl ConditionStatus {
    /// The status a text stands for; anything that is neither `True` nor `False` is unknown.
    ///
    /// ```
    /// use api_types::ConditionStatus;
    ///
    /// assert_eq!(ConditionStatus::from_text("False"), ConditionStatus::False);
    /// assert_eq!(ConditionStatus::from_text("true"), ConditionStatus::Unknown);
    /// ```
    pub fn from_text(status: &str) -> Self {
        match status {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

text_enum! {
    /// What a condition of our own kinds speaks of.
    #[derive(PartialOrd, Ord)]
    pub enum ConditionType {
        /// Workload: a supply chain was chosen and is ready.
        SupplyChainReady,
        /// Deliverable: a delivery was chosen and is ready.
        DeliveryReady,
        /// Owner: all resources (steps) were submitted and their outputs read.
        ResourcesSubmitted,
        /// Owner: all resources (steps) are healthy.
        ResourcesHealthy,
        /// Step entry: the object was submitted and its outputs read.
        ResourceSubmitted,
        /// Step entry: the object is healthy.
        Healthy,
        /// Step entry, where the template says when outputs are good: whether they are, of what is rendered now.
        /// Comes after `Ready` and never feeds it.
        OutputsGood,
        /// Blueprint: all its templates exist.
        TemplatesReady,
        /// Runnable: its ClusterRunTemplate was stamped and its outputs read.
        RunTemplateReady,
        /// Runnable: the latest object succeeded.
        StampedObjectCondition,
        /// Everything else together; derived, never set by hand.
        Ready,
        /// Extra, only while it is so: objects that are no longer wanted could not be deleted yet. Never feeds `Ready`.
        DeletionPending,
        /// Extra, only while it is so: an object is claimed by another owner or step, or another writer undoes it. Never
        /// feeds `Ready`.
        ObjectContested,
        /// Extra, only while it is so: no right to watch a stamped kind; it is read at a slow interval. Never feeds `Ready`.
        WatchForbidden,
        /// Extra, only while it is so: a newer revision waits until the one in the environment is validated. In the entry of
        /// a ClusterDeploymentTemplate step; never feeds `Ready`.
        UpdateHeld,
        /// Extra, only while it is so: what the template reads can never be read from the object as it is, and why; its author
        /// must correct it. In the entry of the step; never feeds `Ready`.
        OutputUnreadable,
        /// Extra, only while it is so: something in a blueprint cannot work, whatever the owner: steps that wait for one another,
        /// an input that nobody provides, a selector that cannot be evaluated. Never feeds `Ready`.
        BlueprintProblem,
        /// Extra, only while an owner is not Ready and goes on by itself. With [`ConditionType::Stalled`] it is what tools that
        /// wait for objects understand (kstatus); there is never both. Never feeds `Ready`.
        Reconciling,
        /// Extra, only while an owner is not Ready and nothing will change that until somebody does something. Never feeds
        /// `Ready`.
        Stalled,
    }
}

impl ConditionType {
    /// Whether the type exists only while something is wrong or under way, comes after `Ready` and never feeds it.
    pub fn is_extra(self) -> bool {
        matches!(
            self,
            Self::DeletionPending
                | Self::ObjectContested
                | Self::WatchForbidden
                | Self::UpdateHeld
                | Self::OutputUnreadable
                | Self::BlueprintProblem
                | Self::Reconciling
                | Self::Stalled
        )
    }
}

/// A condition as another controller wrote it on a stamped object: any status, nothing required.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedCondition {
    /// What the condition speaks of.
    #[serde(rename = "type", deserialize_with = "json_any::null_is_absent")]
    pub type_: String,
    /// Any text; see [`ConditionStatus::from_text`].
    #[serde(deserialize_with = "json_any::null_is_absent")]
    pub status: String,
    /// Any text.
    #[serde(deserialize_with = "json_any::null_is_absent")]
    pub reason: String,
    /// Any text.
    #[serde(deserialize_with = "json_any::null_is_absent")]
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: Option<Time>,
    /// Generation of the object the condition speaks of.
    pub observed_generation: Option<i64>,
}

impl ObservedCondition {
    /// Reads the conditions at `.status.conditions` of an object; empty when there are none or they do not decode.
    ///
    /// One entry that does not decode spoils the whole list, as in the Go controller
    /// (docs/behaviour/health.md#rules). `null` decodes to nothing:
    /// an entry, or a field of one, that is empty.
    ///
    /// ```
    /// use api_types::condition::ObservedCondition;
    /// use serde_json::json;
    ///
    /// let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    /// assert_eq!(ObservedCondition::all_of(&object)[0].status, "True");
    ///
    /// let object = json!({"status": {"conditions": [{"type": "Ready", "status": true}]}});
    /// assert!(ObservedCondition::all_of(&object).is_empty());
    /// ```
    pub fn all_of(object: &Value) -> Vec<Self> {
        object
            .pointer("/status/conditions")
            .and_then(|conditions| Vec::<Option<Self>>::deserialize(conditions).ok())
            .unwrap_or_default()
            .into_iter()
            .map(Option::unwrap_or_default)
            .collect()
    }
}

#[cfg(test)]
mod tests;
