//! Measures the controllers against the floor: the writes that nobody can avoid, sent by a client that does
//! nothing else, on the same API server in the same run.
//!
//! ```text
//!  phases/chains.rs    Workloads and Deliverables: cold, steady, single changes, a template edit, restart, deletion
//!  phases/runs.rs      Runnables: rounds of runs, single runs, and the rest likewise
//!  phases/intents.rs   PodIntents: calls of webhooks, images, and the rest likewise
//!  phases/presets.rs   pods: what their admission costs
//!  phases/attribution.rs  a chain that says when its outputs are good, against one that does not
//!  phases/fairness.rs  one Workload beside a crowd
//!    │  ├──► world.rs ──► control plane (test-support), watches (census.rs), downstream.rs
//!    │  ├──► controller.rs, the child process under test
//!    │  └──► floor.rs, the bare client
//!    └─────► report.rs, bars.rs, pairs.rs     text; tally.rs, cpu.rs, pace.rs, latency.rs: where figures come from
//!
//!  templates/          objects that are written (objects.rs), how a phase is told (report.rs), bars
//! ```
//!
//! What is measured and how to repeat it: docs/benchmarks.md.

mod api;
mod args;
mod bars;
mod census;
mod controller;
mod cpu;
mod downstream;
mod family;
mod floor;
mod images;
mod latency;
mod layout;
mod objects;
mod pace;
mod pairs;
mod phases;
mod report;
mod seen;
mod table;
mod tally;
mod templates;
mod webhook;
mod world;

use std::process::ExitCode;

use anyhow::{Context as _, ensure};
use clap::Parser as _;
use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::bars::{Bar, bars};
use crate::family::{DELIVERY, Family, Measured, SUPPLY_CHAIN};
use crate::phases::attribution::{self, Attribution};
use crate::phases::chains::{self, Run};
use crate::phases::fairness::{self, Fairness};
use crate::phases::intents::{self, Intents};
use crate::phases::presets::{self, Presets};
use crate::phases::runs::{self, Reruns};
use crate::report::say;

/// All that was measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Figures {
    /// By family and number of owners.
    runs: Vec<Run>,
    /// A chain that says when its outputs are good.
    attribution: Option<Attribution>,
    /// One owner beside many of others, by how many namespaces those live in.
    fairness: Vec<Fairness>,
    /// Runnables.
    reruns: Option<Reruns>,
    /// PodIntents.
    intents: Option<Intents>,
    /// Pods, and presets for them.
    presets: Option<Presets>,
    bars: Vec<Bar>,
}

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

async fn measure(args: &Args) -> anyhow::Result<Vec<Bar>> {
    let mut figures = Figures::default();
    for measured in controllers(args)? {
        match measured.0.kind {
            "Runnable" => figures.reruns = Some(runs::measure(args, &measured).await?),
            "PodIntent" => {
                figures.intents = Some(intents::measure(args, &measured).await?);
                figures.presets = presets::measure(args, &measured).await?;
            }
            _ => figures.measure_chains(args, &measured).await?,
        }
        figures.write(args)?;
    }
    let mut bars = figures.bars;
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
    let with_binary = |family| Ok((family, controller::binary(args, family)?));
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

impl Figures {
    /// All figures are written after each number of owners: what comes later may be interrupted.
    async fn measure_chains(&mut self, args: &Args, measured: &Measured) -> anyhow::Result<()> {
        for count in counts(args, measured.0) {
            self.runs
                .push(chains::measure(args, measured, count).await?);
            self.write(args)?;
        }
        if measured.0.is(&SUPPLY_CHAIN) && !args.fairness_only {
            self.attribution = attribution::measure(args, measured).await?;
            self.write(args)?;
        }
        if measured.0.is(&SUPPLY_CHAIN) && args.crowd > 0 {
            for &namespaces in &args.crowd_namespaces {
                let fairness = fairness::measure(args, measured, namespaces).await?;
                self.fairness.push(fairness);
                self.write(args)?;
            }
        }
        Ok(())
    }

    /// With the bars for what there is so far.
    fn write(&mut self, args: &Args) -> anyhow::Result<()> {
        self.bars = bars(self)?;
        let Some(file) = &args.json else {
            return Ok(());
        };
        // Sorted by name.
        let text = serde_json::to_vec_pretty(&serde_json::to_value(&self)?)?;
        std::fs::write(file, text).with_context(|| file.display().to_string())
    }
}
