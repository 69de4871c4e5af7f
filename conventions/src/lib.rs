//! The kinds of `conventions.carto.run/v1alpha1`.
//!
//! A [`PodIntent`] holds a pod template. Each [`ClusterPodConvention`] that selects it is asked, one after the other, what it
//! would have the template be, and the result stands in the status of the PodIntent.
//!
//! What users wrote is kept, unknown fields and the wording of quantities among it.

mod convention;
mod intent;
mod schema;

pub use convention::{
    CertificateReference, ClusterPodConvention, ClusterPodConventionSpec, ConventionWebhook,
    Priority, SelectorTarget,
};
pub use intent::{DEFAULT_SERVICE_ACCOUNT, PodIntent, PodIntentSpec, PodIntentStatus};
pub use schema::crds;

/// The API group of both kinds.
pub const GROUP: &str = "conventions.carto.run";
/// The only version of the group.
pub const VERSION: &str = "v1alpha1";
/// Annotation on a ClusterPodConvention: `<namespace>/<name>` of a Certificate of cert-manager whose authority is trusted,
/// for those that do not say it in `spec.webhook.certificate`.
pub const INJECT_CA_FROM: &str = "conventions.carto.run/inject-ca-from";
