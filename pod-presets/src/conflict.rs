//! What a preset wants and a pod has otherwise.

use std::fmt;

use serde_json::Value;

use crate::ANNOTATIONS;
use crate::origin::Origin;

/// Which preset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PresetName {
    /// Its name.
    pub name: String,
    /// Its namespace; empty for those of the cluster.
    pub namespace: String,
    /// Its kind.
    pub origin: Origin,
}

impl PresetName {
    /// The key of the annotation by which a pod is known to have it.
    pub fn marker_key(&self) -> String {
        format!("{ANNOTATIONS}/{}", self.receipt())
    }

    /// What is said of a pod that has it, where it is clear that presets are meant.
    ///
    /// ```
    /// use pod_presets::{Origin, PresetName};
    ///
    /// let name = PresetName { name: "a".into(), namespace: "b".into(), origin: Origin::Namespaced };
    /// assert_eq!(name.receipt(), "podpreset-a");
    /// ```
    pub fn receipt(&self) -> String {
        format!("{}{}", self.origin.marker_prefix(), self.name)
    }

    /// Who reports what became of it: the source of the event of a conflict.
    ///
    /// ```
    /// use pod_presets::{Origin, PresetName};
    ///
    /// let name = PresetName { name: "a".into(), namespace: "b".into(), origin: Origin::Namespaced };
    /// assert_eq!(name.reporter(), "podpreset.admission.kubernetes.io/a");
    /// ```
    pub fn reporter(&self) -> String {
        format!("{ANNOTATIONS}/{}", self.name)
    }
}

impl fmt::Display for PresetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.origin.kind(), self.name)
    }
}

/// In what a preset and a pod differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// A volume, by name.
    Volume,
    /// A variable, by name.
    Env,
    /// A mount, by the name of its volume.
    VolumeMount,
    /// A mount, by its path.
    MountPath,
    /// Where variables come from, by prefix and name.
    EnvFrom,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Volume,
        Self::Env,
        Self::VolumeMount,
        Self::MountPath,
        Self::EnvFrom,
    ];

    /// As it stands in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Env => "env",
            Self::VolumeMount => "volumeMount",
            Self::MountPath => "mountPath",
            Self::EnvFrom => "envFrom",
        }
    }

    /// What is merged, and what its key is called, in the words of the admission plugin.
    fn merging(self) -> (&'static str, &'static str) {
        match self {
            Self::Volume => ("volumes", ""),
            Self::Env => ("env", ""),
            Self::VolumeMount => ("volume mounts", ""),
            Self::MountPath => ("volume mounts", "mount path "),
            Self::EnvFrom => ("envFrom", ""),
        }
    }
}

/// Who has it otherwise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opponent {
    /// The pod, as it came.
    Pod,
    /// A preset that comes before.
    Preset(PresetName),
}

/// What followed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Settled {
    /// Nothing was injected.
    Skipped,
    /// What was there stayed, and the rest was injected.
    Kept,
    /// What was there was replaced.
    Overridden,
    /// The pod was refused.
    Denied,
}

impl Settled {
    /// Whether nothing was injected because of it.
    pub fn is_blocking(self) -> bool {
        matches!(self, Self::Skipped | Self::Denied)
    }
}

/// A preset wants one thing, and there is another.
#[derive(Clone, PartialEq)]
pub struct Conflict {
    /// Whose wish it is.
    pub preset: PresetName,
    /// In which container; nothing for volumes.
    pub container: Option<String>,
    /// In what.
    pub field: Field,
    /// Name or path.
    pub key: String,
    /// With whom.
    pub with: Opponent,
    /// What followed.
    pub settled: Settled,
    pub(crate) wanted: Value,
    pub(crate) existing: Value,
}

/// Characters of a key that are told; names of pods and paths are far shorter.
const MOST_KEY: usize = 120;

impl Conflict {
    /// The message of the event. No value is in it.
    pub fn message(&self) -> String {
        let key: String = self.key.chars().take(MOST_KEY).collect();
        format!(
            "Conflict on pod preset. Duplicate {} {key}.",
            self.field.as_str()
        )
    }

    /// What the admission plugin of Kubernetes said, with both values. These may be confidential: it is for who asks for it
    /// with the objects at hand, and not for logs, events and statuses.
    pub fn explanation(&self) -> String {
        let (what, key) = self.field.merging();
        let place = match self.container {
            Some(_) => "in container",
            None => "in pod",
        };
        format!(
            "merging {what} for {} has a conflict on {key}{}: \n{}\ndoes not match\n{}\n {place}",
            self.preset.name, self.key, self.wanted, self.existing
        )
    }
}

impl fmt::Debug for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conflict")
            .field("preset", &self.preset)
            .field("container", &self.container)
            .field("field", &self.field)
            .field("key", &self.key)
            .field("with", &self.with)
            .field("settled", &self.settled)
            .finish_non_exhaustive()
    }
}
