//! A template of any kind.

use kube_core::ResourceExt;
use serde_json::Value;

use super::{
    ClusterConfigTemplate, ClusterDeploymentTemplate, ClusterDeploymentValidationTemplate,
    ClusterImageTemplate, ClusterSourceTemplate, ClusterTemplate, TemplateKind, TemplateSpec,
};

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
    /// Hands its deployment on once that is validated.
    Validation(ClusterDeploymentValidationTemplate),
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
            TemplateKind::Validation => Self::Validation(serde_json::from_value(object)?),
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
            Self::Validation(_) => TemplateKind::Validation,
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
            Self::Validation(template) => template.name_any(),
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
            Self::Validation(template) => &template.spec.deployment.template_spec,
        }
    }

    /// The paths at which outputs are read, each with the name of its output, in the order in which they are read.
    ///
    /// Empty for plain templates (no output), and for deployment and validation templates (they hand their deployment on).
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
            Self::Plain(_) | Self::Deployment(_) | Self::Validation(_) => Vec::new(),
        }
    }
}
