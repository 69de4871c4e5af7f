//! What the conventions controller and the webhooks of conventions send one another: a [`PodConventionContext`] each way.
//!
//! ```text
//!  controller ── POST  spec:   template, imageConfig ──────────▶ webhook
//!             ◀─ 200   status: template, appliedConventions ────
//! ```
//!
//! - A [`PodTemplate`] is carried as the JSON it is. Only what the protocol speaks of has a type: the five keys of the
//!   metadata, and the images. So a field of a newer Kubernetes goes through, and a quantity stays as it was written.
//! - Both sides read leniently, as servers in Go do: `null` is an absent list, map or text, an unknown field is no error.
//! - There is no I/O here, and no type of Kubernetes: a webhook depends on little.
//!
//! ```
//! use convention_protocol::PodConventionContext;
//!
//! let sent = r#"{"metadata": {"name": "app-add-env"}, "spec": {"imageConfig": null,
//!     "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web"}]}}}}"#;
//! let context: PodConventionContext = serde_json::from_str(sent)?;
//! let answer = context.answer(context.spec.template.clone(), vec!["add-env".to_owned()]);
//! assert_eq!(answer.status.applied_conventions.as_deref(), Some(&["add-env".to_owned()][..]));
//! # Ok::<(), serde_json::Error>(())
//! ```

mod context;
mod image;
mod lenient;
mod template;
mod values;

pub use context::{
    API_VERSION, ContextMetadata, GROUP, KIND, PodConventionAnswer, PodConventionContext,
    PodConventionContextSpec, PodConventionContextStatus, VERSION,
};
pub use image::{Bom, ImageConfig};
pub use template::{PodTemplate, TemplateMetadata};
pub use values::{count_values, has_more_values};

/// Annotation of a template: what was applied to it, a line for each, as `<ClusterPodConvention>/<name>`.
///
/// The controller writes it. What a convention writes there is not kept.
pub const APPLIED_CONVENTIONS: &str = "conventions.carto.run/applied-conventions";
