//! A chain whose templates say when their outputs are good, and let updates wait, against the same chain of the same controller
//! without any of it: what does it cost to know what made what?

use anyhow::Context as _;
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
    let world = ("attribution".to_owned(), count, without_rules(count).len());
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

/// The owners without rules: as many blocks as of those with rules. So as many accounts need a token, and owners of one kind
/// are removed and made again no sooner than those of the other.
fn without_rules(count: usize) -> Vec<Key> {
    let block = block_size(count);
    owners(FLOOR, count.div_ceil(block) * block)
}

/// Makes both kinds of owners in turn. Once all blocks of a kind were made, those of the first go, and are made again.
async fn cold(stage: &mut Stage<'_>) -> anyhow::Result<(Blocks, Blocks)> {
    let mut without = Blocks::default();
    let all = without_rules(stage.count);
    let mut turns = all.chunks(block_size(stage.count)).cycle().enumerate();
    let floor = async |stage: &mut Stage<'_>, count: usize, _: &mut CpuSeconds| {
        let (turn, owners) = turns.next().context("there is no owner")?;
        if turn * owners.len() >= all.len() {
            stage.world.remove(owners).await?;
        }
        let owners = &owners[..count];
        let seconds = block(stage, owners, WITHOUT_RULES, &mut without).await?;
        without.owners += count;
        Ok(seconds)
    };
    let controller = async |stage: &mut Stage<'_>, owners: &[Key], blocks: &mut Blocks| {
        let seconds = block(stage, owners, WITH_RULES, blocks).await?;
        Ok((seconds, String::new()))
    };
    let cold = Blocks::measure(stage, floor, controller).await?;
    stage.world.remove(&all).await?;
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
