//! What is counted of admission.

use super::define::{labels, metrics};
use super::{Metrics, RECONCILE_SECONDS};

labels! {
    /// What the webhook said.
    pub enum WebhookOutcome {
        /// Admitted.
        Allowed = "allowed",
        /// Denied.
        Denied = "denied",
        /// The request was no admission review.
        BadRequest = "bad_request",
    }
}

metrics! {
    pub(super) struct Webhook {
        /// Admission reviews by kind and verdict.
        requests: counters("carto_webhook_requests_total", &["kind", "outcome"]),
        /// Time an admission review took.
        seconds: histogram("carto_webhook_duration_seconds", RECONCILE_SECONDS),
        /// When the serving certificate expires.
        certificate_expiry: float_gauge("carto_webhook_certificate_expiry_timestamp_seconds"),
    }
}

impl Metrics {
    /// The webhook answered.
    pub fn webhook(&self, kind: &'static str, outcome: WebhookOutcome, seconds: f64) {
        let requests = &self.webhook.requests;
        requests.with_label_values(&[kind, outcome.as_str()]).inc();
        self.webhook.seconds.observe(seconds);
    }

    /// Reviews of these kinds are served.
    pub(crate) fn webhook_serves(&self, kinds: impl IntoIterator<Item = &'static str>) {
        for kind in kinds {
            for outcome in WebhookOutcome::words() {
                self.webhook.requests.with_label_values(&[kind, outcome]);
            }
        }
    }

    /// The serving certificate was loaded and expires at this time (seconds since 1970).
    pub(crate) fn certificate_expiry(&self, seconds: i64) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "seconds since 1970 fit the 52 bits of a float for a long time"
        )]
        self.webhook.certificate_expiry.set(seconds as f64);
    }
}
