//! Which pods have what a preset no longer says.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ANNOTATIONS;
use crate::origin::Origin;
use crate::preset::Preset;

/// A marker of a pod that is not that of a preset as it is now.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stale {
    /// Name of the preset.
    pub preset: String,
    /// Whether it is one of the cluster.
    pub is_of_cluster: bool,
    /// The version that the pod has.
    pub applied: String,
    /// The version of today; nothing if the preset is gone.
    pub current: Option<String>,
}

/// The version of each marker that a pod with these presets has, in the order of its keys.
///
/// Presets of both groups may have one name and then share a marker: it has both versions.
pub(crate) fn markers(presets: &[&Preset]) -> BTreeMap<String, String> {
    let mut markers: BTreeMap<String, String> = BTreeMap::new();
    for preset in presets {
        let (key, version) = preset.marker();
        let marker = markers.entry(key).or_default();
        if !marker.is_empty() {
            marker.push(',');
        }
        marker.push_str(&version);
    }
    markers
}

/// What a pod with these annotations has of older versions of presets, or of presets that are gone.
///
/// `presets` are those of the pod's namespace and those of the cluster, whether or not they select it. Annotations are what
/// whoever wrote the pod says: nothing but a report should follow from them.
///
/// ```
/// use pod_presets::{Preset, stale};
/// use serde_json::json;
///
/// let preset = Preset::compile(&json!({
///     "apiVersion": "settings.carto.run/v1alpha1",
///     "kind": "PodPreset",
///     "metadata": {"name": "db", "namespace": "a", "resourceVersion": "8"},
///     "spec": {"selector": {"matchLabels": {"a": "b"}}, "env": [{"name": "A"}]},
/// })).unwrap();
/// let annotations = json!({"podpreset.admission.kubernetes.io/podpreset-db": "7"});
/// let found = stale(&annotations, [&preset]);
/// assert_eq!((found[0].applied.as_str(), found[0].current.as_deref()), ("7", Some("8")));
/// ```
pub fn stale<'p>(annotations: &Value, presets: impl IntoIterator<Item = &'p Preset>) -> Vec<Stale> {
    let mut presets: Vec<&Preset> = presets.into_iter().collect();
    presets.sort_by(|left, right| left.precedence(right));
    let current = markers(&presets);
    let annotations = annotations.as_object().into_iter().flatten();
    let stale = annotations.filter_map(|(key, applied)| {
        let (origin, name) = marked(key)?;
        let applied = applied.as_str().unwrap_or_default();
        let current = current.get(key);
        let is_current = current.is_some_and(|it| includes(it, applied));
        (!is_current).then(|| Stale {
            preset: name.to_owned(),
            is_of_cluster: origin == Origin::Cluster,
            applied: applied.to_owned(),
            current: current.cloned(),
        })
    });
    stale.collect()
}

/// Whether each version of a marker is one of today's. Of two presets with one name a pod may have matched only one.
fn includes(current: &str, applied: &str) -> bool {
    let mut applied = applied.split(',');
    applied.all(|version| current.split(',').any(|it| it == version))
}

/// The preset that a key of an annotation is the marker of.
fn marked(key: &str) -> Option<(Origin, &str)> {
    let marker = key.strip_prefix(ANNOTATIONS)?.strip_prefix('/')?;
    [Origin::Cluster, Origin::Namespaced]
        .into_iter()
        .find_map(|origin| {
            let name = marker.strip_prefix(origin.marker_prefix())?;
            Some((origin, name))
        })
}
