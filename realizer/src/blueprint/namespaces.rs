//! In which namespaces owners may use a blueprint (docs/behaviour/selection.md#namespaces).

use std::collections::BTreeMap;

use api_types::LabelSelector;
use api_types::selector::{CompiledSelector, SelectorError};

/// The labels that the namespaces of owners must have.
#[derive(Clone, Debug)]
pub(super) enum AllowedNamespaces {
    /// Nothing is asked for.
    All,
    /// They must match.
    Matching(CompiledSelector),
    /// Nobody can say what is asked for, so nobody is let in.
    Broken(SelectorError),
}

impl AllowedNamespaces {
    pub(super) fn new(selector: Option<&LabelSelector>) -> Self {
        match selector.filter(|selector| !selector.is_empty()) {
            None => Self::All,
            Some(selector) => match selector.compile() {
                Ok(compiled) => Self::Matching(compiled),
                Err(error) => Self::Broken(error),
            },
        }
    }

    pub(super) fn ask(&self) -> bool {
        !matches!(self, Self::All)
    }

    pub(super) fn unmet_by(&self, labels: &BTreeMap<String, String>) -> Option<String> {
        match self {
            Self::All => None,
            Self::Matching(selector) => selector.unmet(labels).map(|requirement| {
                let found = labels.get(&requirement.key).map(String::as_str);
                format!("its label {}", requirement.unmet_by(found))
            }),
            Self::Broken(error) => Some(format!("allowedNamespaces is not valid: {error}")),
        }
    }
}
