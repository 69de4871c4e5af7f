//! Flags of this controller, beside those of every process.

mod images;
mod presets;

use std::time::Duration;

use clap::Args;
use controller_kit::args::WebhookArgs;

pub use images::ImageArgs;
pub use presets::PresetArgs;

/// Flags of the conventions controller.
#[derive(Debug, Clone, Args)]
pub struct ConventionArgs {
    /// Admission of PodIntents and ClusterPodConventions.
    #[command(flatten)]
    pub webhook: WebhookArgs,

    /// MutatingWebhookConfiguration whose caBundle is kept up to date with --webhook-secret
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_MUTATING_WEBHOOK_CONFIGURATION",
        requires = "webhook_secret"
    )]
    pub mutating_webhook_configuration: Option<String>,

    /// About how often each PodIntent is decorated anew though nothing has changed, for tags that moved and webhooks that are
    /// other programs now; 0 = never
    #[arg(
        long,
        value_name = "SECONDS",
        env = "CARTO_RESYNC_SECONDS",
        default_value_t = 36_000
    )]
    pub resync_seconds: u64,

    /// How many PodIntents are woken in a second when a ClusterPodConvention changes; 0 = all at once
    #[arg(
        long,
        value_name = "COUNT",
        env = "CARTO_CONVENTION_ROLLOUT_PER_SECOND",
        default_value_t = 50
    )]
    pub convention_rollout_per_second: u32,

    /// What is sent to a webhook at most: bills of materials of images that do not fit are left
    /// out, and status says so
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_MAX_WEBHOOK_REQUEST",
        default_value_t = 64,
        value_parser = clap::value_parser!(u16).range(1..=1024)
    )]
    pub max_webhook_request: u16,

    /// What is read of the answer of a webhook; a longer one fails, and the condition says so
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_MAX_WEBHOOK_ANSWER",
        default_value_t = 8,
        value_parser = clap::value_parser!(u16).range(1..=64)
    )]
    pub max_webhook_answer: u16,

    /// What all answers that are being read may take together: a call waits until there is room for the longest answer
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_WEBHOOK_ANSWERS_MEMORY",
        default_value_t = 128
    )]
    pub webhook_answers_memory: u16,

    /// Give the images that the last convention added their digests, too, and those of templates that no convention matches
    #[arg(long, env = "CARTO_RESOLVE_IMAGES_AT_END")]
    pub resolve_images_at_end: bool,

    /// Keep numbers of PodIntents in the ConfigMap controller-manager-metrics-data of our own namespace, as the Go controller
    /// does
    #[arg(long, env = "CARTO_METRICS_CONFIGMAP")]
    pub metrics_configmap: bool,

    /// How images are read.
    #[command(flatten)]
    pub images: ImageArgs,

    /// How pods get their presets.
    #[command(flatten)]
    pub presets: PresetArgs,
}

impl ConventionArgs {
    /// How webhooks are called.
    pub(crate) fn client(&self, user_agent: &str) -> convention_client::Settings {
        convention_client::Settings {
            user_agent: user_agent.to_owned(),
            most_answer_bytes: usize::from(self.max_webhook_answer) << 20,
            proxies: convention_client::Proxies::of_the_environment(),
            ..convention_client::Settings::default()
        }
    }

    /// [`Self::resync_seconds`]; nothing for never.
    pub(crate) fn resync(&self) -> Option<Duration> {
        (self.resync_seconds > 0).then(|| Duration::from_secs(self.resync_seconds))
    }
}

#[cfg(test)]
mod tests;
