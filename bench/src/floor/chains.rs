//! The floor of chains: for each owner its objects, and its status twice.

use std::time::{Duration, Instant};

use crate::api::{Api, STEPS};
use crate::family::Family;
use crate::layout::{FLOOR, Key, owners};
use crate::objects::{FIRST_REVISION, chain_status, owner, stamped};
use crate::seen::Seen;
use crate::world::World;

/// How the bare client writes a stamped object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// As the controllers do: server-side apply, which keeps account of who owns which field.
    Apply,
    /// POST: as cheaply as an object can be made, by a client that will never change it.
    Create,
}

/// Writes everything for so many owners and leaves it there; the time until the last child status is seen.
pub(crate) async fn write_chains(
    world: &World,
    count: usize,
    concurrency: usize,
    by: By,
) -> anyhow::Result<Duration> {
    let (family, steps) = (world.family.bare(), world.args.steps);
    let write = move |client: Api, key: Key| async move {
        write_one(&client, family, &key, steps, by).await
    };
    let start = Instant::now();
    let written = world.client.each(concurrency, owners(FLOOR, count), write);
    written.await?;
    let objects = count * usize::from(steps);
    let is_settled = |key: &Key, step: &Seen| key.is_of(FLOOR) && step.is_settled();
    let what = "all stamped objects have a status";
    world.steps.reach(what, objects, is_settled).await?;
    Ok(start.elapsed())
}

/// All writes of one owner, in the order a controller would send them. Nothing is waited for: the same bytes as fast as
/// the API server takes them.
async fn write_one(
    client: &Api,
    family: &Family,
    key: &Key,
    steps: u8,
    by: By,
) -> anyhow::Result<()> {
    let status = async |done| {
        let status = chain_status(family, key, done, steps)?;
        client.merge(&family.owners.status_at(key), &status).await
    };
    let object = owner(family, key, FIRST_REVISION)?;
    let uid = client
        .create(&family.owners.within(&key.namespace), &object)
        .await?;
    for step in 1..=steps {
        let object = stamped(family, key, &uid, step, FIRST_REVISION)?;
        let key = key.step(step);
        match by {
            By::Apply => client.apply(&STEPS.at(&key), &object).await?,
            By::Create => client
                .create(&STEPS.within(&key.namespace), &object)
                .await
                .map(drop)?,
        }
        if step == 1 {
            status(1).await?;
        }
    }
    status(steps).await
}

/// Changes the source of an owner and carries it through its chain; the time until the last object is seen with it. Needs the
/// objects of [`write_chains`].
pub(crate) async fn change_chain(
    world: &World,
    owner: &Key,
    revision: &str,
) -> anyhow::Result<Duration> {
    let (uid, start) = world.change_bare(owner, revision).await?;
    let passed_on = |step: &Seen, is_last| is_last || step.is_settled();
    Ok(walk(world, owner, &uid, revision, passed_on).await? - start)
}

/// Applies the objects of a chain, each once the one before is seen as wanted; the moment in which the last one is.
pub(crate) async fn walk(
    world: &World,
    owner: &Key,
    uid: &str,
    revision: &str,
    wanted: impl Fn(&Seen, bool) -> bool + Copy + Send + Sync + 'static,
) -> anyhow::Result<Instant> {
    let (family, steps) = (world.family.bare(), world.args.steps);
    let mut seen = Instant::now();
    for step in 1..=steps {
        let (key, is_last) = (owner.step(step), step == steps);
        let of_revision = revision.to_owned();
        let passed = world.steps.when(&key, move |now: &Seen| {
            now.spec.revision == of_revision && wanted(now, is_last)
        });
        let object = stamped(family, owner, uid, step, revision)?;
        world.client.apply(&STEPS.at(&key), &object).await?;
        seen = passed.await?;
    }
    Ok(seen)
}
