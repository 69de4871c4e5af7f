//! How admission webhooks are served.

use std::path::PathBuf;

use clap::Args;

use super::path_or_nothing;

/// How admission webhooks are served.
#[derive(Debug, Clone, Args)]
pub struct WebhookArgs {
    /// TCP port of the admission webhook
    #[arg(long, value_name = "PORT", env = "CARTO_PORT", default_value_t = 9443)]
    pub port: u16,

    /// Directory with tls.crt and tls.key for the webhook, read again when they change; without it and without --webhook-secret
    /// there is no webhook
    #[arg(
        long,
        value_name = "DIRECTORY",
        env = "CARTO_CERT_DIR",
        value_parser = path_or_nothing(),
        conflicts_with = "webhook_secret"
    )]
    pub cert_dir: Option<PathBuf>,

    /// Secret (in our own namespace) in which the webhook keeps a certificate of its own making, renewed before it expires
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_WEBHOOK_SECRET",
        requires = "webhook_service"
    )]
    pub webhook_secret: Option<String>,

    /// Service (in our own namespace) through which the API server reaches the webhook
    #[arg(long, value_name = "NAME", env = "CARTO_WEBHOOK_SERVICE")]
    pub webhook_service: Option<String>,

    /// ValidatingWebhookConfiguration whose caBundle is kept up to date with --webhook-secret
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_WEBHOOK_CONFIGURATION",
        requires = "webhook_secret"
    )]
    pub webhook_configuration: Option<String>,
}

impl WebhookArgs {
    /// Whether a webhook is served, which takes a certificate.
    pub(crate) fn is_served(&self) -> bool {
        self.cert_dir.is_some() || self.webhook_secret.is_some()
    }
}
