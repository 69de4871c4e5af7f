//! Which template kinds there are.

use std::fmt;
use std::str::FromStr;

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
    /// ClusterDeploymentValidationTemplate.
    Validation,
}

impl TemplateKind {
    /// Every template kind.
    pub const ALL: [Self; 6] = [
        Self::Source,
        Self::Image,
        Self::Config,
        Self::Plain,
        Self::Deployment,
        Self::Validation,
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
            Self::Validation => "ClusterDeploymentValidationTemplate",
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_among_all() {
        // A new variant does not compile here until it is in `ALL`, too.
        let place = |kind| match kind {
            TemplateKind::Source => 0,
            TemplateKind::Image => 1,
            TemplateKind::Config => 2,
            TemplateKind::Plain => 3,
            TemplateKind::Deployment => 4,
            TemplateKind::Validation => 5,
        };
        let places: Vec<usize> = TemplateKind::ALL.into_iter().map(place).collect();
        assert_eq!(places, [0, 1, 2, 3, 4, 5]);
    }

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
