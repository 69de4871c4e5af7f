//! The kinds of pod presets, and all that is decided about them.
//!
//! A **preset** says what is added to each pod that it selects: variables, volumes and mounts. Three kinds hold one
//! ([`Origin`]): PodPreset in its group of today, PodPreset in the group that Kubernetes once had, and ClusterPodPreset. They
//! behave the same and are ordered together. Nothing here does any I/O; pods and presets are JSON, so that what a newer
//! Kubernetes knows is kept.
//!
//! ```text
//!  object of a preset ──▶ validate ──▶ Preset::compile ──▶ Preset        (once per resourceVersion)
//!                                                            │ select
//!  pod ──▶ gate ──▶ inject ◀─────────────────────────────────┘
//!                     │  plan:  what is done to each list, before any is touched
//!                     │  merge: what presets wish for in one list, and what is there
//!                     │  same:  whether two values mean the same
//!                     └──▶ Injection: the pod with all of it, or as it was; conflicts; what was added
//! ```
//!
//! - A pod gets everything that its presets say, or nothing: all is checked before anything is changed.
//! - Who runs the injection on its own result gets the same result. Other webhooks may add containers in between.
//! - What no preset names stays as it was.
//! - A preset that cannot be read harms only itself: [`Preset::compile`] refuses it, and others go on.
//! - Values of variables are in no text that is meant for events, logs or statuses.

mod conflict;
mod defaults;
mod explain;
mod export;
mod gate;
mod inject;
mod merge;
mod origin;
mod plan;
mod preset;
mod same;
mod schema;
mod select;
mod shadow;
mod stale;
mod status;
mod target;
mod validate;

pub use conflict::{Conflict, Field, Opponent, PresetName, Settled};
pub use explain::{Candidate, Explained, Explanation, Outcome, explain};
pub use export::{Export, export};
pub use gate::{EXCLUDE, MIRROR, Untouched, passes_gate};
pub use inject::{Addition, Applied, Audited, Injection, inject, inject_ephemeral, patch};
pub use origin::Origin;
pub use preset::{ConflictPolicy, Mode, Preset};
pub use schema::{crds, optional_crds};
pub use select::select;
pub use shadow::{Source, shadowed};
pub use stale::{Stale, stale};
pub use status::{
    CONFLICTING, LastConflict, PresetStatus, StaleOwner, StatusReason, VALID, Verdict,
};
pub use target::ContainerType;
pub use validate::{FieldError, Options, validate, warnings};

/// What all annotations of presets begin with.
pub const ANNOTATIONS: &str = "podpreset.admission.kubernetes.io";
