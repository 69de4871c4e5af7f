//! The floor: the writes that cannot be avoided, sent by a client that does nothing else.

mod chains;
mod intents;
mod runs;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;

pub(crate) use chains::{By, change_chain, walk, write_chains};
pub(crate) use intents::write_intents;
pub(crate) use runs::{change_run, has_outputs_of, round};

use crate::layout::FLOOR;
use crate::world::World;

/// Requests in flight that are tried.
const CANDIDATES: [usize; 4] = [4, 8, 16, 32];
/// Owners of a try.
const SAMPLE: usize = 40;
/// The first round warms the API server and is not counted.
const ROUNDS: usize = 3;

/// The number of requests in flight with which the bare client is fastest, if none is asked for; finding it also warms the API
/// server. `write` takes a number of owners and the requests in flight.
pub(crate) async fn best_concurrency(
    world: &World,
    count: usize,
    write: impl AsyncFn(&World, usize, usize) -> anyhow::Result<Duration>,
) -> anyhow::Result<usize> {
    if let Some(asked) = world.args.concurrency {
        return Ok(asked);
    }
    let sample = count.min(SAMPLE);
    let mut fastest = BTreeMap::new();
    for round in 0..ROUNDS {
        for concurrency in CANDIDATES {
            let taken = write(world, sample, concurrency).await?;
            world.clear(FLOOR, sample).await?;
            if round > 0 {
                let best = fastest.entry(concurrency).or_insert(taken);
                *best = taken.min(*best);
            }
        }
    }
    let best = fastest.into_iter().min_by_key(|&(_, taken)| taken);
    best.map(|(concurrency, _)| concurrency)
        .context("nothing was tried")
}
