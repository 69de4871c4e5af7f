//! Single runs: one Runnable gets a new input, and nothing else happens until it is Ready with it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::sync::oneshot;

use crate::api::{RUNNABLES, STEPS, status_of};
use crate::floor::spread;
use crate::latency::{Latency, PAUSE};
use crate::layout::{FLOOR, Owner, owners};
use crate::phases::Stage;
use crate::reruns::objects::{new_input, revision, run, run_key, runnable_status};
use crate::seen::{OwnerSeen, Step};
use crate::world::World;

/// How long one run may take: one that stopped should not stop the bench for long.
const SINGLE_LIMIT: Duration = Duration::from_mins(1);

/// By the bare client: so many Runnables, each at the most once; this is their round `round`. Needs the objects of the
/// rounds before.
///
/// # Errors
///
/// When the API server refuses, or a run does not come through.
pub(crate) async fn by_bare_client(
    world: &World,
    count: usize,
    changes: usize,
    round: usize,
) -> anyhow::Result<Option<Latency>> {
    let owners = owners(FLOOR, count);
    let mut samples = Vec::new();
    for owner in spread(&owners, changes.min(count)) {
        tokio::time::sleep(PAUSE).await;
        samples.push(bare(world, owner, round).await?);
        world
            .client
            .delete(&STEPS.at(&run_key(owner, round - 1)))
            .await?;
    }
    Ok(Latency::of(&samples))
}

/// As a controller would: by watch, create and status.
async fn bare(world: &World, owner: &Owner, round: usize) -> anyhow::Result<Duration> {
    let (client, path) = (&world.client, RUNNABLES.at(&owner.key));
    let before = world.owners.get(&owner.key).context("no such Runnable")?;
    let (uid, generation) = (before.metadata.uid, before.metadata.generation);
    let changed = world.owners.when(&owner.key, move |now: &OwnerSeen| {
        now.metadata.generation > generation
    });
    let start = Instant::now();
    client.merge(&path, &new_input(&revision(round))).await?;
    moment(changed).await?;
    let settled = world.steps.when(&run_key(owner, round), Step::is_settled);
    let collection = STEPS.within(&owner.key.namespace);
    client.create(&collection, &run(owner, &uid, round)).await?;
    moment(settled).await?;
    let ready = ready_with(world, owner, round);
    client
        .merge(&status_of(&path), &runnable_status(owner, round))
        .await?;
    Ok(moment(ready).await? - start)
}

/// By the controller: the same, likewise.
///
/// # Errors
///
/// When a run does not come through.
pub(crate) async fn by_controller(
    stage: &Stage<'_>,
    changes: usize,
    round: usize,
) -> anyhow::Result<Option<Latency>> {
    let world = &*stage.world;
    let (owners, input) = (stage.owners(), new_input(&revision(round)));
    let mut samples = Vec::new();
    for owner in spread(&owners, changes.min(stage.count)) {
        tokio::time::sleep(PAUSE).await;
        let ready = ready_with(world, owner, round);
        let start = Instant::now();
        world
            .client
            .merge(&RUNNABLES.at(&owner.key), &input)
            .await?;
        let seen = moment(ready).await.map_err(|error| stage.explain(error))?;
        samples.push(seen - start);
    }
    Ok(Latency::of(&samples))
}

fn ready_with(world: &World, owner: &Owner, round: usize) -> oneshot::Receiver<Instant> {
    let wanted = revision(round);
    let is_ready =
        move |owner: &OwnerSeen| owner.is_ready() && owner.status.outputs.revision == wanted;
    world.owners.when(&owner.key, is_ready)
}

async fn moment(seen: oneshot::Receiver<Instant>) -> anyhow::Result<Instant> {
    let seen = tokio::time::timeout(SINGLE_LIMIT, seen).await;
    Ok(seen.context("a single run does not come through")??)
}
