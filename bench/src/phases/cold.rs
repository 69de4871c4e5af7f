//! Cold: owners are created at once; how long until all are Ready, and at what cost?
//!
//! They come in blocks, each between two blocks of the bare client, because the machine's pace changes within a minute.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;

use crate::floor::{self, By, Floor, spent};
use crate::layout::{FLOOR, OWNERS_PER_ACCOUNT, Owner};
use crate::objects::{CHAIN, chain_owner};
use crate::pairs::Pair;
use crate::phases::Stage;
use crate::proc_stat::Usage;
use crate::run::say;
use crate::tally::{Agent, ByAgent, Requests, Tally};
use crate::workers::each;
use crate::world::{LIMIT, World};

const LOOK: Duration = Duration::from_millis(20);
/// Owners of a block, and the most blocks.
const BLOCK: usize = 100;
const MOST_BLOCKS: usize = 5;

/// The cold phase.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cold {
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
    pub(crate) cpu_seconds: BTreeMap<String, f64>,
    /// Those of the bare client's blocks.
    pub(crate) floor_cpu_seconds: BTreeMap<String, f64>,
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
}

/// What one block of the controller took.
struct Block {
    seconds: f64,
    reconciles: u64,
    sent: Tally,
    events_seconds: f64,
    cpu_seconds: BTreeMap<String, f64>,
    pace_ms: f64,
}

/// Measures it, and leaves the objects of the bare client's last block there.
///
/// # Errors
///
/// When not all owners become Ready.
pub(crate) async fn measure(stage: &mut Stage<'_>, tries: usize) -> anyhow::Result<Cold> {
    blueprint_ready(stage.world).await?;
    let owners = stage.owners();
    let size = block_size(owners.len());
    stage.world.requests_until_events_end().await?;
    let (mut pairs, mut created, mut blocks) = (Vec::new(), Vec::new(), Vec::<Block>::new());
    let mut before = bare(stage, size, By::Apply).await?;
    let mut floor_cpu_seconds = before.cpu_seconds.clone();
    for block in owners.chunks(size) {
        for left in (0..tries).rev() {
            // The last block may be a smaller one.
            if block.len() < size {
                before = bare(stage, block.len(), By::Apply).await?;
            }
            let posted = bare(stage, block.len(), By::Create).await?;
            let seen = by_controller(stage, block).await?;
            let after = bare(stage, block.len(), By::Apply).await?;
            let pair = Pair {
                floor: [before.seconds, after.seconds],
                controller: seen.seconds,
            };
            say(&format!(
                "block          {:.2} s between floors of {:.2} and {:.2} s, {:.2} s by POST; pace {:.2} ms",
                seen.seconds, before.seconds, after.seconds, posted.seconds, seen.pace_ms,
            ));
            add(&mut floor_cpu_seconds, &after.cpu_seconds);
            before = after;
            if pair.is_steady() || left == 0 {
                let floor = [posted.seconds; 2];
                created.push(Pair { floor, ..pair });
                pairs.push(pair);
                blocks.push(seen);
                break;
            }
            stage.world.remove(block).await?;
        }
    }
    let usage = stage.controller.usage()?;
    Ok(summed_up(&blocks, pairs, created, floor_cpu_seconds, usage))
}

/// As many owners in each, if there are enough, in namespaces that no two share.
pub(crate) fn block_size(owners: usize) -> usize {
    let blocks = (owners / BLOCK).clamp(1, MOST_BLOCKS);
    owners.div_ceil(blocks).next_multiple_of(OWNERS_PER_ACCOUNT)
}

