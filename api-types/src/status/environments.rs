//! What the status of Deliverables says about environments that are validated.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

use crate::texts::text_enum;

/// One entry of `status.environments[]`: an environment that is validated, and what of it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct EnvironmentStatus {
    /// Name of the ClusterDeploymentTemplate step.
    pub resource: String,
    /// What is in the environment; absent as long as nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployed: Option<DeployedRevision>,
    /// What is about to be put into the environment, or has just been: written down before the object is. Until it is
    /// `deployed` no validation of it begins, and nothing is handed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arriving: Option<DeployedRevision>,
    /// Digest of an annotation `carto.run/environment` that the object carries and that is neither that of `deployed`
    /// nor that of `arriving`. Somebody else wrote it; it is disregarded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disregarded: Option<String>,
    /// The newest revision that waits until the deployed one is validated; older ones that waited are skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<WaitingRevision>,
    /// One entry per ClusterDeploymentValidationTemplate step behind the environment, in blueprint order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub validations: Vec<ValidationStatus>,
}

/// A revision in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeployedRevision {
    /// The revision; `<redacted>` if it comes from a Secret.
    pub revision: String,
    /// Where it comes from; `<redacted>` if it comes from a Secret.
    pub url: String,
    /// Number of the revision in the order in which the environment received them, from 1 on. The same revision has a new
    /// number when it comes again.
    pub arrival: u64,
    /// When it was put into the environment; whole seconds.
    pub since: Time,
    /// What annotation `carto.run/environment` of the object says of it, word for word; sealed if the revision comes
    /// from a Secret. Absent in a status of a former version, and with `unproven`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<String>,
    /// Status was lost, and only the object itself says that this is in it. It is kept until the validations that run have
    /// ended, and it is not handed on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unproven: bool,
}

/// A revision that waits for an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRevision {
    /// The revision; `<redacted>` if it comes from a Secret.
    pub revision: String,
    /// Where it comes from; `<redacted>` if it comes from a Secret.
    pub url: String,
    /// Since when it waits; whole seconds.
    pub since: Time,
}

/// What a validation says of the revision in the environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidationStatus {
    /// Name of the ClusterDeploymentValidationTemplate step.
    pub resource: String,
    /// What is known.
    pub verdict: ValidationVerdict,
    /// Number of the arrival it speaks of.
    pub arrival: u64,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the verdict last changed; whole seconds.
    pub since: Time,
}

text_enum! {
    /// What is known of a validation.
    #[derive(Serialize, Deserialize)]
    pub enum ValidationVerdict {
        /// It has not begun.
        Pending,
        /// It has begun.
        Running,
        /// It succeeded.
        Succeeded,
        /// It failed.
        Failed,
        /// It did not end in time.
        TimedOut,
        /// It will not begin: the deployment, or a validation before it, failed or timed out.
        Skipped,
    }
}

impl ValidationVerdict {
    /// Whether the environment need not be kept for this validation any longer.
    ///
    /// ```
    /// use api_types::ValidationVerdict;
    ///
    /// assert!(ValidationVerdict::Failed.releases());
    /// assert!(!ValidationVerdict::Running.releases());
    /// ```
    pub fn releases(self) -> bool {
        !matches!(self, Self::Pending | Self::Running)
    }
}
