//! The five template kinds and the spec they share.

use std::fmt;
use std::str::FromStr;

use kube_core::ResourceExt;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::params::TemplateParam;
use crate::selector::FieldRequirement;

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
}

/// What happens to a stamped object when its rendering changes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// It is changed in place.
    #[default]
    Mutable,
    /// A new object is created.
    Immutable,
    /// As immutable, with the health rule of Tekton's runs when none is given.
    Tekton,
}

impl Lifecycle {
    /// The text in the template and in the label `carto.run/template-lifecycle`.
    ///
    /// ```
    /// assert_eq!(api_types::Lifecycle::default().as_str(), "mutable");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mutable => "mutable",
            Self::Immutable => "immutable",
            Self::Tekton => "tekton",
        }
    }

    /// Whether a changed rendering changes the object in place.
    pub fn is_mutable(self) -> bool {
        self == Self::Mutable
    }
}

impl fmt::Display for Lifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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

/// Stamps an object that yields source: a url and a revision.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterSourceTemplate",
    plural = "clustersourcetemplates",
    shortname = "cst",
    schema = "disabled",
    doc = "Stamps an object that yields source: a url and a revision.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterSourceTemplateSpec {
    /// The shared part; written inline.
    #[serde(flatten)]
    pub template_spec: TemplateSpec,
    /// Path of the url in the stamped object.
    pub url_path: String,
    /// Path of the revision in the stamped object.
    pub revision_path: String,
}

/// Stamps an object that yields an image.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterImageTemplate",
    plural = "clusterimagetemplates",
    shortname = "cit",
    schema = "disabled",
    doc = "Stamps an object that yields an image.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterImageTemplateSpec {
    /// The shared part; written inline.
    #[serde(flatten)]
    pub template_spec: TemplateSpec,
    /// Path of the image in the stamped object.
    pub image_path: String,
}

/// Stamps an object that yields configuration.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterConfigTemplate",
    plural = "clusterconfigtemplates",
    shortname = "cct",
    schema = "disabled",
    doc = "Stamps an object that yields configuration.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterConfigTemplateSpec {
    /// The shared part; written inline.
    #[serde(flatten)]
    pub template_spec: TemplateSpec,
    /// Path of the configuration in the stamped object.
    pub config_path: String,
}

/// Stamps an object that yields nothing.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterTemplate",
    plural = "clustertemplates",
    shortname = "ct",
    schema = "disabled",
    doc = "Stamps an object that yields nothing.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
pub struct ClusterTemplateSpec {
    /// The shared part; written inline.
    #[serde(flatten)]
    pub template_spec: TemplateSpec,
}

/// Stamps an object that deploys; hands its deployment on once the object says that it is done.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterDeploymentTemplate",
    plural = "clusterdeploymenttemplates",
    shortname = "cdt",
    schema = "disabled",
    doc = "Stamps an object that deploys; hands its deployment on once the object says that it is done.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterDeploymentTemplateSpec {
    /// The shared part; written inline.
    #[serde(flatten)]
    pub template_spec: TemplateSpec,
    /// Pairs of paths whose values must be equal. Exactly one of the two fields is given when admitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub observed_matches: Vec<ObservedMatch>,
    /// Values that say succeeded or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_completion: Option<ObservedCompletion>,
}

/// Two paths in the stamped object whose values must be equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedMatch {
    /// Path of what was asked for, normally in `spec`.
    pub input: String,
    /// Path of what was reached, normally in `status`.
    pub output: String,
}

/// Values in the stamped object that say whether it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ObservedCompletion {
    /// The value that says succeeded.
    pub succeeded: CompletionCondition,
    /// The value that says failed; asked first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<CompletionCondition>,
}

/// A path in the stamped object and the string expected there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CompletionCondition {
    /// The path.
    pub key: String,
    /// The expected string.
    pub value: String,
}

/// Which of the template kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TemplateKind {
    /// ClusterSourceTemplate.
    Source,
    /// ClusterImageTemplate.
    Image,
    /// ClusterConfigTemplate.
    Config,
    /// ClusterTemplate.
    Plain,
    /// ClusterDeploymentTemplate.
    Deployment,
}

impl TemplateKind {
    /// Every template kind.
    pub const ALL: [Self; 5] = [
        Self::Source,
        Self::Image,
        Self::Config,
        Self::Plain,
        Self::Deployment,
    ];