fn summed_up(
    blocks: &[Block],
    pairs: Vec<Pair>,
    created: Vec<Pair>,
    floor_cpu_seconds: BTreeMap<String, f64>,
    usage: Usage,
) -> Cold {
    let (mut sent, mut cpu_seconds) = (Tally::default(), BTreeMap::new());
    for block in blocks {
        sent.merge(block.sent.clone());
        add(&mut cpu_seconds, &block.cpu_seconds);
    }
    let seconds: f64 = blocks.iter().map(|block| block.seconds).sum();
    let paced: f64 = blocks
        .iter()
        .map(|block| block.pace_ms * block.seconds)
        .sum();
    Cold {
        pairs,
        created,
        reconciles: blocks.iter().map(|block| block.reconciles).sum(),
        requests: sent.of(Agent::Controller),
        events_seconds: blocks
            .iter()
            .map(|block| block.events_seconds)
            .fold(0.0, f64::max),
        by_agent: sent.by_agent(),
        cpu_seconds,
        floor_cpu_seconds,
        pace_ms: paced / seconds,
        usage,
    }
}

fn add(to: &mut BTreeMap<String, f64>, more: &BTreeMap<String, f64>) {
    for (name, seconds) in more {
        *to.entry(name.clone()).or_default() += seconds;
    }
}

/// A block of the bare client, in place of the one before.
async fn bare(stage: &mut Stage<'_>, owners: usize, by: By) -> anyhow::Result<Floor> {
    stage.world.clear(FLOOR, block_size(stage.count)).await?;
    stage.world.let_control_plane_rest().await?;
    floor::measure(stage.world, owners, stage.steps, stage.concurrency, by).await
}

async fn by_controller(stage: &mut Stage<'_>, owners: &[Owner]) -> anyhow::Result<Block> {
    stage.world.let_control_plane_rest().await?;
    stage.world.forget_requests()?;
    let pid = Some(stage.controller.pid());
    let reconciled = stage.controller.reconciles().await?;
    let (before, pace) = (stage.world.cpu_seconds(pid)?, stage.world.pace.read());
    let start = Instant::now();
    create_all(stage, owners).await?;
    let wanted: std::collections::HashSet<_> =
        owners.iter().map(|owner| owner.key.clone()).collect();
    let ready = stage.world.owners.reach(
        "all owners are Ready",
        owners.len(),
        LIMIT,
        move |key, owner| wanted.contains(key) && owner.is_ready(),
    );
    ready.await.map_err(|error| stage.explain(error))?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = spent(&before, stage.world.cpu_seconds(pid)?);
    let pace_ms = stage.world.pace.since(pace);
    let sent = stage.world.requests_until_events_end().await?;
    Ok(Block {
        seconds,
        reconciles: stage.controller.reconciles().await? - reconciled,
        sent,
        events_seconds: start.elapsed().as_secs_f64() - seconds,
        cpu_seconds,
        pace_ms,
    })
}

async fn create_all(stage: &Stage<'_>, owners: &[Owner]) -> anyhow::Result<()> {
    let (client, family) = (stage.world.client.clone(), stage.world.family);
    each(stage.concurrency, owners.to_vec(), move |owner| {
        let client = client.clone();
        async move {
            let collection = family.owners.within(&owner.key.namespace);
            client
                .create(&collection, &chain_owner(family, &owner, "v1"))
                .await
                .map(drop)
        }
    })
    .await
}

/// The controller has taken up its work when it says so of the blueprint.
pub(crate) async fn blueprint_ready(world: &World) -> anyhow::Result<()> {
    let deadline = Instant::now() + LIMIT;
    let blueprint = world.family.blueprints.named(CHAIN);
    loop {
        let chain = world.client.read(&blueprint).await?;
        let conditions = chain["status"]["conditions"].as_array();
        let is_ready = |condition: &&serde_json::Value| {
            condition["type"] == "Ready" && condition["status"] == "True"
        };
        if conditions
            .into_iter()
            .flatten()
            .any(|condition| is_ready(&condition))
        {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "the {} does not become Ready: {}",
            world.family.blueprint_kind,
            chain["status"]
        );
        tokio::time::sleep(LOOK).await;
    }
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
            let ends = blocks.windows(2);
            let share =
                |two: &[&[Owner]]| two[0].last().unwrap().key.namespace == two[1][0].key.namespace;
            assert!(!ends.into_iter().any(share));
        }
    }
}
