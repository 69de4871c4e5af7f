//! Cold: owners are created at once; how long until all are Ready, and at what cost?
//!
//! They come in blocks, each between two blocks of the bare client, because the machine's pace changes within a minute.

use std::collections::HashSet;
use std::time::Instant;

use serde::Serialize;

use crate::cpu::CpuSeconds;
use crate::floor::{By, write_chains};
use crate::layout::{FLOOR, Key, OWNERS_PER_ACCOUNT};
use crate::objects::FIRST_REVISION;
use crate::pairs::{MOST, Pair, are_enough};
use crate::phases::{Stage, Work};
use crate::report::{self, tell};
use crate::seen::Seen;
use crate::tally::Requests;

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
    /// For all blocks, until its events had ended.
    #[serde(flatten)]
    pub(crate) work: Work,
    /// How long after the last Ready of a block its events went on, at the most, in seconds.
    pub(crate) events_seconds: f64,
    /// CPU seconds by process, from the first create to the last Ready of each block.
    pub(crate) cpu_seconds: CpuSeconds,
    /// Those of the bare client's blocks.
    pub(crate) floor_cpu_seconds: CpuSeconds,
    /// The machine's pace meanwhile, in milliseconds.
    pub(crate) pace_ms: f64,
}

impl Cold {
    /// Of all blocks.
    pub(crate) fn seconds(&self) -> f64 {
        self.pairs.iter().map(|pair| pair.controller).sum()
    }
}

/// Measures it, and leaves the objects of the bare client's last block there.
pub(crate) async fn measure(stage: &mut Stage<'_>) -> anyhow::Result<Cold> {
    stage.world.blueprint_ready().await;
    let owners = stage.owners();
    let size = block_size(owners.len());
    stage.world.requests_until_rest(Requests::all).await?;
    let blocks: Vec<&[Key]> = owners.chunks(size).collect();
    let (mut cold, mut paced) = (Cold::default(), 0.0);
    let mut before = bare(stage, size, By::Apply, &mut CpuSeconds::new()).await?;
    for (turn, owners) in blocks.iter().cycle().enumerate() {
        if turn >= blocks.len() {
            if are_enough(&stage.world.args, &cold.pairs, MOST) {
                break;
            }
            stage.world.remove(owners).await?;
        }
        // The last block may be a smaller one. Its CPU time is not counted twice.
        if owners.len() < size {
            before = bare(stage, owners.len(), By::Apply, &mut CpuSeconds::new()).await?;
        }
        let posted = bare(stage, owners.len(), By::Create, &mut CpuSeconds::new()).await?;
        let (seconds, pace_ms) = by_controller(stage, owners, &mut cold).await?;
        let used = &mut cold.floor_cpu_seconds;
        let after = bare(stage, owners.len(), By::Apply, used).await?;
        let between = |floor| Pair {
            floor,
            controller: seconds,
        };
        cold.pairs.push(between([before, after]));
        cold.created.push(between([posted; 2]));
        paced += pace_ms * seconds;
        tell(
            "block",
            &format!(
                "{seconds:.2} s between floors of {before:.2} and {after:.2} s, {posted:.2} s by POST; pace {pace_ms:.2} ms",
            ),
        );
        before = if owners.len() < size {
            bare(stage, size, By::Apply, &mut CpuSeconds::new()).await?
        } else {
            after
        };
    }
    cold.pace_ms = paced / cold.seconds();
    tell("cold", &report::cold(&cold));
    Ok(cold)
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
    let (world, in_flight) = (&mut *stage.world, stage.concurrency);
    world.clear(FLOOR, block_size(stage.count)).await?;
    world.let_control_plane_rest().await?;
    let written = async || write_chains(world, owners, in_flight, by).await;
    let taken = world.measure_cpu(None, used, written).await?;
    Ok(taken.as_secs_f64())
}

/// Seconds of a block of the controller, and the machine's pace meanwhile.
async fn by_controller(
    stage: &mut Stage<'_>,
    owners: &[Key],
    cold: &mut Cold,
) -> anyhow::Result<(f64, f64)> {
    let wanted: HashSet<Key> = owners.iter().cloned().collect();
    let is_ready = move |key: &Key, owner: &Seen| wanted.contains(key) && owner.is_ready();
    let task = async |stage: &Stage<'_>| {
        let (world, in_flight) = (&*stage.world, stage.concurrency);
        let (start, pace) = (Instant::now(), world.pace.read());
        let created = world.create_owners(in_flight, owners.to_vec(), FIRST_REVISION);
        created.await?;
        let ready = world
            .owners
            .reach("all owners are Ready", owners.len(), is_ready);
        ready.await?;
        Ok((start.elapsed(), world.pace.since(pace), Instant::now()))
    };
    let into = (&mut cold.work, &mut cold.cpu_seconds);
    let (taken, pace_ms, ready) = stage.work(Requests::all, into, task).await?;
    cold.events_seconds = cold.events_seconds.max(ready.elapsed().as_secs_f64());
    cold.owners += owners.len();
    Ok((taken.as_secs_f64(), pace_ms))
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
