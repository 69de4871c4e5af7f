//! Fairness: how long does one owner wait while others have thousands to settle, in one namespace or in hundreds?
//!
//! The machine itself is slower then, as the API server and etcd are busy. So a bare client does the same for one owner at
//! a time, in turn with the controller: what it waits longer is the machine's, what the controller waits beyond that is its own.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use test_support::Usage;

use crate::args::Args;
use crate::cpu::CpuSeconds;
use crate::family::{DELIVERY, Measured, SUPPLY_CHAIN};
use crate::floor::walk;
use crate::latency::Latency;
use crate::layout::{CROWD, FLOOR, GUEST, Key, crowd};
use crate::objects::{FIRST_REVISION, LINEAR, all_owners, chain_status, owner};
use crate::phases::Stage;
use crate::report::{report, say, tell};
use crate::seen::Seen;
use crate::tally::Requests;
use crate::templates::render;
use crate::world::World;

/// Creates of the crowd in flight.
const CREATES_IN_FLIGHT: usize = 16;
/// So many owners of the crowd are Ready before anything is measured.
const UNDER_WAY: usize = 20;
/// Singles before the first that counts: the first asks for a token, and connections are made.
const WARM_UP: usize = 3;
/// Before each single, so that the crowd is at its full pace again: a scheduler may hold it back while another namespace
/// is under way, and the first request of a single would profit from the single before.
const PAUSE: Duration = Duration::from_secs(1);
/// With fewer samples the crowd was too small for this machine.
const FEWEST: usize = 10;
/// Names of the two situations, and of the owners in them.
const IDLE: &str = "idle";
const LOADED: &str = "loaded";

/// What a single owner in a namespace of its own waits for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Fairness {
    /// Owners in the other namespaces.
    pub(crate) crowd: usize,
    /// How many namespaces they are spread over.
    pub(crate) namespaces: usize,
    /// Of these, not Ready when the last sample was taken.
    pub(crate) unsettled: usize,
    /// Nobody else is there.
    pub(crate) idle: Singles,
    /// While the crowd settles.
    pub(crate) loaded: Singles,
    /// What the controller had used when all others were Ready, too.
    pub(crate) settled: Usage,
    /// Queue of the controller when the last sample was taken: series of its metrics.
    pub(crate) queue: BTreeMap<String, f64>,
}

/// Single owners, one after the other.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Singles {
    /// By the controller: from the create of the owner until it is seen Ready.
    pub(crate) ready: Latency,
    /// By the controller: from the create of the owner until its first stamped object is seen.
    pub(crate) first_step: Latency,
    /// The same requests by a bare client.
    pub(crate) bare: Latency,
    /// Seconds for all of them.
    pub(crate) seconds: f64,
    /// CPU seconds by process meanwhile.
    pub(crate) cpu_seconds: CpuSeconds,
}

/// Where the crowd is, in words.
pub(crate) fn of_others(namespaces: usize) -> String {
    match namespaces {
        1 => "another namespace".to_owned(),
        many => format!("{many} other namespaces"),
    }
}

/// Measures it on a control plane of its own.
pub(crate) async fn measure(
    args: &Args,
    measured: &Measured,
    namespaces: NonZeroUsize,
) -> anyhow::Result<Fairness> {
    say(&format!(
        "\nfairness: one Workload beside {} × {} steps of {}",
        args.crowd,
        args.steps,
        of_others(namespaces.get())
    ));
    let name = format!("fairness-{namespaces}");
    World::within(args, measured, name, async |world| {
        for (prefix, count) in [(CROWD, namespaces.get()), (GUEST, 2), (FLOOR, 1)] {
            world.furnish(prefix, count).await?;
        }
        Stage::with_controller(world, args.crowd, CREATES_IN_FLIGHT, async |stage| {
            phases(stage, namespaces).await
        })
        .await
    })
    .await
}

async fn phases(stage: &mut Stage<'_>, namespaces: NonZeroUsize) -> anyhow::Result<Fairness> {
    stage.world.blueprint_ready(LINEAR).await;
    stage.world.let_control_plane_rest().await?;
    let (idle, _) = singles(stage, IDLE).await?;
    gather(stage, namespaces).await?;
    let (loaded, unsettled) = singles(stage, LOADED).await?;
    let mut fairness = Fairness {
        crowd: stage.count,
        namespaces: namespaces.get(),
        unsettled,
        idle,
        loaded,
        queue: stage.controller.queue().await?,
        ..Fairness::default()
    };
    // What follows takes minutes, and may fail.
    say(&render("report/singles.txt", &fairness)?);
    crowd_ready(stage, "the crowd is settled", stage.count).await?;
    stage.world.requests_until_rest(Requests::sum).await?;
    fairness.settled = stage.controller.process.usage()?;
    report("fairness", &fairness)?;
    Ok(fairness)
}

