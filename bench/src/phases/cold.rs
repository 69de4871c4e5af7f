//! Cold: owners are created at once; how long until all are Ready, and at what cost?
//!
//! They come in blocks, each between two blocks of the bare client, because the machine's pace changes within a minute.

use std::collections::HashSet;
use std::time::Instant;

use serde::Serialize;
use test_support::Usage;

use crate::cpu::{CpuSeconds, add, spent};
use crate::floor::{By, write_chains};
use crate::layout::{FLOOR, Key, OWNERS_PER_ACCOUNT};
use crate::objects::FIRST_REVISION;
use crate::pairs::{MOST, Pair, are_enough};
use crate::phases::Stage;
use crate::report::tell;
use crate::tally::{Agent, ByAgent, Requests, Tally};

/// Owners of a block, and into how many blocks all are divided at the most.
const BLOCK: usize = 100;
const MOST_BLOCKS: usize = 5;

/// The cold phase.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cold {
    /// Owners of all blocks; one that was made twice counts twice.
    pub(crate) owners: usize,
    /// Seconds of each block, from the first create to the last Ready, between two of the bare client.
    pub(crate) pairs: Vec<Pair>,
    /// The same for a bare client that creates in place of applying.
    pub(crate) created: Vec<Pair>,
    /// Owners reconciled, by the controller's own count.
    pub(crate) reconciles: u64,
    /// Requests of the controller for all blocks, until its events had ended.
    pub(crate) requests: Requests,
    /// How long after the last Ready of a block its events went on, at the most, in seconds.
    pub(crate) events_seconds: f64,
    /// Requests of everybody meanwhile.
    pub(crate) by_agent: ByAgent,
    /// CPU seconds by process, from the first create to the last Ready of each block.
    pub(crate) cpu_seconds: CpuSeconds,
    /// Those of the bare client's blocks.
    pub(crate) floor_cpu_seconds: CpuSeconds,
    /// The machine's pace meanwhile, in milliseconds.
    pub(crate) pace_ms: f64,
    /// What the controller used since it started, at rest.
    pub(crate) usage: Usage,
}

impl Cold {
    /// Of all blocks.
    pub(crate) fn seconds(&self) -> f64 {
        self.pairs.iter().map(|pair| pair.controller).sum()
    }

    fn of(blocks: &[Block], usage: Usage) -> Self {
        let (mut cold, mut sent, mut paced) = (Self::default(), Tally::default(), 0.0);
        for block in blocks {
            cold.owners += block.owners;
            cold.pairs.push(block.pair());
            cold.created.push(Pair {
                floor: [block.posted; 2],
                controller: block.seconds,
            });
            cold.reconciles += block.reconciles;
            cold.events_seconds = cold.events_seconds.max(block.events_seconds);
            add(&mut cold.cpu_seconds, &block.cpu_seconds);
            sent.merge(block.sent.clone());
            paced += block.pace_ms * block.seconds;
        }
        cold.requests = sent.of(Agent::Controller);
        cold.by_agent = sent.by_agent();
        cold.pace_ms = paced / cold.seconds();
        cold.usage = usage;
        cold
    }
}

/// What one block of the controller took, and those of the bare client beside it.
#[derive(Default)]
struct Block {
    owners: usize,
    seconds: f64,
    /// By apply, right before and right after.
    floor: [f64; 2],
    /// By create, right before.
    posted: f64,
    reconciles: u64,
    sent: Tally,
    events_seconds: f64,
    cpu_seconds: CpuSeconds,
    pace_ms: f64,
}

impl Block {
    fn pair(&self) -> Pair {
        Pair {
            floor: self.floor,
            controller: self.seconds,
        }
    }
}

