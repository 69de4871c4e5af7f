//! Which owner is meant, in the words of people.

use std::str::FromStr;

use realizer::Family;

/// The controller that works on the owners of a family.
pub(crate) fn controller(family: Family) -> &'static str {
    match family {
        Family::SupplyChain => "supplychain-controller",
        Family::Delivery => "delivery-controller",
    }
}

fn family(word: &str) -> Option<Family> {
    let word = word.to_ascii_lowercase();
    match word.strip_suffix(".carto.run").unwrap_or(&word) {
        "workload" | "workloads" | "wld" => Some(Family::SupplyChain),
        "deliverable" | "deliverables" | "dlv" => Some(Family::Delivery),
        _ => None,
    }
}

/// One owner, as named on the command line: `workload/web-app`, `dlv/web-app`, or `web-app` for a Workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which kind of owner.
    pub family: Family,
    /// Its name.
    pub name: String,
}

/// A target that cannot be understood. The caller types another one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A kind that has no tree.
    #[error("kind {0:?} has no tree; known: workload (wld), deliverable (dlv)")]
    Kind(String),
    /// Nothing behind the slash.
    #[error("a name is missing; write it as workload/NAME")]
    NameMissing,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (family, name) = match text.split_once('/') {
            None => (Family::SupplyChain, text),
            Some((word, name)) => (
                family(word).ok_or_else(|| TargetError::Kind(word.to_owned()))?,
                name,
            ),
        };
        if name.is_empty() {
            return Err(TargetError::NameMissing);
        }
        Ok(Self {
            family,
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_written_as_kubectl_writes_it() {
        let parsed = |text: &str| {
            text.parse::<Target>()
                .map(|target| (target.family, target.name))
        };
        let workload = Ok((Family::SupplyChain, "app".to_owned()));
        let deliverable = Ok((Family::Delivery, "app".to_owned()));
        for text in [
            "app",
            "workload/app",
            "workloads/app",
            "wld/app",
            "Workload/app",
            "workloads.carto.run/app",
        ] {
            assert_eq!(parsed(text), workload, "{text}");
        }
        for text in ["deliverable/app", "deliverables/app", "dlv/app"] {
            assert_eq!(parsed(text), deliverable, "{text}");
        }
        assert_eq!(parsed("pod/app"), Err(TargetError::Kind("pod".to_owned())));
        assert_eq!(parsed("workload/"), Err(TargetError::NameMissing));
        assert_eq!(parsed(""), Err(TargetError::NameMissing));
    }
}
