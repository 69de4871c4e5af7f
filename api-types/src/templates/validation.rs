//! ClusterDeploymentValidationTemplate.

use std::time::Duration;

use super::ClusterDeploymentTemplateSpec;
use crate::custom_resource::custom_resource;
use crate::duration::parse_duration;

custom_resource! {
    /// Stamps an object that validates what is deployed; hands its deployment on once the validation succeeded.
    #[kube(
        kind = "ClusterDeploymentValidationTemplate",
        plural = "clusterdeploymentvalidationtemplates",
        shortname = "cdvt",
        doc = "Stamps an object that validates what is deployed; hands its deployment on once the validation succeeded."
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct ClusterDeploymentValidationTemplateSpec {
        /// All fields of a ClusterDeploymentTemplate; written inline.
        #[serde(flatten)]
        pub deployment: ClusterDeploymentTemplateSpec,
        /// How long the environment is kept for the validation, counted from when the revision was put into it: a duration
        /// such as `90s`, `30m` or `1h`; `0` for ever. See [`ClusterDeploymentValidationTemplateSpec::time_limit`].
        #[serde(skip_serializing_if = "Option::is_none")]
        pub timeout: Option<String>,
    }
}

impl ClusterDeploymentValidationTemplateSpec {
    /// The limit that holds where the template gives none.
    pub const DEFAULT_TIME_LIMIT: Duration = Duration::from_hours(1);

    /// How long the environment is kept for the validation; `None` is for ever. A text that is no duration, which is not
    /// admitted, counts as none given.
    ///
    /// ```
    /// use api_types::ClusterDeploymentValidationTemplateSpec as Spec;
    /// use std::time::Duration;
    ///
    /// assert_eq!(Spec::default().time_limit(), Some(Duration::from_secs(3600)));
    /// assert_eq!(Spec { timeout: Some("0".into()), ..Spec::default() }.time_limit(), None);
    /// ```
    pub fn time_limit(&self) -> Option<Duration> {
        let given = self.timeout.as_deref().and_then(parse_duration);
        Some(given.unwrap_or(Self::DEFAULT_TIME_LIMIT)).filter(|limit| !limit.is_zero())
    }
}
