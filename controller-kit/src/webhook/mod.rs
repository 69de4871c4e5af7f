//! The validating admission webhook: HTTPS, certificates that change while it runs, and a verdict.
//!
//! ```text
//!  Secret or --cert-dir ─▶ ServingCertificate ─┐
//!                                              ▼
//!  API server ── AdmissionReview ─▶ TLS ─▶ route ─▶ Validate ─▶ AdmissionReview
//!       ▲
//!       └─ caBundle in the ValidatingWebhookConfiguration ◀─ kept up to date, if the certificate is our own
//! ```
//!
//! The verdict itself is somebody else's: [`Validate`] is pure. cert-manager is optional; by default the
//! webhook makes its own certificate (upstream could not be installed without cert-manager).

mod admission;
mod ca_bundle;
mod certificate;
mod directory;
mod pki;
mod review;
mod self_managed;
mod server;
#[cfg(test)]
mod tests;
mod validity;

use serde_json::Value;

pub use admission::Admission;
pub(crate) use admission::blueprints;
pub use certificate::{CertificateError, ServingCertificate};
pub(crate) use directory::follow_directory;
pub use review::Operation;
pub use self_managed::SelfManaged;
pub(crate) use self_managed::service_names;
pub use server::serve;

/// Decides about objects. Pure: no clock, no request.
pub trait Validate: Send + Sync + 'static {
    /// The verdict on an object that is about to be created or updated. `object` is what the user sent,
    /// defaults filled in; it may be any JSON.
    fn validate(&self, kind: &str, object: &Value, operation: Operation) -> Verdict;
}

/// What is said about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Denied with this text. The API server puts `admission webhook "<name>" denied the request: ` before it.
    pub error: Option<String>,
    /// Shown to the user, whether denied or not.
    pub warnings: Vec<String>,
}

/// Which kind is validated under which path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Path of the URL.
    pub path: &'static str,
    /// Kind, as handed to [`Validate`].
    pub kind: &'static str,
}

/// The routes of spec 7, which existing ValidatingWebhookConfigurations name, and that of the kind that is ours alone.
pub const ROUTES: [Route; 9] = [
    Route {
        path: "/validate-carto-run-v1alpha1-clustersupplychain",
        kind: "ClusterSupplyChain",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterdelivery",
        kind: "ClusterDelivery",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clustersourcetemplate",
        kind: "ClusterSourceTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterimagetemplate",
        kind: "ClusterImageTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterconfigtemplate",
        kind: "ClusterConfigTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clustertemplate",
        kind: "ClusterTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterdeploymenttemplate",
        kind: "ClusterDeploymentTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterdeploymentvalidationtemplate",
        kind: "ClusterDeploymentValidationTemplate",
    },
    Route {
        path: "/validate-carto-run-v1alpha1-clusterruntemplate",
        kind: "ClusterRunTemplate",
    },
];
