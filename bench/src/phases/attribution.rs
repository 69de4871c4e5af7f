//! A chain whose templates say when their outputs are good, and let updates wait, against the same chain of the same controller
//! without any of it: what does it cost to know what made what?

use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::cpu::CpuSeconds;
use crate::family::Measured;
use crate::floor::By;
use crate::layout::{FLOOR, Key, owners};
use crate::objects::{Chain, WITH_RULES, WITHOUT_RULES, all_owners_of};
use crate::phases::Stage;
use crate::phases::blocks::{Blocks, block_size};
use crate::phases::cold::write;
use crate::phases::steady::{self, Restart, Steady};
use crate::report::{report, say};
use crate::tally::Requests;

/// What was measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Attribution {
    /// Number of owners.
    pub(crate) owners: usize,
    /// Steps of the chain.
    pub(crate) steps: u8,
    /// Owners of the chain with rules. Their floor is the same number of owners of the chain without.
    pub(crate) cold: Blocks,
    /// Those.
    pub(crate) without: Blocks,
    /// Reconciles that change nothing, with rules.
    pub(crate) steady: Steady,
    /// Killed and started again, with rules.
    pub(crate) restart: Restart,
}

/// Measures it on a control plane of its own; nothing if no owners are asked for.
pub(crate) async fn measure(
    args: &Args,
    measured: &Measured,
) -> anyhow::Result<Option<Attribution>> {
    let (count, steps) = (args.attributed, args.steps);
    if count == 0 {
        return Ok(None);
    }
    say(&format!(
        "\nN = {count} Workloads × {steps} steps with rules"
    ));
    let world = ("attribution".to_owned(), count, block_size(count));
    let measured = Stage::within(args, measured, world, write(By::Apply), phases);
    measured.await.map(Some)
}

/// One after the other, as they stand here.
async fn phases(stage: &mut Stage<'_>) -> anyhow::Result<Attribution> {
    for chain in [WITH_RULES, WITHOUT_RULES] {
        stage.world.write_blueprint(chain).await?;
        stage.world.blueprint_ready(chain).await;
    }
    stage.world.requests_until_rest(Requests::all).await?;
    let (cold, without) = cold(stage).await?;
    let mut attribution = Attribution {
        owners: stage.count,
        steps: stage.world.args.steps,
        cold,
        without,
        ..Attribution::default()
    };
    report("attribution", &attribution)?;
    attribution.steady = steady::measure(stage).await?;
    attribution.restart = steady::restart(stage).await?;
    Ok(attribution)
}

/// Makes both kinds of owners in turn. Before a block the owners of the last one of its kind go: what follows a removal must
/// not fall to one kind only.
async fn cold(stage: &mut Stage<'_>) -> anyhow::Result<(Blocks, Blocks)> {
    let mut without = Blocks::default();
    let floor = async |stage: &mut Stage<'_>, count: usize, _: &mut CpuSeconds| {
        let owners = owners(FLOOR, count);
        stage.world.remove(&owners).await?;
        let seconds = block(stage, &owners, WITHOUT_RULES, &mut without).await?;
        without.owners += count;
        Ok(seconds)
    };
    let controller = async |stage: &mut Stage<'_>, owners: &[Key], blocks: &mut Blocks| {
        let seconds = block(stage, owners, WITH_RULES, blocks).await?;
        Ok((seconds, String::new()))
    };
    let cold = Blocks::measure(stage, floor, controller).await?;
    let block = block_size(stage.count);
    stage.world.remove(&owners(FLOOR, block)).await?;
    Ok((cold, without))
}

/// Seconds of a block.
async fn block(
    stage: &mut Stage<'_>,
    owners: &[Key],
    chain: Chain,
    blocks: &mut Blocks,
) -> anyhow::Result<f64> {
    let written = all_owners_of(chain, stage.world.family, owners);
    let done = blocks.work(stage, owners, Requests::all, written).await?;
    Ok(done.taken.as_secs_f64())
}
