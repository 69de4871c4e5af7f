//! Workloads and Deliverables: all that is measured for one number of them, on one control plane.

use serde::Serialize;

use crate::args::Args;
use crate::family::Measured;
use crate::floor::{By, best_concurrency, write_chains};
use crate::layout::{FLOOR, TEAM, namespaces_of};
use crate::phases::Stage;
use crate::phases::change::{self, SourceChange, TemplateEdit};
use crate::phases::cold::{self, Cold, block_size};
use crate::phases::steady::{self, Deletion, Restart, Steady};
use crate::report::{self, say, tell};
use crate::world::World;

/// Everything measured for one family and number of owners.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Run {
    /// Kind of the owners.
    pub(crate) kind: &'static str,
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
    pub(crate) template_edit: TemplateEdit,
    /// Killed and started again.
    pub(crate) restart: Restart,
    /// All owners deleted.
    pub(crate) deletion: Deletion,
}

/// Measures everything for one number of owners.
pub(crate) async fn measure(args: &Args, measured: &Measured, count: usize) -> anyhow::Result<Run> {
    let (kind, steps) = (measured.0.kind, args.steps);
    say(&format!("\nN = {count} {kind}s × {steps} steps"));
    let name = format!("{}-{count}", measured.0.name);
    World::within(args, measured, name, async |world| {
        world
            .furnish(FLOOR, namespaces_of(block_size(count)))
            .await?;
        let now = &*world;
        let concurrency = best_concurrency(now, count, async |owners, in_flight| {
            write_chains(now, owners, in_flight, By::Apply).await
        });
        let concurrency = concurrency.await?;
        world.furnish(TEAM, namespaces_of(count)).await?;
        Stage::with_controller(world, count, concurrency, async |stage| phases(stage).await).await
    })
    .await
}

async fn phases(stage: &mut Stage<'_>) -> anyhow::Result<Run> {
    let mut run = Run {
        kind: stage.world.family.kind,
        owners: stage.count,
        steps: stage.world.args.steps,
        concurrency: stage.concurrency,
        ..Run::default()
    };
    run.cold = cold::measure(stage).await?;
    tell("cold", &report::cold(&run.cold));
    run.steady = steady::measure(stage).await?;
    tell("steady", &report::steady(&run.steady));
    run.source_change = change::sources(stage).await?;
    tell("source change", &report::source_change(&run.source_change));
    run.template_edit = change::template(stage).await?;
    tell("template edit", &report::template_edit(&run.template_edit));
    run.restart = steady::restart(stage).await?;
    tell("restart", &report::restart(&run.restart));
    run.deletion = steady::deletion(stage).await?;
    tell("deletion", &report::deletion(&run.deletion));
    Ok(run)
}
