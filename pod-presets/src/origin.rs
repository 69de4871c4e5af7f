//! The kinds that hold a preset.

/// Which kind, of which group, a preset comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// ClusterPodPreset, for the namespaces that it selects.
    Cluster,
    /// PodPreset.
    Namespaced,
    /// PodPreset of the group that Kubernetes once had.
    NamespacedOld,
}

impl Origin {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cluster, Self::Namespaced, Self::NamespacedOld];
    /// The version of each group.
    pub const VERSION: &str = "v1alpha1";

    /// The API group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Cluster | Self::Namespaced => "settings.carto.run",
            Self::NamespacedOld => "settings.k8s.io",
        }
    }

    /// `<group>/<version>`, as objects write it.
    ///
    /// ```
    /// assert_eq!(pod_presets::Origin::NamespacedOld.api_version(), "settings.k8s.io/v1alpha1");
    /// ```
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Cluster | Self::Namespaced => "settings.carto.run/v1alpha1",
            Self::NamespacedOld => "settings.k8s.io/v1alpha1",
        }
    }

    /// The kind.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Cluster => "ClusterPodPreset",
            Self::Namespaced | Self::NamespacedOld => "PodPreset",
        }
    }

    /// The plural, as paths have it.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "clusterpodpresets",
            Self::Namespaced | Self::NamespacedOld => "podpresets",
        }
    }

    /// Whether its objects are in namespaces.
    pub fn is_namespaced(self) -> bool {
        self != Self::Cluster
    }

    /// Where an object with this `apiVersion` and `kind` comes from; nothing if it is no preset.
    ///
    /// ```
    /// use pod_presets::Origin;
    ///
    /// assert_eq!(Origin::of("settings.carto.run/v1alpha1", "PodPreset"), Some(Origin::Namespaced));
    /// assert_eq!(Origin::of("v1", "Pod"), None);
    /// ```
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|origin| origin.api_version() == api_version && origin.kind() == kind)
    }

    /// What the markers of its presets begin with, behind the prefix of all annotations.
    pub(crate) fn marker_prefix(self) -> &'static str {
        match self {
            Self::Cluster => "clusterpodpreset-",
            Self::Namespaced | Self::NamespacedOld => "podpreset-",
        }
    }

    /// The longest name for which the marker is a valid key of an annotation, whose name part has 63 characters at most.
    ///
    /// ```
    /// assert_eq!(pod_presets::Origin::Namespaced.longest_name(), 53);
    /// ```
    pub fn longest_name(self) -> usize {
        63 - self.marker_prefix().len()
    }

    /// Those of the cluster come before those of a namespace, whatever their group.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Cluster => 0,
            Self::Namespaced | Self::NamespacedOld => 1,
        }
    }
}
