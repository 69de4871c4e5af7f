//! Admission webhooks, validating and mutating: HTTPS, certificates that change while it runs, and an answer.
//!
//! ```text
//!  Secret or --cert-dir ─▶ ServingCertificate ─┐
//!                                              ▼
//!  API server ── AdmissionReview ─▶ TLS ─▶ route ─▶ Admit ─▶ AdmissionReview
//!       ▲
//!       └─ caBundle in the webhook configurations ◀─ kept up to date, if the certificate is our own
//! ```
//!
//! The answer itself is somebody else's: [`Admit`] has the whole review, and [`Validating`] is one for rules that are pure
//! ([`Validate`]). cert-manager is optional; by default the
//! webhook makes its own certificate (upstream could not be installed without cert-manager).

mod admission;
mod ca_bundle;
mod certificate;
mod directory;
mod judges;
mod pki;
mod review;
mod self_managed;
mod server;
#[cfg(test)]
mod tests;
mod validating;
mod validity;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

pub use admission::Admission;
pub use certificate::{CertificateError, ServingCertificate};
pub(crate) use directory::follow_directory;
pub use judges::Judges;
pub use review::{Operation, Review, ReviewError, User};
pub(crate) use self_managed::service_names;
pub use self_managed::{Configuration, SelfManaged};
pub use server::serve;
pub use validating::{Validate, Validating};

/// Decides about what is about to happen to objects, and may change them.
///
/// Every replica is asked, whether it leads or not.
pub trait Admit: Send + Sync + 'static {
    /// The answer to a review. It is waited for by whoever sent the object, for 10 s at the most; what takes a processor for
    /// long belongs on a thread of its own. `None` when the process ends. One that panics fails this one request.
    fn admit(&self, review: Arc<Review>) -> BoxFuture<'_, Option<Answer>>;
}

/// What is said about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Denied with this text. The API server puts `admission webhook "<name>" denied the request: ` before it.
    pub error: Option<String>,
    /// Shown to the user, whether denied or not.
    pub warnings: Vec<String>,
    /// Operations of a JSON patch (RFC 6902) that change the object, if it is not denied. The API server takes them from
    /// webhooks of a MutatingWebhookConfiguration only.
    pub patch: Vec<Value>,
    /// For the audit log; the API server puts the webhook's name before each key.
    pub audit_annotations: BTreeMap<String, String>,
}

impl Answer {
    /// No, because of this.
    pub fn denied(error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::default()
        }
    }
}

/// Under which path what is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Path of the URL.
    pub path: &'static str,
    /// The kind, as [`Review::kind`] and metrics have it.
    pub kind: &'static str,
}

/// Who answers under which path.
pub type Routes = Vec<(Route, Arc<dyn Admit>)>;

/// One for all of these.
pub fn routes(routes: &[Route], admit: impl Admit) -> Routes {
    let admit: Arc<dyn Admit> = Arc::new(admit);
    let routes = routes.iter().map(|route| (*route, admit.clone()));
    routes.collect()
}
