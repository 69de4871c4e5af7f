//! The floor of runs: the writes that cannot be avoided, sent by a client that does nothing else.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::api::{Api, STEPS, TWINS, status_of};
use crate::floor::spent;
use crate::layout::{FLOOR, Owner, owners};
use crate::reruns::Rounds;
use crate::reruns::objects::{new_input, revision, run, run_key, runnable_status, twin};
use crate::workers::each;
use crate::world::{LIMIT, World};

/// Measures the first round and so many more, and leaves the objects there.
///
/// # Errors
///
/// When the API server refuses.
pub(crate) async fn measure(
    world: &World,
    count: usize,
    reruns: usize,
    concurrency: usize,
) -> anyhow::Result<Rounds> {
    world.steps.forget_most();
    let before = world.cpu_seconds(None)?;
    let mut rounds = Vec::new();
    for number in 0..=reruns {
        let taken = round(world, count, number, concurrency).await?;
        rounds.push(taken.as_secs_f64());
    }
    let cpu_seconds = spent(&before, world.cpu_seconds(None)?);
    Ok(Rounds {
        each: rounds,
        concurrency,
        most: world.steps.most(),
        left: world.steps.count().total,
        cpu_seconds,
    })
}

/// The time of the first round and so many more.
///
/// # Errors
///
/// When the API server refuses.
pub(crate) async fn rounds(
    world: &World,
    count: usize,
    reruns: usize,
    concurrency: usize,
) -> anyhow::Result<Duration> {
    let mut taken = Duration::ZERO;
    for number in 0..=reruns {
        taken += round(world, count, number, concurrency).await?;
    }
    Ok(taken)
}

async fn round(
    world: &World,
    count: usize,
    number: usize,
    concurrency: usize,
) -> anyhow::Result<Duration> {
    let client = world.client.clone();
    let uids = move |owner: &Owner| {
        world
            .bare_owners
            .get(&owner.key)
            .map(|seen| seen.metadata.uid)
    };
    let with_uid = |owner: Owner| {
        let uid = uids(&owner);
        (owner, uid)
    };
    let items = owners(FLOOR, count).into_iter().map(with_uid).collect();
    let start = Instant::now();
    each(concurrency, items, move |(owner, uid)| {
        let client = client.clone();
        async move {
            match number {
                0 => first(&client, &owner).await,
                _ => {
                    again(
                        &client,
                        &owner,
                        &uid.context("a Runnable is missing")?,
                        number,
                    )
                    .await
                }
            }
        }
    })
    .await?;
    let wanted = revision(number);
    let settled = world.steps.reach(
        "all runs of the round have a status",
        count,
        LIMIT,
        move |key, step| key.is_of(FLOOR) && step.is_settled() && step.spec.revision == wanted,
    );
    settled.await?;
    Ok(start.elapsed())
}

/// The writes of the first round, in the order a controller would send them.
async fn first(client: &Api, owner: &Owner) -> anyhow::Result<()> {
    let collection = TWINS.within(&owner.key.namespace);
    let uid = client
        .create(&collection, &twin(owner, &revision(0)))
        .await?;
    start_and_report(client, owner, &uid, 0).await
}

/// Those of each other round: what the developer changes, and the deletion of the run that retention no longer keeps.
async fn again(client: &Api, owner: &Owner, uid: &str, round: usize) -> anyhow::Result<()> {
    client
        .merge(&TWINS.at(&owner.key), &new_input(&revision(round)))
        .await?;
    start_and_report(client, owner, uid, round).await?;
    let before = STEPS.at(&run_key(owner, round - 1));
    client.delete(&before).await
}

async fn start_and_report(
    client: &Api,
    owner: &Owner,
    uid: &str,
    round: usize,
) -> anyhow::Result<()> {
    let status = status_of(&TWINS.at(&owner.key));
    client
        .create(&STEPS.within(&owner.key.namespace), &run(owner, uid, round))
        .await?;
    client.merge(&status, &runnable_status(owner, round)).await
}