/// Creates the crowd while the controller is away, so that all of it is to be settled when it comes back.
async fn gather(stage: &mut Stage<'_>, namespaces: NonZeroUsize) -> anyhow::Result<()> {
    stage.controller.process.kill();
    let all = crowd(stage.count, namespaces);
    let start = Instant::now();
    let all = all_owners(&SUPPLY_CHAIN, &all, FIRST_REVISION);
    stage.world.create_owners(stage.concurrency, all).await?;
    let seconds = start.elapsed().as_secs_f64();
    tell("crowd", &format!("created in {seconds:.1} s"));
    stage.start_again().await?;
    let some = UNDER_WAY.min(stage.count);
    crowd_ready(stage, "the crowd is under way", some).await
}

async fn crowd_ready(stage: &Stage<'_>, what: &str, count: usize) -> anyhow::Result<()> {
    let is_ready = |key: &Key, owner: &Seen| key.is_of(CROWD) && owner.is_ready();
    stage.world.owners.reach(what, count, is_ready).await
}

/// Measures single owners and, in turn, the bare client's; and how many of the crowd are left. Ends early when none is.
async fn singles(stage: &Stage<'_>, name: &str) -> anyhow::Result<(Singles, usize)> {
    let (world, wanted) = (&*stage.world, stage.world.args.singles);
    for number in 0..WARM_UP {
        sample(world, name, number).await?;
    }
    let (mut samples, mut unsettled) = (Vec::new(), 0);
    let (mut cpu_seconds, start) = (CpuSeconds::new(), Instant::now());
    let controller = Some(stage.controller.process.pid());
    let sampled = world.measure_cpu(controller, &mut cpu_seconds, async || {
        for number in WARM_UP..WARM_UP + wanted {
            let taken = sample(world, name, number).await?;
            if name == LOADED {
                let left = stage.count.saturating_sub(world.owners.reached());
                if left == 0 {
                    break;
                }
                unsettled = left;
            }
            samples.push(taken);
        }
        Ok(())
    });
    sampled.await?;
    ensure!(
        samples.len() >= FEWEST.min(wanted),
        "the crowd was settled after {} samples: make it larger",
        samples.len()
    );
    let seconds = start.elapsed().as_secs_f64();
    let of = |figure: usize| {
        let figures: Vec<Duration> = samples.iter().map(|sample| sample[figure]).collect();
        Latency::of(&figures).context("no samples were asked for")
    };
    let singles = Singles {
        first_step: of(0)?,
        ready: of(1)?,
        bare: of(2)?,
        seconds,
        cpu_seconds,
    };
    Ok((singles, unsettled))
}

/// What one single took until its first object and until it was Ready, and what the bare client's
/// took.
async fn sample(world: &World, name: &str, number: usize) -> anyhow::Result<[Duration; 3]> {
    let name_of_owner = format!("{name}-{number}");
    tokio::time::sleep(PAUSE).await;
    let guest = Key::new(guest(name), &*name_of_owner);
    let [first_step, ready] = by_controller(world, &guest).await?;
    tokio::time::sleep(PAUSE).await;
    let bare = Key::new(format!("{FLOOR}-0"), &*name_of_owner);
    Ok([first_step, ready, by_bare_client(world, &bare).await?])
}

/// The loaded ones come to a namespace of their own: the idle ones, which the restarted controller looks at again together
/// with the crowd, would stand before them.
fn guest(name: &str) -> String {
    format!("{GUEST}-{}", u8::from(name == LOADED))
}

async fn by_controller(world: &World, key: &Key) -> anyhow::Result<[Duration; 2]> {
    let first = world.steps.when(&key.step(1), |_: &Seen| true);
    let ready = world.owners.when(key, Seen::is_ready);
    let start = Instant::now();
    let collection = SUPPLY_CHAIN.owners.within(&key.namespace);
    let object = owner(&SUPPLY_CHAIN, key, FIRST_REVISION)?;
    world.client.create(&collection, &object).await?;
    Ok([first.await? - start, ready.await? - start])
}

/// As a controller would: by watch and apply, and with the least of statuses. The owner is a Deliverable, which the
/// controller under test leaves alone.
async fn by_bare_client(world: &World, key: &Key) -> anyhow::Result<Duration> {
    let (client, steps) = (&world.client, world.args.steps);
    let start = Instant::now();
    let collection = DELIVERY.owners.within(&key.namespace);
    let object = owner(&DELIVERY, key, FIRST_REVISION)?;
    let uid = client.create(&collection, &object).await?;
    let is_settled = |step: &Seen, _| step.is_settled();
    walk(world, key, &uid, FIRST_REVISION, is_settled).await?;
    let status = chain_status(&DELIVERY, key, steps, steps)?;
    let path = DELIVERY.owners.status_at(key);
    client.merge(&path, &status).await?;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_loaded_guests_live_apart_and_are_not_of_the_crowd() {
        assert!(!Key::new(guest(IDLE), IDLE).is_of(CROWD));
        assert_ne!(guest(IDLE), guest(LOADED));
    }
}