    /// The Kubernetes kind.
    ///
    /// ```
    /// use api_types::TemplateKind;
    ///
    /// assert_eq!(TemplateKind::Plain.as_str(), "ClusterTemplate");
    /// assert_eq!("ClusterTemplate".parse(), Ok(TemplateKind::Plain));
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "ClusterSourceTemplate",
            Self::Image => "ClusterImageTemplate",
            Self::Config => "ClusterConfigTemplate",
            Self::Plain => "ClusterTemplate",
            Self::Deployment => "ClusterDeploymentTemplate",
        }
    }

    /// Names of the outputs in status, in their order (spec 4.6).
    pub fn output_names(self) -> &'static [&'static str] {
        match self {
            Self::Source | Self::Deployment => &["url", "revision"],
            Self::Image => &["image"],
            Self::Config => &["config"],
            Self::Plain => &[],
        }
    }
}

impl fmt::Display for TemplateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A kind that is not one of the template kinds.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kind [{kind}] is not a known template kind")]
pub struct UnknownTemplateKind {
    /// The kind as given.
    pub kind: String,
}

impl FromStr for TemplateKind {
    type Err = UnknownTemplateKind;

    fn from_str(kind: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str() == kind)
            .ok_or_else(|| UnknownTemplateKind {
                kind: kind.to_owned(),
            })
    }
}

/// A template of any kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Template {
    /// Yields url and revision.
    Source(ClusterSourceTemplate),
    /// Yields an image.
    Image(ClusterImageTemplate),
    /// Yields configuration.
    Config(ClusterConfigTemplate),
    /// Yields nothing.
    Plain(ClusterTemplate),
    /// Hands its deployment on.
    Deployment(ClusterDeploymentTemplate),
}

impl Template {
    /// Reads a template of the given kind from its JSON.
    ///
    /// # Errors
    ///
    /// The object does not have the shape of the kind; the API server admits no such object.
    pub fn from_value(kind: TemplateKind, object: Value) -> Result<Self, serde_json::Error> {
        Ok(match kind {
            TemplateKind::Source => Self::Source(serde_json::from_value(object)?),
            TemplateKind::Image => Self::Image(serde_json::from_value(object)?),
            TemplateKind::Config => Self::Config(serde_json::from_value(object)?),
            TemplateKind::Plain => Self::Plain(serde_json::from_value(object)?),
            TemplateKind::Deployment => Self::Deployment(serde_json::from_value(object)?),
        })
    }

    /// Which kind it is.
    pub fn kind(&self) -> TemplateKind {
        match self {
            Self::Source(_) => TemplateKind::Source,
            Self::Image(_) => TemplateKind::Image,
            Self::Config(_) => TemplateKind::Config,
            Self::Plain(_) => TemplateKind::Plain,
            Self::Deployment(_) => TemplateKind::Deployment,
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            Self::Source(template) => template.name_any(),
            Self::Image(template) => template.name_any(),
            Self::Config(template) => template.name_any(),
            Self::Plain(template) => template.name_any(),
            Self::Deployment(template) => template.name_any(),
        }
    }

    /// The part all kinds share.
    pub fn spec(&self) -> &TemplateSpec {
        match self {
            Self::Source(template) => &template.spec.template_spec,
            Self::Image(template) => &template.spec.template_spec,
            Self::Config(template) => &template.spec.template_spec,
            Self::Plain(template) => &template.spec.template_spec,
            Self::Deployment(template) => &template.spec.template_spec,
        }
    }

    /// The paths at which outputs are read, each with the name of its output, in the order in which they are read.
    ///
    /// Empty for plain templates (no output) and deployment templates (they hand their deployment on).
    ///
    /// ```
    /// use api_types::{Template, TemplateKind};
    ///
    /// let object = serde_json::json!({
    ///     "apiVersion": "carto.run/v1alpha1", "kind": "ClusterImageTemplate",
    ///     "metadata": {"name": "build"}, "spec": {"imagePath": ".status.latestImage"},
    /// });
    /// let template = Template::from_value(TemplateKind::Image, object)?;
    /// assert_eq!(template.output_paths(), [("image", ".status.latestImage")]);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn output_paths(&self) -> Vec<(&'static str, &str)> {
        match self {
            Self::Source(template) => {
                vec![
                    ("url", template.spec.url_path.as_str()),
                    ("revision", template.spec.revision_path.as_str()),
                ]
            }
            Self::Image(template) => vec![("image", template.spec.image_path.as_str())],
            Self::Config(template) => vec![("config", template.spec.config_path.as_str())],
            Self::Plain(_) | Self::Deployment(_) => Vec::new(),
        }
    }
}
