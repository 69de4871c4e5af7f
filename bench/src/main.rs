//! Measures the controllers against the floor: the writes that nobody can avoid, sent by a client that does
//! nothing else, on the same API server in the same run.
//!
//! ```text
//!  run.rs ──► world.rs ──► control plane (test-support), watches (observe.rs ─► census.rs), downstream.rs
//!    │  ├───► floor.rs     the bare client
//!    │  └───► phases/      cold, steady, change, restart, end ──► controller.rs, the child process under test
//!    │        phases/fairness.rs, on a control plane of its own
//!    │        reruns.rs ─► reruns/: Runnables, beside the same bare client, steady and restart
//!    └──────► report.rs, bars.rs, pairs.rs     text; tally.rs, proc_stat.rs, pace.rs: where figures come from
//! ```
//!
//! What is measured and how to repeat it: docs/benchmarks.md.

mod api;
mod args;
mod bars;
mod census;
mod controller;
mod downstream;
mod family;
mod figures;
mod floor;
mod latency;
mod layout;
mod objects;
mod observe;
mod pace;
mod pairs;
mod phases;
mod proc_stat;
mod report;
mod reruns;
mod run;
mod seen;
mod table;
mod tally;
mod workers;
mod world;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use serde_json::json;

use crate::args::Args;
use crate::bars::Bar;
use crate::family::{DELIVERY, Family, RUNNABLE, SUPPLY_CHAIN};
use crate::figures::Figures;
use crate::run::say;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let bars = measure(&args).await?;
    let missed = bars.iter().filter(|bar| !bar.is_cleared()).count();
    Ok(if missed > 0 && !args.lenient {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A family and its controller.
type Measured = (&'static Family, PathBuf);

async fn measure(args: &Args) -> anyhow::Result<Vec<Bar>> {
    let mut figures = Figures::default();
    for (family, binary) in controllers(args)? {
        if family.is(&RUNNABLE) {
            figures.reruns = Some(reruns::measure(args, &binary).await?);
            write(args, &figures)?;
            continue;
        }
        for count in counts(args, family) {
            let run = run::run(args, family, count, &binary).await?;
            figures.runs.push(run);
            // Written after each run: a later one may be interrupted.
            write(args, &figures)?;
        }
        if family.is(&SUPPLY_CHAIN) && args.crowd > 0 {
            for &namespaces in &args.crowd_namespaces {
                let fairness = phases::fairness::measure(args, &binary, namespaces).await?;
                say(&format!("fairness       {}", report::fairness(&fairness)));
                figures.fairness.push(fairness);
                write(args, &figures)?;
            }
        }
    }
    let mut bars = figures.bars();
    bars.retain(|bar| bar.is_count || !args.counts_only);
    ensure!(!bars.is_empty(), "nothing was measured that has a bar");
    say(&format!("\n{}", bars::render(&bars)));
    Ok(bars)
}

/// What is measured, each with its binary: all are built before the first is started.
fn controllers(args: &Args) -> anyhow::Result<Vec<Measured>> {
    let mut families = args.families.clone();
    if args.fairness_only {
        families = vec![&SUPPLY_CHAIN];
    }
    ensure!(
        args.controller.is_none() || families.len() == 1,
        "--controller is one binary: name its --family"
    );
    let with_binary = |family: &'static Family| Ok((family, controller::binary(args, family)?));
    families.into_iter().map(with_binary).collect()
}

/// Numbers of owners, the smallest first.
fn counts(args: &Args, family: &Family) -> Vec<usize> {
    let mut counts = match family {
        _ if args.fairness_only => Vec::new(),
        family if family.is(&DELIVERY) => args.deliverables.clone(),
        _ => args.owners.clone(),
    };
    counts.sort_unstable();
    counts
}

fn write(args: &Args, figures: &Figures) -> anyhow::Result<()> {
    let Some(file) = &args.json else {
        return Ok(());
    };
    let Figures {
        runs,
        fairness,
        reruns,
    } = figures;
    let text =
        json!({"runs": runs, "fairness": fairness, "reruns": reruns, "bars": figures.bars()});
    std::fs::write(file, serde_json::to_vec_pretty(&text)?)
        .with_context(|| file.display().to_string())
}
