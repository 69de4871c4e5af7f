//! Workloads and Deliverables: all that is measured for one number of them, on one control plane.

use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::family::Measured;
use crate::floor::By;
use crate::phases::blocks::block_size;
use crate::phases::change::{self, SourceChange};
use crate::phases::cold::{self, Cold, write};
use crate::phases::steady::{self, Restart, Steady};
use crate::phases::{Phase, Stage};
use crate::report::say;

/// Everything measured for one family and number of owners.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Run {
    /// Kind of the owners.
    pub(crate) kind: String,
    /// Number of owners.
    pub(crate) owners: usize,
    /// Steps of the chain.
    pub(crate) steps: u8,
    /// Requests in flight of the bare client, and of the bench as a user.
    pub(crate) concurrency: usize,
    /// Owners created at once.
    pub(crate) cold: Cold,
    /// Reconciles that change nothing.
    pub(crate) steady: Steady,
    /// Single source changes.
    pub(crate) source_change: SourceChange,
    /// A template edit.
    pub(crate) template_edit: Phase,
    /// Killed and started again.
    pub(crate) restart: Restart,
    /// All owners deleted.
    pub(crate) deletion: Phase,
}

/// Measures everything for one number of owners.
pub(crate) async fn measure(args: &Args, measured: &Measured, count: usize) -> anyhow::Result<Run> {
    let (kind, steps) = (measured.0.kind, args.steps);
    say(&format!("\nN = {count} {kind}s × {steps} steps"));
    let name = format!("{}-{count}", measured.0.name);
    let world = (name, count, block_size(count));
    Stage::within(args, measured, world, write(By::Apply), phases).await
}

/// One after the other, as they stand here.
async fn phases(stage: &mut Stage<'_>) -> anyhow::Result<Run> {
    Ok(Run {
        kind: stage.world.family.kind.to_owned(),
        owners: stage.count,
        steps: stage.world.args.steps,
        concurrency: stage.concurrency,
        cold: cold::measure(stage).await?,
        steady: steady::measure(stage).await?,
        source_change: change::sources(stage).await?,
        template_edit: change::template(stage).await?,
        restart: steady::restart(stage).await?,
        deletion: steady::deletion(stage).await?,
    })
}
