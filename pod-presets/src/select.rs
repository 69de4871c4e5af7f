//! Which presets a pod gets, and in which order.

use std::collections::BTreeMap;

use crate::preset::Preset;

/// Of these presets those for a pod with these labels, in their order.
///
/// Presets in a namespace must be those of the pod's.
pub fn select<'p>(
    presets: impl IntoIterator<Item = &'p Preset>,
    labels: &BTreeMap<String, String>,
    namespace_labels: &BTreeMap<String, String>,
) -> Vec<&'p Preset> {
    let presets = presets.into_iter();
    let mut selected: Vec<&Preset> = presets
        .filter(|preset| preset.selects(labels, namespace_labels))
        .collect();
    selected.sort_by(|left, right| left.precedence(right));
    selected
}
