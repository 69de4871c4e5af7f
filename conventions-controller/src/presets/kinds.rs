//! The kinds of pod presets, and what else has to be known to serve them.

use controller_kit::reflect::Watched;
use pod_presets::Origin;

/// Those whose labels a ClusterPodPreset may ask for.
pub(super) const NAMESPACES: Watched = Watched {
    group: "",
    version: "v1",
    kind: "Namespace",
    plural: "namespaces",
};

/// How presets of this origin are watched and written.
pub(super) fn watched(origin: Origin) -> Watched {
    Watched {
        group: origin.group(),
        version: Origin::VERSION,
        kind: origin.kind(),
        plural: origin.plural(),
    }
}
