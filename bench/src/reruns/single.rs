//! Single runs: one Runnable gets a new input, and nothing else happens until it is Ready with it.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::api::{RUNNABLES, STEPS, TWINS, status_of};
use crate::census::Census;
use crate::floor::spread;
use crate::latency::{Latency, PAUSE};
use crate::layout::{FLOOR, Owner, owners};
use crate::phases::Stage;
use crate::reruns::floor;
use crate::reruns::objects::{new_input, revision, run, run_key, runnable_status};
use crate::seen::{OwnerSeen, Step};
use crate::world::World;

/// How long one run may take: one that stopped should not stop the bench for long.
const SINGLE_LIMIT: Duration = Duration::from_mins(1);

/// From a new input until the Runnable is seen Ready with its outputs, one Runnable after the other.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Single {
    /// By the controller.
    pub(crate) latency: Latency,
    /// By the bare client, in turn with it.
    pub(crate) bare: Latency,
}

impl Single {
    /// The controller against the bare client, by their medians.
    pub(crate) fn ratio(&self) -> f64 {
        self.latency.p50_ms / self.bare.p50_ms
    }
}

/// So many Runnables, each at the most once, by the controller and by the bare client in turn: what the machine does to one of
/// the two, it does to the other. This is the round `round` of the Runnables. The bare client's go afterwards.
///
/// # Errors
///
/// When the API server refuses, or a run does not come through.
pub(crate) async fn measure(
    stage: &mut Stage<'_>,
    changes: usize,
    round: usize,
) -> anyhow::Result<Option<Single>> {
    let count = changes.min(stage.count);
    if count == 0 {
        return Ok(None);
    }
    // They have been through the same rounds.
    floor::rounds(stage.world, count, round - 1, stage.concurrency).await?;
    stage.world.let_control_plane_rest().await?;
    let (mut samples, mut bare) = (Vec::new(), Vec::new());
    let of_controller = stage.owners();
    for (owner, twin) in spread(&of_controller, count).zip(&owners(FLOOR, count)) {
        tokio::time::sleep(PAUSE).await;
        let sample = by_controller(stage.world, owner, round).await;
        samples.push(sample.map_err(|error| stage.explain(error))?);
        tokio::time::sleep(PAUSE).await;
        bare.push(by_bare_client(stage.world, twin, round).await?);
        let before = STEPS.at(&run_key(twin, round - 1));
        stage.world.client.delete(&before).await?;
    }
    stage.world.clear(FLOOR, count).await?;
    let of_both = Latency::of(&samples).zip(Latency::of(&bare));
    Ok(of_both.map(|(latency, bare)| Single { latency, bare }))
}

async fn by_controller(world: &World, owner: &Owner, round: usize) -> anyhow::Result<Duration> {
    let ready = ready_with(&world.owners, owner, round);
    let start = Instant::now();
    let input = new_input(&revision(round));
    world
        .client
        .merge(&RUNNABLES.at(&owner.key), &input)
        .await?;
    Ok(moment(ready).await? - start)
}

/// As a controller would: by watch, create and status.
async fn by_bare_client(world: &World, owner: &Owner, round: usize) -> anyhow::Result<Duration> {
    let (client, path, twins) = (&world.client, TWINS.at(&owner.key), &world.bare_owners);
    let before = twins.get(&owner.key).context("no such Runnable")?;
    let (uid, generation) = (before.metadata.uid, before.metadata.generation);
    let changed = twins.when(&owner.key, move |now: &OwnerSeen| {
        now.metadata.generation > generation
    });
    let start = Instant::now();
    client.merge(&path, &new_input(&revision(round))).await?;
    moment(changed).await?;
    let settled = world.steps.when(&run_key(owner, round), Step::is_settled);
    let collection = STEPS.within(&owner.key.namespace);
    client.create(&collection, &run(owner, &uid, round)).await?;
    moment(settled).await?;
    let ready = ready_with(twins, owner, round);
    client
        .merge(&status_of(&path), &runnable_status(owner, round))
        .await?;
    Ok(moment(ready).await? - start)
}

fn ready_with(
    among: &Census<OwnerSeen>,
    owner: &Owner,
    round: usize,
) -> oneshot::Receiver<Instant> {
    let wanted = revision(round);
    let is_ready =
        move |owner: &OwnerSeen| owner.is_ready() && owner.status.outputs.revision == wanted;
    among.when(&owner.key, is_ready)
}

async fn moment(seen: oneshot::Receiver<Instant>) -> anyhow::Result<Instant> {
    let seen = tokio::time::timeout(SINGLE_LIMIT, seen).await;
    Ok(seen.context("a single run does not come through")??)
}
