//! Which owner is meant, in the words of people.

use std::str::FromStr;

use realizer::Family;

/// What has a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A Workload or a Deliverable.
    Owner(Family),
    /// A Runnable.
    Runnable,
}

impl TargetKind {
    /// The controller that works on it.
    pub fn controller(self) -> &'static str {
        match self {
            Self::Owner(Family::SupplyChain) => "supplychain-controller",
            Self::Owner(Family::Delivery) => "delivery-controller",
            Self::Runnable => "runnable-controller",
        }
    }

    /// Its kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Owner(family) => family.owner_kind(),
            Self::Runnable => realizer::runnable::KIND,
        }
    }

    /// Its plural, as in URLs.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Owner(family) => family.owner_plural(),
            Self::Runnable => "runnables",
        }
    }

    /// The word for it in messages.
    pub fn word(self) -> &'static str {
        match self {
            Self::Owner(family) => family.owner_word(),
            Self::Runnable => "runnable",
        }
    }

    fn of(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        match word.strip_suffix(".carto.run").unwrap_or(&word) {
            "workload" | "workloads" | "wld" => Some(Self::Owner(Family::SupplyChain)),
            "deliverable" | "deliverables" | "dlv" => Some(Self::Owner(Family::Delivery)),
            "runnable" | "runnables" | "run" => Some(Self::Runnable),
            _ => None,
        }
    }
}

/// One object, as named on the command line: `workload/web-app`, `dlv/web-app`, `runnable/test`, or `web-app` for a Workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What it is.
    pub kind: TargetKind,
    /// Its name.
    pub name: String,
}

/// A target that cannot be understood. The caller types another one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A kind that has no tree.
    #[error("kind {0:?} has no tree; known: workload (wld), deliverable (dlv), runnable (run)")]
    Kind(String),
    /// Nothing behind the slash.
    #[error("a name is missing; write it as workload/NAME")]
    NameMissing,
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let (kind, name) = match text.split_once('/') {
            None => (TargetKind::Owner(Family::SupplyChain), text),
            Some((word, name)) => (
                TargetKind::of(word).ok_or_else(|| TargetError::Kind(word.to_owned()))?,
                name,
            ),
        };
        if name.is_empty() {
            return Err(TargetError::NameMissing);
        }
        Ok(Self {
            kind,
            name: name.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_kubectl_knows_of_a_kind_with_a_tree_is_understood() {
        let mut known = 0;
        for definition in api_types::crds() {
            let names = &definition.spec.names;
            let (Some(kind), Some(short)) = (TargetKind::of(&names.plural), &names.short_names)
            else {
                continue;
            };
            assert_eq!(kind.kind(), names.kind);
            let others = [
                names.kind.as_str(),
                names.singular.as_deref().unwrap_or_default(),
            ];
            for word in short.iter().map(String::as_str).chain(others) {
                assert_eq!(TargetKind::of(word), Some(kind), "{word}");
                known += 1;
            }
        }
        assert_eq!(
            known, 9,
            "three kinds with a kind, a singular and a short name each"
        );
    }

    #[test]
    fn a_target_is_written_as_kubectl_writes_it() {
        let parsed = |text: &str| {
            text.parse::<Target>()
                .map(|target| (target.kind, target.name))
        };
        let workload = Ok((TargetKind::Owner(Family::SupplyChain), "app".to_owned()));
        let deliverable = Ok((TargetKind::Owner(Family::Delivery), "app".to_owned()));
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
        let runnable = Ok((TargetKind::Runnable, "app".to_owned()));
        for text in [
            "runnable/app",
            "runnables/app",
            "run/app",
            "run.carto.run/app",
        ] {
            assert_eq!(parsed(text), runnable, "{text}");
        }
        assert_eq!(parsed("pod/app"), Err(TargetError::Kind("pod".to_owned())));
        assert_eq!(parsed("workload/"), Err(TargetError::NameMissing));
        assert_eq!(parsed(""), Err(TargetError::NameMissing));
    }
}
