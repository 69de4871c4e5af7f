//! The floor of runs: for each Runnable and round the input, the run, the status, and the deletion of the run before.

use std::time::{Duration, Instant};

use crate::api::{Api, STEPS};
use crate::family::TWIN;
use crate::layout::{FLOOR, Key, owners};
use crate::objects::{new_revision, owner, round_revision, run, run_status};
use crate::seen::Seen;
use crate::world::World;

/// Writes a round of so many Runnables and leaves it there; the time until the last run's status is seen.
pub(crate) async fn round(
    world: &World,
    count: usize,
    number: usize,
    concurrency: usize,
) -> anyhow::Result<Duration> {
    let with_uid = |key: Key| {
        let there = (number > 0).then(|| world.bare_owners.get(&key));
        let uid = there.transpose()?.map(|there| there.metadata.uid);
        anyhow::Ok((key, uid))
    };
    let items = owners(FLOOR, count).into_iter().map(with_uid);
    let items = items.collect::<anyhow::Result<Vec<_>>>()?;
    let write = move |client: Api, (key, uid): (Key, Option<String>)| async move {
        write_one(&client, &key, uid, number).await
    };
    let start = Instant::now();
    world.client.each(concurrency, items, write).await?;
    let wanted = round_revision(number);
    let is_over = move |key: &Key, step: &Seen| {
        key.is_of(FLOOR) && step.is_settled() && step.spec.revision == wanted
    };
    let what = "all runs of the round have a status";
    world.steps.reach(what, count, is_over).await?;
    Ok(start.elapsed())
}

/// The writes of a round, in the order a controller would send them. In the first, the Runnable is new; in each other one come
/// what the developer changes, and the deletion of the run that retention no longer keeps.
async fn write_one(
    client: &Api,
    key: &Key,
    uid: Option<String>,
    round: usize,
) -> anyhow::Result<()> {
    let revision = round_revision(round);
    let uid = if let Some(uid) = uid {
        let input = new_revision(&TWIN, &revision);
        client.merge(&TWIN.owners.at(key), &input).await?;
        uid
    } else {
        let object = owner(&TWIN, key, &revision)?;
        client
            .create(&TWIN.owners.within(&key.namespace), &object)
            .await?
    };
    start_run(client, key, &uid, round).await?;
    report(client, key, round, true).await?;
    report(client, key, round, false).await?;
    match round.checked_sub(1) {
        Some(before) => client.delete(&STEPS.at(&key.run(before))).await,
        None => Ok(()),
    }
}

async fn start_run(client: &Api, key: &Key, uid: &str, round: usize) -> anyhow::Result<()> {
    let run = run(&TWIN, key, uid, round)?;
    client
        .create(&STEPS.within(&key.namespace), &run)
        .await
        .map(drop)
}

async fn report(client: &Api, key: &Key, round: usize, begun: bool) -> anyhow::Result<()> {
    let status = run_status(key, round, begun)?;
    client.merge(&TWIN.owners.status_at(key), &status).await
}

/// A single run as a controller would do it: by watch, create and status. The time from the new input until the status is
/// seen. Then the run before is deleted.
pub(crate) async fn change_run(
    world: &World,
    owner: &Key,
    round: usize,
) -> anyhow::Result<Duration> {
    let client = &world.client;
    let (uid, start) = world.change_bare(owner, &round_revision(round)).await?;
    let settled = world.steps.when(&owner.run(round), Seen::is_settled);
    start_run(client, owner, &uid, round).await?;
    settled.await?;
    let ready = world.bare_owners.when(owner, has_outputs_of(round));
    report(client, owner, round, false).await?;
    let taken = ready.await? - start;
    client.delete(&STEPS.at(&owner.run(round - 1))).await?;
    Ok(taken)
}

/// Whether a Runnable is Ready with what the run of a round gave.
pub(crate) fn has_outputs_of(round: usize) -> impl Fn(&Seen) -> bool + Send + Sync + 'static {
    let wanted = round_revision(round);
    move |owner| owner.is_ready() && owner.status.outputs.revision == wanted
}
