//! Owners that are created in blocks, each between two blocks of what they are held against, the bare client for most, because
//! the machine's pace changes within a minute.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cpu::CpuSeconds;
use crate::layout::{FLOOR, Key, OWNERS_PER_ACCOUNT};
use crate::pairs::{MOST, Pair, are_enough};
use crate::phases::{Stage, Work};
use crate::report::tell;
use crate::seen::Seen;
use crate::tally::Requests;
use crate::world::World;

/// Owners of a block, and into how many blocks all are divided at the most.
const BLOCK: usize = 100;
const MOST_BLOCKS: usize = 5;

/// What all blocks came to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Blocks {
    /// Owners of all blocks; one that was made twice counts twice.
    pub(crate) owners: usize,
    /// Seconds of each block, from the first create to the last Ready, between two of the floor.
    pub(crate) pairs: Vec<Pair>,
    /// For all blocks.
    #[serde(flatten)]
    pub(crate) work: Work,
    /// CPU seconds by process, from the first create to the last Ready of each block.
    pub(crate) cpu_seconds: CpuSeconds,
    /// Those of the blocks of the floor.
    pub(crate) floor_cpu_seconds: CpuSeconds,
}

/// When the controller was done with a block.
pub(crate) struct Done {
    pub(crate) taken: Duration,
    /// The moment in which the last owner was Ready.
    pub(crate) ready: Instant,
    /// The machine's pace meanwhile, in milliseconds.
    pub(crate) pace_ms: f64,
}

impl Blocks {
    /// Measures one after the other until their ratio is known well enough. `floor` does as many owners of what the blocks are
    /// held against, and returns its seconds: [`bare`] for the bare client, whose last block stays there. `controller` has the
    /// controller do a block: it calls [`Blocks::work`], and returns its seconds and what else is to be told of it.
    pub(crate) async fn measure(
        stage: &mut Stage<'_>,
        mut floor: impl AsyncFnMut(&mut Stage<'_>, usize, &mut CpuSeconds) -> anyhow::Result<f64>,
        mut controller: impl AsyncFnMut(
            &mut Stage<'_>,
            &[Key],
            &mut Self,
        ) -> anyhow::Result<(f64, String)>,
    ) -> anyhow::Result<Self> {
        let mut blocks = Self::default();
        let owners = stage.owners();
        let chunks: Vec<&[Key]> = owners.chunks(block_size(owners.len())).collect();
        let mut last = None;
        for (turn, owners) in chunks.iter().cycle().enumerate() {
            if turn >= chunks.len() {
                if are_enough(&stage.world.args, &blocks.pairs, MOST) {
                    break;
                }
                stage.world.remove(owners).await?;
            }
            let count = owners.len();
            let before = match last {
                Some((of, seconds)) if of == count => seconds,
                // The first; or the last one is smaller. Its CPU time is not counted twice.
                _ => floor(stage, count, &mut CpuSeconds::new()).await?,
            };
            let (seconds, more) = controller(stage, owners, &mut blocks).await?;
            let after = floor(stage, count, &mut blocks.floor_cpu_seconds).await?;
            let floors = format!("between floors of {before:.2} and {after:.2} s");
            tell("block", &format!("{seconds:.2} s {floors}{more}"));
            blocks.owners += count;
            blocks.pairs.push(Pair {
                floor: [before, after],
                controller: seconds,
            });
            last = Some((count, after));
        }
        Ok(blocks)
    }

    /// Has the controller do a block of these owners, which are made as they are `written`.
    pub(crate) async fn work(
        &mut self,
        stage: &mut Stage<'_>,
        owners: &[Key],
        counted: fn(&Requests) -> u64,
        written: impl Iterator<Item = (Key, anyhow::Result<Value>)>,
    ) -> anyhow::Result<Done> {
        let wanted: HashSet<Key> = owners.iter().cloned().collect();
        let is_ready = move |key: &Key, owner: &Seen| wanted.contains(key) && owner.is_ready();
        let task = async |stage: &Stage<'_>| {
            let world = &*stage.world;
            let (start, pace) = (Instant::now(), world.pace.read());
            world.create_owners(stage.concurrency, written).await?;
            let what = "all owners are Ready";
            world.owners.reach(what, owners.len(), is_ready).await?;
            Ok(Done {
                taken: start.elapsed(),
                ready: Instant::now(),
                pace_ms: world.pace.since(pace),
            })
        };
        let into = (&mut self.work, &mut self.cpu_seconds);
        stage.work(counted, into, task).await
    }

    /// Seconds of the controller for all.
    pub(crate) fn seconds(&self) -> f64 {
        self.pairs.iter().map(|pair| pair.controller).sum()
    }
}

/// As many owners in each, if there are enough, in namespaces that no two share.
pub(crate) fn block_size(owners: usize) -> usize {
    let blocks = (owners / BLOCK).clamp(1, MOST_BLOCKS);
    owners.div_ceil(blocks).next_multiple_of(OWNERS_PER_ACCOUNT)
}

/// Seconds of a block of the bare client, in place of the one before; `used` gets its CPU time.
pub(crate) async fn bare(
    stage: &mut Stage<'_>,
    owners: usize,
    used: &mut CpuSeconds,
    write: &impl AsyncFn(&World, usize, usize) -> anyhow::Result<Duration>,
) -> anyhow::Result<f64> {
    let (world, in_flight) = (&mut *stage.world, stage.concurrency);
    world.clear(FLOOR, block_size(stage.count)).await?;
    world.let_control_plane_rest().await?;
    let written = async || write(world, owners, in_flight).await;
    let taken = world.measure_cpu(None, used, written).await?;
    Ok(taken.as_secs_f64())
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
