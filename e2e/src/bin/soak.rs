//! Installs the charts on a node and lets commits arrive for a long time: `make soak ARGS="--minutes 60"`. Needs root.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use e2e::PathStack;
use e2e::soak::Soak;
use serde_json::{Value, json};

/// Commits arrive for an hour, one a second. Fails when one is lost, an error is logged or memory grows.
#[derive(Debug, Parser)]
struct Args {
    /// How long commits arrive.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// How much of that does not count for memory.
    #[arg(long, default_value_t = 10)]
    warm_up_minutes: u64,
    /// Workloads, each with a repository of its own.
    #[arg(long, default_value_t = 50)]
    owners: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut out = std::io::stdout();
    let (stack, _release, _registry) = PathStack::start_installed(values(), |part| {
        // A report is for people who may have gone.
        let _ = writeln!(std::io::stdout(), "starting {part}");
    })
    .await?;
    let minutes = |number: u64| Duration::from_secs(60 * number);
    let soak = Soak {
        length: minutes(args.minutes),
        warm_up: minutes(args.warm_up_minutes),
        owners: args.owners,
    };
    let report = soak.run(&stack).await?;
    writeln!(
        out,
        "{} commits in {} min, {} lost, {} errors logged, {} restarts, {} tokens issued, {} refused",
        report.commits,
        args.minutes,
        report.lost.len(),
        report.errors.len(),
        report.restarts,
        report.tokens_issued,
        report.tokens_refused
    )?;
    for (pod, slope) in &report.memory {
        writeln!(
            out,
            "{pod}: {:.1} MiB, {:+.2} ± {:.2} MiB/h ({} samples)",
            slope.mean,
            slope.per_hour,
            2.0 * slope.deviation,
            slope.samples
        )?;
    }
    report.judge().context("the soak failed")
}

/// As installed, with tokens of the Pods as short as the API server allows: they end and are renewed meanwhile.
fn values() -> Value {
    let short = json!({"tokenExpirationSeconds": 600});
    json!({
        "supplychain-controller": short,
        "delivery-controller": short,
        "runnable-controller": short,
        "conventions-controller": short,
    })
}
