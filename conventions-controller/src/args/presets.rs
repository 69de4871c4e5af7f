//! Flags about pod presets.

use clap::Args;

/// How pods get their presets.
#[derive(Debug, Clone, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag that is given or not"
)]
pub struct PresetArgs {
    /// Give pods their presets when they are created; needs what deploy/conventions/pod-presets.yaml installs
    #[arg(long, env = "CARTO_POD_PRESETS")]
    pub pod_presets: bool,

    /// MutatingWebhookConfiguration and ValidatingWebhookConfiguration for presets, both of this name, whose caBundle is kept up
    /// to date with --webhook-secret
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_PRESET_WEBHOOK_CONFIGURATION",
        requires_all = ["pod_presets", "webhook_secret"]
    )]
    pub preset_webhook_configuration: Option<String>,

    /// Give containers that are added to running pods (kubectl debug) what presets say that name containers of type Ephemeral
    #[arg(long, env = "CARTO_PRESET_EPHEMERAL_CONTAINERS")]
    pub preset_ephemeral_containers: bool,

    /// Let the spec of a preset be changed; without this the webhook of presets refuses it
    #[arg(long, env = "CARTO_MUTABLE_PRESETS")]
    pub mutable_presets: bool,

    /// Say in the status of a preset which running pods carry an older version of it; needs the right to watch pods, and some
    /// 300 bytes for each pod in the replica that leads
    #[arg(long, env = "CARTO_REPORT_STALE_PODS")]
    pub report_stale_pods: bool,

    /// Restart Deployments, StatefulSets and DaemonSets with annotation settings.carto.run/restart-on-preset-change: "true" whose
    /// pods carry older versions of presets, so many of them in a minute at the most; needs what deploy/conventions/restart.yaml
    /// installs
    #[arg(
        long,
        value_name = "PER_MINUTE",
        env = "CARTO_RESTART_STALE_OWNERS",
        value_parser = clap::value_parser!(u32).range(1..=600),
        requires = "report_stale_pods"
    )]
    pub restart_stale_owners: Option<u32>,
}
