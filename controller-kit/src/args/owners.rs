//! Flags of controllers that stamp objects for owners.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::{AccountArgs, LimitArgs, ShardArgs, WebhookArgs, parse_bool};
use crate::ytt::MemoryLimit;

/// Flags of a controller that stamps objects for owners.
#[derive(Debug, Clone, Args)]
pub struct OwnerArgs {
    /// Admission of blueprints and templates.
    #[command(flatten)]
    pub webhook: WebhookArgs,

    /// Serve the admission webhook and do nothing else: no object is watched or reconciled, no token asked for, no Lease held
    #[arg(long, env = "CARTO_ONLY_WEBHOOK", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true,
          value_name = "BOOL", value_parser = parse_bool, action = ArgAction::Set)]
    pub only_webhook: bool,

    /// Secret (in our own namespace) with the key under which status shows digests of secret values; made when it is empty
    /// or missing, as far as rights allow. Without one no such digest is shown
    #[arg(
        long,
        value_name = "NAME",
        env = "CARTO_STATUS_KEY_SECRET",
        default_value = "carto-status-key"
    )]
    pub status_key_secret: Option<String>,

    /// With which service accounts it works.
    #[command(flatten)]
    pub accounts: AccountArgs,

    /// What one owner may ask for.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// Which owners are taken.
    #[command(flatten)]
    pub shard: ShardArgs,

    /// The ytt binary that renders `spec.ytt` templates
    #[arg(long, value_name = "FILE", env = "CARTO_YTT", default_value = "ytt")]
    pub ytt: PathBuf,

    /// Memory that one ytt process may take; at least 128, 0 = no limit. Up to four run at a time: the container needs that and
    /// its own. On Linux only
    #[arg(
        long,
        value_name = "MIB",
        env = "CARTO_YTT_MEMORY_LIMIT",
        default_value = "512",
        value_parser = parse_memory_limit
    )]
    pub ytt_memory_limit: MemoryLimit,
}

fn parse_memory_limit(text: &str) -> Result<MemoryLimit, String> {
    let mebibytes: u64 = text
        .parse()
        .map_err(|_| format!("{text:?} is no whole number of MiB"))?;
    MemoryLimit::new(mebibytes).map_err(|error| error.to_string())
}
