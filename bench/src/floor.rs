//! The floor: the writes that cannot be avoided, sent by a client that does nothing else.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;

use crate::api::{Api, STEPS, status_of};
use crate::args::Args;
use crate::family::Family;
use crate::layout::{FLOOR, Owner, owners};
use crate::objects::{chain_owner, new_revision, owner_status, stamped};
use crate::seen::{OwnerSeen, Step};
use crate::workers::each;
use crate::world::{LIMIT, World};

/// Requests in flight that are tried.
const CANDIDATES: [usize; 4] = [4, 8, 16, 32];
/// Owners of a try.
const SAMPLE: usize = 40;
/// The first round warms the API server and is not counted.
const ROUNDS: usize = 3;
const FIRST_REVISION: &str = "v1";

/// How the bare client writes a stamped object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// As the controllers do: server-side apply, which keeps account of who owns which field.
    Apply,
    /// POST: as cheaply as an object can be made, by a client that will never change it.
    Create,
}

/// One run of the floor.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Floor {
    /// From the first request to the last child status.
    pub(crate) seconds: f64,
    /// Requests in flight.
    pub(crate) concurrency: usize,
    /// CPU seconds by process.
    pub(crate) cpu_seconds: BTreeMap<String, f64>,
    /// The machine's pace meanwhile, in milliseconds.
    pub(crate) pace_ms: f64,
}

/// The number of requests in flight with which the bare client is fastest, if none is asked for; finding it also warms the API server.
/// `write` takes a number of owners and the requests in flight.
///
/// # Errors
///
/// When the API server refuses.
pub(crate) async fn best_concurrency(
    args: &Args,
    world: &World,
    count: usize,
    write: impl AsyncFn(usize, usize) -> anyhow::Result<Duration>,
) -> anyhow::Result<usize> {
    if let Some(asked) = args.concurrency {
        return Ok(asked);
    }
    let sample = count.min(SAMPLE);
    let mut fastest = BTreeMap::new();
    for round in 0..ROUNDS {
        for concurrency in CANDIDATES {
            let taken = write(sample, concurrency).await?;
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

/// Measures the floor for so many owners and leaves the objects there.
///
/// # Errors
///
/// When the API server refuses.
pub(crate) async fn measure(
    world: &World,
    count: usize,
    steps: u8,
    concurrency: usize,
    by: By,
) -> anyhow::Result<Floor> {
    let (before, pace) = (world.cpu_seconds(None)?, world.pace.read());
    let taken = write_all(world, count, steps, concurrency, by).await?;
    let cpu_seconds = spent(&before, world.cpu_seconds(None)?);
    Ok(Floor {
        seconds: taken.as_secs_f64(),
        concurrency,
        cpu_seconds,
        pace_ms: world.pace.since(pace),
    })
}

/// What was used between two readings, by process.
pub(crate) fn spent(
    before: &BTreeMap<String, f64>,
    after: BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    let since = |name: &str| before.get(name).copied().unwrap_or(0.0);
    after
        .into_iter()
        .map(|(name, seconds)| (name.clone(), seconds - since(&name)))
        .collect()
}

/// Writes everything for so many owners; returns the time until the last child status is seen.
///
/// # Errors
///
/// When the API server refuses.
pub(crate) async fn write_all(
    world: &World,
    count: usize,
    steps: u8,
    concurrency: usize,
    by: By,
) -> anyhow::Result<Duration> {
    let (client, family) = (world.client.clone(), world.family.bare());
    let start = Instant::now();
    each(concurrency, owners(FLOOR, count), move |owner| {
        let client = client.clone();
        async move { write_one(&client, family, &owner, steps, by).await }
    })
    .await?;
    let objects = count * usize::from(steps);
    world
        .steps
        .reach(
            "all stamped objects have a status",
            objects,
            LIMIT,
            |key, step| key.is_of(FLOOR) && step.is_settled(),
        )
        .await?;
    Ok(start.elapsed())
}

/// All writes of one owner, in the order a controller would send them. Nothing is waited for: the same bytes as fast as
/// the API server takes them.
async fn write_one(
    client: &Api,
    family: &Family,
    owner: &Owner,
    steps: u8,
    by: By,
) -> anyhow::Result<()> {
    let path = family.owners.at(&owner.key);
    let uid = client
        .create(
            &family.owners.within(&owner.key.namespace),
            &chain_owner(family, owner, FIRST_REVISION),
        )
        .await?;
    for step in 1..=steps {
        let object = stamped(family, owner, &uid, step, FIRST_REVISION);
        match by {
            By::Apply => client.apply(&STEPS.at(&owner.step(step)), &object).await?,
            By::Create => {
                let collection = STEPS.within(&owner.key.namespace);
                client.create(&collection, &object).await.map(drop)?;
            }
        }
        if step == 1 {
            client
                .merge(&status_of(&path), &owner_status(family, owner, 1, steps))
                .await?;
        }
    }
    client
        .merge(
            &status_of(&path),
            &owner_status(family, owner, steps, steps),
        )
        .await
}

/// So many of the owners, evenly spread, again from the start when there are too few.
pub(crate) fn spread(owners: &[Owner], count: usize) -> impl Iterator<Item = &Owner> {
    let stride = (owners.len() / count.max(1)).max(1);
    (0..count).filter_map(move |number| owners.get((number * stride) % owners.len().max(1)))
}

/// Changes the source of an owner and carries it through its chain, by watch and apply. Needs the objects of [`measure`].
///
/// # Errors
///
/// When the API server refuses, or a change does not come through.
pub(crate) async fn chain(
    world: &World,
    owner: &Owner,
    steps: u8,
    revision: String,
) -> anyhow::Result<Duration> {
    let (family, owners) = (world.family.bare(), &world.bare_owners);
    let before = owners.get(&owner.key).context("an owner is missing")?;
    let (uid, generation) = (before.metadata.uid, before.metadata.generation);
    let changed = owners.when(&owner.key, move |now: &OwnerSeen| {
        now.metadata.generation > generation
    });
    let (client, path) = (&world.client, family.owners.at(&owner.key));
    let start = Instant::now();
    client.merge(&path, &new_revision(&revision)).await?;
    changed.await?;
    for step in 1..=steps {
        let (last, wanted) = (step == steps, revision.clone());
        let passed_on = move |now: &Step| now.spec.revision == wanted && (last || now.is_settled());
        let seen = world.steps.when(&owner.step(step), passed_on);
        let object = stamped(family, owner, &uid, step, &revision);
        client.apply(&STEPS.at(&owner.step(step)), &object).await?;
        let seen = tokio::time::timeout(LIMIT, seen)
            .await
            .context("a change does not come through")??;
        if last {
            return Ok(seen - start);
        }
    }
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_spread_over_all_owners() {
        let picked = |owners_there: usize, count: usize| -> Vec<String> {
            spread(&owners(FLOOR, owners_there), count)
                .map(|owner| owner.key.name.clone())
                .collect()
        };
        assert_eq!(picked(100, 4), ["app-0", "app-25", "app-50", "app-75"]);
        assert_eq!(picked(2, 3), ["app-0", "app-1", "app-0"]);
        assert_eq!(picked(0, 3), Vec::<String>::new());
    }

    #[test]
    fn time_is_counted_from_the_first_reading() {
        let before = BTreeMap::from([("etcd".to_owned(), 2.0)]);
        let after = BTreeMap::from([("etcd".to_owned(), 3.5), ("controller".to_owned(), 1.0)]);
        let expected = BTreeMap::from([("etcd".to_owned(), 1.5), ("controller".to_owned(), 1.0)]);
        assert_eq!(spent(&before, after), expected);
    }
}
