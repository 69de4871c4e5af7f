//! The command line of `carto migrate`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::{Output, parse_duration};

/// What to do about a migration.
#[derive(Debug, Clone, Subcommand)]
pub enum MigrateCommand {
    /// Say what a takeover would come to: what would run, change, be deleted or wait. Nothing is written; exit code 1 when something stands in the way
    #[command(
        after_help = "Examples:\n  carto migrate plan\n  carto migrate plan -o json\n\nRun it as an administrator. Templates for ytt are not rendered: they are programs, and none is run on your machine. Their steps are told as not judged."
    )]
    Plan(PlanArgs),
    /// Stop the Go controller, wait until its Pods are gone, remove its webhooks, and start carto
    #[command(
        after_help = "Example:\n  carto migrate apply --state migration.json\n\nIt can be interrupted and run again. Keep the file: the way back goes by it."
    )]
    Apply(ApplyArgs),
    /// Stop carto, put the webhooks of the Go controller back, and start it
    #[command(after_help = "Example:\n  carto migrate rollback --state migration.json")]
    Rollback(RollbackArgs),
}

/// Which controllers are meant.
#[derive(Debug, Clone, clap::Args)]
pub struct WhichArgs {
    /// Deployment of the Go controller [default: cartographer-controller, in whatever namespace]
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = parse_address)]
    pub old: Option<(String, String)>,
    /// Namespace of carto's controllers
    #[arg(long, value_name = "NAMESPACE", default_value = "carto-system")]
    pub ours: String,
}

/// What to plan for.
#[derive(Debug, Clone, clap::Args)]
pub struct PlanArgs {
    /// Which controllers are meant.
    #[command(flatten)]
    pub which: WhichArgs,
    /// Lines for people, or JSON for programs
    #[arg(long, short, value_enum, default_value_t = Output::Tree)]
    pub output: Output,
    /// How long to wait for each answer of the API server, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1m")]
    pub timeout: Duration,
}

/// How to go, either way.
#[derive(Debug, Clone, clap::Args)]
pub struct WayArgs {
    /// Which controllers are meant.
    #[command(flatten)]
    pub which: WhichArgs,
    /// File that tells what was changed; the way back goes by it
    #[arg(long, value_name = "FILE")]
    pub state: PathBuf,
    /// How long to wait for Pods, such as 90s or 5m, and, but for no more than a minute, for each answer of the API server
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "5m")]
    pub timeout: Duration,
}

/// How to take over.
#[derive(Debug, Clone, clap::Args)]
pub struct ApplyArgs {
    /// How to go.
    #[command(flatten)]
    pub way: WayArgs,
    /// Take over although the plan says that something would run, change, be deleted or wait
    #[arg(long)]
    pub accept_changes: bool,
    /// How many replicas each of carto's controllers gets [default: as many as it had, else as many as the chart has written down, else 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(i32).range(1..=100))]
    pub replicas: Option<i32>,
}

/// How to go back.
#[derive(Debug, Clone, clap::Args)]
pub struct RollbackArgs {
    /// How to go.
    #[command(flatten)]
    pub way: WayArgs,
}

/// `NAMESPACE/NAME`.
fn parse_address(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
            Ok((namespace.to_owned(), name.to_owned()))
        }
        _ => Err("write a Deployment as NAMESPACE/NAME".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_named_with_its_namespace() {
        let named = parse_address("system/controller");
        assert_eq!(named, Ok(("system".to_owned(), "controller".to_owned())));
        for wrong in ["", "controller", "/controller", "system/"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }
}
