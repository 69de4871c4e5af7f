//! Which pods are left alone.

use serde_json::Value;

/// Annotation of a pod that no preset may change, if it is exactly `true`.
pub const EXCLUDE: &str = "podpreset.admission.kubernetes.io/exclude";
/// Annotation of the mirror of a static pod, which nobody may change.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

/// Why a pod is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Untouched {
    /// It is something else; whoever sent it is told.
    #[error("Resource was marked with kind Pod but was unable to be converted")]
    NotAPod,
    /// It is the mirror of a static pod.
    #[error("it is a mirror pod")]
    Mirror,
    /// Its author does not want it.
    #[error("its annotation {EXCLUDE} is true")]
    Excluded,
}

/// Whether presets may change a pod.
///
/// ```
/// use pod_presets::{Untouched, passes_gate};
/// use serde_json::json;
///
/// let annotated = |annotations| json!({"kind": "Pod", "metadata": {"annotations": annotations}, "spec": {}});
/// let exclude = "podpreset.admission.kubernetes.io/exclude";
/// assert_eq!(passes_gate(&annotated(json!({exclude: "true"}))), Err(Untouched::Excluded));
/// assert_eq!(passes_gate(&annotated(json!({exclude: "True"}))), Ok(()));
/// ```
///
/// # Errors
///
/// Why not; nothing is to be done about it.
pub fn passes_gate(pod: &Value) -> Result<(), Untouched> {
    let is_pod = match pod.get("kind") {
        None | Some(Value::Null) => true,
        Some(kind) => kind == "Pod" || kind == "",
    };
    if !is_pod || !pod.is_object() || !pod["spec"].is_object() {
        return Err(Untouched::NotAPod);
    }
    let annotations = &pod["metadata"]["annotations"];
    if annotations.get(MIRROR).is_some() {
        return Err(Untouched::Mirror);
    }
    match annotations.get(EXCLUDE) {
        Some(exclude) if exclude == "true" => Err(Untouched::Excluded),
        _ => Ok(()),
    }
}
