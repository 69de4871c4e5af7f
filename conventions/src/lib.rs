//! The kinds of `conventions.carto.run/v1alpha1`, and all that is decided about them.
//!
//! A [`PodIntent`] holds a pod template. Each [`ClusterPodConvention`] that selects it is asked, one after the other, what it
//! would have the template be, and the result stands in the status of the PodIntent. Nothing here does any I/O: what images
//! and webhooks say is handed in.
//!
//! ```text
//!  ClusterPodConventions ──▶ select ──▶ chain ──▶ outcome ──▶ status of the PodIntent
//!  PodIntent ───────────────┘   ▲         ▲ └── receipts, quantity, schema::shape: what an answer may be
//!  pull secrets ──▶ credentials │  image ─┘
//!                               ├─ answer: what a webhook said
//!                               └─ authority: whom it is trusted for
//! ```
//!
//! - What users wrote is kept: unknown fields, the wording of quantities, the tags of images.
//! - What comes out is determined by what goes in: orders, messages and times do not depend on the order of lists.
//! - An answer that could not be stored is found here, with its field; the API server is not asked in vain.
//! - Texts of condition types and reasons are in [`condition`] only.

pub mod admission;
pub mod answer;
pub mod authority;
mod bom;
pub mod chain;
pub mod condition;
pub mod considered;
mod convention;
pub mod credentials;
pub mod diff;
pub mod image;
pub mod inputs;
mod intent;
pub mod outcome;
pub mod pod;
pub mod quantity;
pub mod receipts;
mod schema;
pub mod select;
pub mod tally;
pub mod told;

pub use bom::StoredBom;
pub use convention::{
    CertificateReference, ClusterPodConvention, ClusterPodConventionSpec, ConventionWebhook,
    FailurePolicy, MOST_TIMEOUT_SECONDS, PodPresetsConvention, Priority, SelectorTarget,
};
pub use intent::{
    ConsideredConvention, DEFAULT_SERVICE_ACCOUNT, PodIntent, PodIntentSpec, PodIntentStatus,
    ResolvedImage,
};
pub use schema::crds;
pub use schema::shape::Fault;

/// The API group of both kinds.
pub const GROUP: &str = "conventions.carto.run";
/// The only version of the group.
pub const VERSION: &str = "v1alpha1";
/// Annotation on a ClusterPodConvention: `<namespace>/<name>` of a Certificate of cert-manager whose authority is trusted,
/// for those that do not say it in `spec.webhook.certificate`.
pub const INJECT_CA_FROM: &str = "conventions.carto.run/inject-ca-from";
/// Annotation on a ClusterPodConvention with any text. When it changes, as when the program behind the webhook is another
/// one, all PodIntents that it matches are decorated again.
pub const REVISION: &str = "conventions.carto.run/revision";
