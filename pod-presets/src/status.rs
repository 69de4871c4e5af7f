//! What a preset says of itself: the only place where its condition types and reasons exist as text.

use api_types::condition::{MAX_MESSAGE_CHARS, cut, whole_seconds};
use api_types::{Condition, ConditionStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::validate::FieldError;

/// The condition that says whether a preset can be read.
pub const VALID: &str = "Valid";
/// The condition that says whether pods had something else of late.
pub const CONFLICTING: &str = "Conflicting";

/// What became of a preset. Counts are of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PresetStatus {
    /// Generation of the object that the conditions are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Version of the object in which that generation was first seen: what pods that get it are marked with. Each write of a
    /// status changes the version of the object, and no pod is outdated by that.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub observed_resource_version: String,
    /// What is known, sorted by type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Pods that it selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<i64>,
    /// Pods that have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<i64>,
    /// Pods that did not get it because they had something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<i64>,
    /// The last of these, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub last_conflicts: Vec<LastConflict>,
    /// Pods that have an older version of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_pods: Option<i64>,
    /// Who these belong to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stale_owners: Vec<StaleOwner>,
}

/// A pod that had something else.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastConflict {
    /// When.
    pub time: Time,
    /// Kind of the pod's controller, or `Pod`.
    pub kind: String,
    /// Namespace of the pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name of that.
    pub name: String,
    /// The container; empty for volumes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// In what, as the event says it.
    pub field: String,
    /// Name or path.
    pub key: String,
    /// With whom: `Pod`, or the preset that comes before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub with: String,
}

/// Whoever makes pods, some of which have an older version.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StaleOwner {
    /// Kind of the controller, or `Pod`.
    pub kind: String,
    /// Namespace of the pods.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many.
    pub pods: i64,
}

/// Why a condition of a preset has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusReason {
    /// It can be read.
    Accepted,
    /// It cannot, and is for no pod.
    Invalid,
    /// Pods had something else.
    PodsDiffer,
    /// No pod had.
    NoConflicts,
}

impl StatusReason {
    /// Every reason.
    pub const ALL: [Self; 4] = [
        Self::Accepted,
        Self::Invalid,
        Self::PodsDiffer,
        Self::NoConflicts,
    ];

    /// The text of `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "Accepted",
            Self::Invalid => "Invalid",
            Self::PodsDiffer => "PodsDiffer",
            Self::NoConflicts => "NoConflicts",
        }
    }
}

/// What is to be said of a preset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is for no pod; none if it can be read.
    pub problems: Vec<FieldError>,
    /// The message of the last conflict, if there was one of late.
    pub conflict: Option<String>,
}

impl Verdict {
    /// The conditions, sorted by type. One that says what it said before keeps its time.
    ///
    /// ```
    /// use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    /// use pod_presets::Verdict;
    ///
    /// let (now, later) = (Time(Timestamp::from_second(10)?), Time(Timestamp::from_second(20)?));
    /// let before = Verdict::default().conditions(1, &[], &now);
    /// let said: Vec<_> = before.iter().map(|it| (it.type_.as_str(), it.status.as_str(), it.reason.as_str())).collect();
    /// assert_eq!(said, [("Conflicting", "False", "NoConflicts"), ("Valid", "True", "Accepted")]);
    /// assert_eq!(Verdict::default().conditions(1, &before, &later), before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conditions(&self, generation: i64, before: &[Condition], now: &Time) -> Vec<Condition> {
        let conflicting = match &self.conflict {
            Some(message) => (
                ConditionStatus::True,
                StatusReason::PodsDiffer,
                message.clone(),
            ),
            None => (
                ConditionStatus::False,
                StatusReason::NoConflicts,
                String::new(),
            ),
        };
        let valid = match &self.problems[..] {
            [] => (ConditionStatus::True, StatusReason::Accepted, String::new()),
            problems => (
                ConditionStatus::False,
                StatusReason::Invalid,
                FieldError::all(problems),
            ),
        };
        let condition = |(type_, (status, reason, message)): (&str, (_, StatusReason, String))| {
            let condition = Condition {
                type_: type_.to_owned(),
                status,
                reason: reason.as_str().to_owned(),
                message: cut(message, MAX_MESSAGE_CHARS),
                last_transition_time: whole_seconds(now),
                observed_generation: Some(generation),
            };
            let same = before.iter().find(|it| it.says_the_same_as(&condition));
            same.cloned().unwrap_or(condition)
        };
        [(CONFLICTING, conflicting), (VALID, valid)]
            .map(condition)
            .into()
    }
}
