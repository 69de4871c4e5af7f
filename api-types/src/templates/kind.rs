//! Which template kinds there are.

use std::str::FromStr;

use crate::texts::text_enum;

text_enum! {
    /// Which of the template kinds; its text is the Kubernetes kind.
    ///
    /// ```
    /// use api_types::TemplateKind;
    ///
    /// assert_eq!(TemplateKind::Plain.as_str(), "ClusterTemplate");
    /// assert_eq!("ClusterTemplate".parse(), Ok(TemplateKind::Plain));
    /// ```
    #[derive(PartialOrd, Ord)]
    pub enum TemplateKind {
        /// ClusterSourceTemplate.
        Source = "ClusterSourceTemplate",
        /// ClusterImageTemplate.
        Image = "ClusterImageTemplate",
        /// ClusterConfigTemplate.
        Config = "ClusterConfigTemplate",
        /// ClusterTemplate.
        Plain = "ClusterTemplate",
        /// ClusterDeploymentTemplate.
        Deployment = "ClusterDeploymentTemplate",
        /// ClusterDeploymentValidationTemplate.
        Validation = "ClusterDeploymentValidationTemplate",
    }
}

impl TemplateKind {
    /// The plural, as in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Source => "clustersourcetemplates",
            Self::Image => "clusterimagetemplates",
            Self::Config => "clusterconfigtemplates",
            Self::Plain => "clustertemplates",
            Self::Deployment => "clusterdeploymenttemplates",
            Self::Validation => "clusterdeploymentvalidationtemplates",
        }
    }

    /// Whether its steps hand on the deployment that goes in, instead of reading outputs from their object.
    pub fn echoes_deployment(self) -> bool {
        matches!(self, Self::Deployment | Self::Validation)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plurals_are_those_of_the_definitions() {
        let crds = crate::crds();
        for kind in TemplateKind::ALL {
            let names = crds.iter().map(|crd| &crd.spec.names);
            let names = names.filter(|names| names.kind == kind.as_str());
            let plurals: Vec<&str> = names.map(|names| names.plural.as_str()).collect();
            assert_eq!(plurals, [kind.plural()]);
        }
    }
}
