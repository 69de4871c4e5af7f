//! The template kinds and the spec they share.

mod health;
mod kind;
mod other_object;
mod success;
mod template;
mod validation;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::custom_resource::custom_resource;
use crate::params::TemplateParam;
use crate::texts::text_enum;

pub use health::{ConditionRequirement, HealthMatch, HealthMatchField, HealthRule, MultiMatch};
pub use kind::{TemplateKind, UnknownTemplateKind};
pub use other_object::{MOST_OTHER_OBJECTS, OtherObject};
pub use success::{
    CompletionCondition, ForeignFields, InputOnStatus, MOST_CONDITION_DEPTH, ObservedCompletion,
    ObservedMatch, SuccessRules, UpdatePolicy, WhenReconciling,
};
pub use template::Template;
pub use validation::{
    ClusterDeploymentValidationTemplate, ClusterDeploymentValidationTemplateSpec,
};

/// What all template kinds have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateSpec {
    /// The object to stamp, with `$(…)$` tags. Exactly one of `template` and `ytt` is given when admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
    /// The object to stamp, as a ytt document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ytt: Option<String>,
    /// The parameters the template takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<TemplateParam>,
    /// When the stamped object is healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health_rule: Option<HealthRule>,
    /// What happens to the object when the rendering changes.
    pub lifecycle: Lifecycle,
    /// How many objects of an immutable family are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention_policy: Option<RetentionPolicy>,
    /// Whether an object that is there already, and was made by somebody else, is taken over. Annotation
    /// [`ADOPT`](crate::labels::ADOPT) on the object allows the same for that object.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub adopt: bool,
}

text_enum! {
    /// What happens to a stamped object when its rendering changes. The text stands in the template and in the label
    /// `carto.run/template-lifecycle`.
    ///
    /// ```
    /// assert_eq!(api_types::Lifecycle::default().as_str(), "mutable");
    /// ```
    #[derive(Default, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Lifecycle {
        /// It is changed in place.
        #[default]
        Mutable = "mutable",
        /// A new object is created.
        Immutable = "immutable",
        /// As immutable, and healthy when its `Succeeded` condition is True unless a rule says otherwise.
        Tekton = "tekton",
    }
}

impl Lifecycle {
    /// Whether a changed rendering changes the object in place.
    pub fn is_mutable(self) -> bool {
        self == Self::Mutable
    }

    /// Whether each rendering becomes an object of its own.
    pub fn is_immutable(self) -> bool {
        !self.is_mutable()
    }
}

/// How many finished objects of a family are kept; both counts are at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RetentionPolicy {
    /// Failed ones to keep.
    pub max_failed_runs: i64,
    /// Successful ones to keep.
    pub max_successful_runs: i64,
}

impl Default for RetentionPolicy {
    /// Ten of each, which holds for templates that give no policy.
    fn default() -> Self {
        Self {
            max_failed_runs: 10,
            max_successful_runs: 10,
        }
    }
}

custom_resource! {
    /// Stamps an object that yields source: a url and a revision.
    #[kube(
        kind = "ClusterSourceTemplate",
        plural = "clustersourcetemplates",
        shortname = "cst",
        doc = "Stamps an object that yields source: a url and a revision."
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct ClusterSourceTemplateSpec {
        /// The shared part; written inline.
        #[serde(flatten)]
        pub template_spec: TemplateSpec,
        /// When outputs are read; written inline.
        #[serde(flatten)]
        pub success: SuccessRules,
        /// Path of the url in the stamped object.
        pub url_path: String,
        /// Path of the revision in the stamped object.
        pub revision_path: String,
    }
}

custom_resource! {
    /// Stamps an object that yields an image.
    #[kube(
        kind = "ClusterImageTemplate",
        plural = "clusterimagetemplates",
        shortname = "cit",
        doc = "Stamps an object that yields an image."
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct ClusterImageTemplateSpec {
        /// The shared part; written inline.
        #[serde(flatten)]
        pub template_spec: TemplateSpec,
        /// When outputs are read; written inline.
        #[serde(flatten)]
        pub success: SuccessRules,
        /// Path of the image in the stamped object.
        pub image_path: String,
    }
}

custom_resource! {
    /// Stamps an object that yields configuration.
    #[kube(
        kind = "ClusterConfigTemplate",
        plural = "clusterconfigtemplates",
        shortname = "cct",
        doc = "Stamps an object that yields configuration."
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct ClusterConfigTemplateSpec {
        /// The shared part; written inline.
        #[serde(flatten)]
        pub template_spec: TemplateSpec,
        /// When outputs are read; written inline.
        #[serde(flatten)]
        pub success: SuccessRules,
        /// Path of the configuration in the stamped object.
        pub config_path: String,
    }
}

custom_resource! {
    /// Creates an object for each owner that is given outputs of other steps and gives none.
    #[kube(
        kind = "ClusterTemplate",
        plural = "clustertemplates",
        shortname = "ct",
        doc = "Creates an object for each owner that is given outputs of other steps and gives none."
    )]
    pub struct ClusterTemplateSpec {
        /// The shared part; written inline.
        #[serde(flatten)]
        pub template_spec: TemplateSpec,
        /// When outputs are read; written inline.
        #[serde(flatten)]
        pub success: SuccessRules,
    }
}

custom_resource! {
    /// Stamps an object that deploys; hands its deployment on once the object says that it is done.
    #[kube(
        kind = "ClusterDeploymentTemplate",
        plural = "clusterdeploymenttemplates",
        shortname = "cdt",
        doc = "Stamps an object that deploys; hands its deployment on once the object says that it is done."
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct ClusterDeploymentTemplateSpec {
        /// The shared part; written inline.
        #[serde(flatten)]
        pub template_spec: TemplateSpec,
        /// When the deployment is done; written inline.
        #[serde(flatten)]
        pub success: SuccessRules,
    }
}
