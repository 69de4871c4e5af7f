//! A template of any kind.

use kube_core::ResourceExt;
use serde_json::Value;

use super::{
    ClusterConfigTemplate, ClusterDeploymentTemplate, ClusterDeploymentValidationTemplate,
    ClusterImageTemplate, ClusterSourceTemplate, ClusterTemplate, SuccessRules, TemplateKind,
    TemplateSpec, UpdatePolicy,
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

    /// What becomes of updates that come while its object is neither good nor failed. A validation is judged for each arrival,
    /// so it has none.
    pub fn update_policy(&self) -> Option<&UpdatePolicy> {
        match self {
            Self::Validation(_) => None,
            _ => self.success().update_policy.as_ref(),
        }
    }

    /// Whether its outputs are not read while others have set fields of the object that are not rendered.
    pub fn refuses_foreign_fields(&self) -> bool {
        match self {
            Self::Validation(_) => false,
            _ => self.success().refuses_foreign_fields(),
        }
    }

    /// When its outputs are good.
    pub fn success(&self) -> &SuccessRules {
        match self {
            Self::Source(template) => &template.spec.success,
            Self::Image(template) => &template.spec.success,
            Self::Config(template) => &template.spec.success,
            Self::Plain(template) => &template.spec.success,
            Self::Deployment(template) => &template.spec.success,
            Self::Validation(template) => &template.spec.deployment.success,
        }
    }

    /// Whether outputs are tied to what made them, so that status says of each which inputs that were, and the last good
    /// ones go on while there are no new ones (docs/behaviour/attribution.md). Not so with a template that says no more
    /// than it could to the Go controller.
    ///
    /// ```
    /// use api_types::{Template, TemplateKind};
    /// use serde_json::json;
    ///
    /// let mut object = json!({"metadata": {"name": "build"}, "spec": {"imagePath": ".status.image"}});
    /// assert!(!Template::from_value(TemplateKind::Image, object.clone())?.is_attributed());
    /// object["spec"]["observedMatches"] = json!([{"input": ".spec.tag", "output": ".status.tag"}]);
    /// assert!(Template::from_value(TemplateKind::Image, object)?.is_attributed());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn is_attributed(&self) -> bool {
        match self {
            Self::Source(_) | Self::Image(_) | Self::Config(_) | Self::Plain(_) => {
                self.success().given() > 0
            }
            Self::Deployment(_) => self.success().are_attributed(),
            Self::Validation(_) => false,
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
}