/// Measures it, and leaves the objects of the bare client's last block there.
pub(crate) async fn measure(stage: &mut Stage<'_>) -> anyhow::Result<Cold> {
    stage.world.blueprint_ready().await;
    let owners = stage.owners();
    let size = block_size(owners.len());
    stage.world.requests_until_events_end().await?;
    let chunks: Vec<&[Key]> = owners.chunks(size).collect();
    let mut blocks: Vec<Block> = Vec::new();
    let mut floor_cpu_seconds = CpuSeconds::new();
    let mut before = bare(stage, size, By::Apply, &mut CpuSeconds::new()).await?;
    for (turn, owners) in chunks.iter().cycle().enumerate() {
        if turn >= chunks.len() {
            let pairs: Vec<Pair> = blocks.iter().map(Block::pair).collect();
            if are_enough(&stage.world.args, &pairs, MOST) {
                break;
            }
            stage.world.remove(owners).await?;
        }
        // The last block may be a smaller one. Its CPU time is not counted twice.
        if owners.len() < size {
            before = bare(stage, owners.len(), By::Apply, &mut CpuSeconds::new()).await?;
        }
        let posted = bare(stage, owners.len(), By::Create, &mut CpuSeconds::new()).await?;
        let mut block = by_controller(stage, owners).await?;
        let after = bare(stage, owners.len(), By::Apply, &mut floor_cpu_seconds).await?;
        block.floor = [before, after];
        block.posted = posted;
        tell(
            "block",
            &format!(
                "{:.2} s between floors of {before:.2} and {after:.2} s, {posted:.2} s by POST; pace {:.2} ms",
                block.seconds, block.pace_ms
            ),
        );
        blocks.push(block);
        before = if owners.len() < size {
            bare(stage, size, By::Apply, &mut CpuSeconds::new()).await?
        } else {
            after
        };
    }
    let usage = stage.controller.process.usage()?;
    Ok(Cold {
        floor_cpu_seconds,
        ..Cold::of(&blocks, usage)
    })
}

/// As many owners in each, if there are enough, in namespaces that no two share.
pub(crate) fn block_size(owners: usize) -> usize {
    let blocks = (owners / BLOCK).clamp(1, MOST_BLOCKS);
    owners.div_ceil(blocks).next_multiple_of(OWNERS_PER_ACCOUNT)
}

/// Seconds of a block of the bare client, in place of the one before; `used` gets its CPU time.
async fn bare(
    stage: &mut Stage<'_>,
    owners: usize,
    by: By,
    used: &mut CpuSeconds,
) -> anyhow::Result<f64> {
    let world = &mut *stage.world;
    world.clear(FLOOR, block_size(stage.count)).await?;
    world.let_control_plane_rest().await?;
    let before = world.cpu_seconds(None)?;
    let taken = write_chains(world, owners, stage.concurrency, by).await?;
    add(used, &spent(&before, world.cpu_seconds(None)?));
    Ok(taken.as_secs_f64())
}

async fn by_controller(stage: &mut Stage<'_>, owners: &[Key]) -> anyhow::Result<Block> {
    let world = &mut *stage.world;
    world.let_control_plane_rest().await?;
    world.forget_requests()?;
    let pid = Some(stage.controller.process.pid());
    let reconciled = stage.controller.reconciles().await?;
    let (before, pace) = (world.cpu_seconds(pid)?, world.pace.read());
    let start = Instant::now();
    let created = world.create_owners(stage.concurrency, owners.to_vec(), FIRST_REVISION);
    created.await?;
    let wanted: HashSet<Key> = owners.iter().cloned().collect();
    let ready = world
        .owners
        .reach("all owners are Ready", owners.len(), move |key, owner| {
            wanted.contains(key) && owner.is_ready()
        });
    ready.await?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = spent(&before, world.cpu_seconds(pid)?);
    let pace_ms = world.pace.since(pace);
    let sent = world.requests_until_events_end().await?;
    Ok(Block {
        owners: owners.len(),
        seconds,
        reconciles: stage.controller.reconciles().await? - reconciled,
        sent,
        events_seconds: start.elapsed().as_secs_f64() - seconds,
        cpu_seconds,
        pace_ms,
        ..Block::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{TEAM, owners};

    #[test]
    fn blocks_share_no_namespace() {
        for (count, sizes) in [
            (30, vec![30]),
            (300, vec![100; 3]),
            (1000, vec![200; 5]),
            (450, vec![120, 120, 120, 90]),
        ] {
            let owners = owners(TEAM, count);
            let blocks: Vec<_> = owners.chunks(block_size(count)).collect();
            let lengths: Vec<usize> = blocks.iter().map(|block| block.len()).collect();
            assert_eq!(lengths, sizes);
            let mut ends = blocks.windows(2);
            assert!(ends.all(|two| two[0].last().unwrap().namespace != two[1][0].namespace));
        }
    }
}
