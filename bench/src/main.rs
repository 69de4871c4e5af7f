//! Measures the supply-chain controller against the floor: the writes that nobody can avoid, sent by a client that does
//! nothing else, on the same API server in the same run.
//!
//! ```text
//!  run.rs ──► world.rs ──► control plane (test-support), watches (observe.rs ─► census.rs), downstream.rs
//!    │  ├───► floor.rs     the bare client
//!    │  └───► phases/      cold, steady, change, restart, end ──► controller.rs, the child process under test
//!    │        phases/fairness.rs, on a control plane of its own
//!    └──────► report.rs, bars.rs     text; audit.rs ─► tally.rs, proc_stat.rs, exposition.rs: where figures come from
//! ```
//!
//! What is measured and how to repeat it: docs/benchmarks.md.

mod api;
mod args;
mod audit;
mod bars;
mod census;
mod controller;
mod downstream;
mod exposition;
mod figures;
mod floor;
mod latency;
mod layout;
mod objects;
mod observe;
mod phases;
mod proc_stat;
mod report;
mod run;
mod seen;
mod table;
mod tally;
mod workers;
mod world;

use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser as _;
use serde_json::json;

use crate::args::Args;
use crate::bars::Bar;
use crate::figures::Figures;
use crate::run::say;

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let bars = measure(&args).await?;
    let missed = bars.iter().filter(|bar| !bar.is_cleared()).count();
    Ok(if args.strict && missed > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

async fn measure(args: &Args) -> anyhow::Result<Vec<Bar>> {
    let binary = if args.floor_only {
        None
    } else {
        Some(controller::binary(args)?)
    };
    let mut owners = args.owners.clone();
    owners.sort_unstable();
    if args.fairness_only {
        owners.clear();
    }
    let mut figures = Figures::default();
    for count in owners {
        let run = run::run(args, count, binary.as_deref()).await?;
        figures.runs.push(run);
        // Written after each run: the longest one, which comes last, may be interrupted.
        write(args, &figures)?;
    }
    if let Some(binary) = binary.filter(|_| args.crowd > 0) {
        let fairness = phases::fairness::measure(args, &binary).await?;
        say(&format!("fairness       {}", report::fairness(&fairness)));
        figures.fairness = Some(fairness);
        write(args, &figures)?;
    }
    let bars = figures.bars();
    if !bars.is_empty() {
        say(&format!("\n{}", bars::render(&bars)));
    }
    Ok(bars)
}

fn write(args: &Args, figures: &Figures) -> anyhow::Result<()> {
    let Some(file) = &args.json else {
        return Ok(());
    };
    let Figures { runs, fairness } = figures;
    let text = json!({"runs": runs, "fairness": fairness, "bars": figures.bars()});
    std::fs::write(file, serde_json::to_vec_pretty(&text)?)
        .with_context(|| file.display().to_string())
}
