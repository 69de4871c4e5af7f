//! Runnables: each is run, and run again whenever its inputs change; retention takes the runs before.
//!
//! The rounds by the controller stand between two times the same rounds by the bare client. After them comes what every owner
//! goes through.

use std::time::Instant;

use anyhow::bail;
use serde::Serialize;
use test_support::Usage;

use crate::args::Args;
use crate::bare::round_revision;
use crate::cpu::{CpuSeconds, spent};
use crate::family::{Measured, RUNNABLE};
use crate::floor::{self, best_concurrency, has_outputs_of};
use crate::layout::{FLOOR, Key, TEAM, namespaces_of, owners};
use crate::objects::{KEPT, new_revision};
use crate::pairs::{Pair, tries};
use crate::phases::Stage;
use crate::phases::change::{Single, in_turn};
use crate::phases::steady::{self, Deletion, Restart, Steady};
use crate::report::{self, say, tell};
use crate::seen::Seen;
use crate::tally::{Agent, ByAgent, Requests};
use crate::world::World;

/// What was measured of Runnables.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reruns {
    /// Number of Runnables.
    pub(crate) runnables: usize,
    /// How often each was run again.
    pub(crate) again: usize,
    /// Runs that retention keeps, of each.
    pub(crate) kept: usize,
    /// The bare client, right before the controller and right after.
    pub(crate) floor: [Rounds; 2],
    /// All rounds by the controller.
    pub(crate) runs: Runs,
    /// Single runs, one after the other, by the controller and by the bare client in turn.
    pub(crate) single: Option<Single>,
    /// Reconciles that change nothing.
    pub(crate) steady: Steady,
    /// Killed and started again.
    pub(crate) restart: Restart,
    /// All Runnables deleted.
    pub(crate) deletion: Deletion,
}

impl Reruns {
    /// All runs there were.
    pub(crate) fn all_runs(&self) -> usize {
        self.runnables * (self.again + 1)
    }

    /// All rounds, in seconds.
    pub(crate) fn pair(&self) -> Pair {
        Pair {
            floor: self.floor.each_ref().map(Rounds::seconds),
            controller: self.runs.rounds.seconds(),
        }
    }
}

/// Rounds of runs; in the first all Runnables are created, in each other one all get new inputs.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Rounds {
    /// Seconds of each round.
    pub(crate) each: Vec<f64>,
    /// Requests in flight of the bench: as the bare client, or as the user.
    pub(crate) concurrency: usize,
    /// The most runs that were there at a time.
    pub(crate) most: usize,
    /// Runs that are there in the end, at rest.
    pub(crate) left: usize,
    /// CPU seconds by process.
    pub(crate) cpu_seconds: CpuSeconds,
}

impl Rounds {
    /// Of all rounds.
    pub(crate) fn seconds(&self) -> f64 {
        self.each.iter().sum()
    }
}

/// The rounds by the controller.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Runs {
    /// Until all Runnables are Ready with the outputs of the round.
    pub(crate) rounds: Rounds,
    /// Runnables reconciled, by the controller's own count.
    pub(crate) reconciles: u64,
    /// Requests of the controller for all rounds, until it came to rest.
    pub(crate) requests: Requests,
    /// Requests of everybody meanwhile.
    pub(crate) by_agent: ByAgent,
    /// What the controller used since it started, at rest.
    pub(crate) usage: Usage,
}

/// Measures it on a control plane of its own; on another one again when the floor drifted.
pub(crate) async fn measure(args: &Args, measured: &Measured) -> anyhow::Result<Reruns> {
    let (count, again) = (args.runnables, args.reruns);
    for left in (0..tries(args)).rev() {
        say(&format!(
            "\nN = {count} Runnables, each run again {again} times"
        ));
        let name = RUNNABLE.name.to_owned();
        let reruns = World::within(args, measured, name, async |world| {
            phases(world, left == 0).await
        });
        if let Some(reruns) = reruns.await? {
            return Ok(reruns);
        }
    }
    bail!("nothing was measured")
}

/// Nothing if the floor drifted, unless this is the last try.
async fn phases(world: &mut World, is_last: bool) -> anyhow::Result<Option<Reruns>> {
    let count = world.args.runnables;
    world.furnish(FLOOR, namespaces_of(count)).await?;
    let now = &*world;
    let concurrency = best_concurrency(now, count, async |owners, in_flight| {
        let first = floor::round(now, owners, 0, in_flight).await?;
        Ok(first + floor::round(now, owners, 1, in_flight).await?)
    });
    let concurrency = concurrency.await?;
    let before = bare(world, concurrency).await?;
    world.furnish(TEAM, namespaces_of(count)).await?;
    Stage::with_controller(world, count, concurrency, async |stage| {
        with_controller(stage, before, is_last).await
    })
    .await
}

/// The floor comes right after the rounds; what is measured in turn needs none.
async fn with_controller(
    stage: &mut Stage<'_>,
    before: Rounds,
    is_last: bool,
) -> anyhow::Result<Option<Reruns>> {
    let (runnables, again) = (stage.count, stage.world.args.reruns);
    let runs = by_controller(stage, again).await?;
    let after = bare(stage.world, stage.concurrency).await?;
    let mut reruns = Reruns {
        runnables,
        again,
        kept: KEPT,
        floor: [before, after],
        runs,
        ..Reruns::default()
    };
    tell("runs", &report::runs(&reruns));
    reruns.single = single(stage, again + 1).await?;
    stage.world.requests_until_rest().await?;
    tell("single", &report::single(reruns.single.as_ref()));
    if !reruns.pair().is_steady() && !is_last {
        return Ok(None);
    }
    reruns.steady = steady::measure(stage).await?;
    tell("steady", &report::steady(&reruns.steady));
    reruns.restart = steady::restart(stage).await?;
    tell("restart", &report::restart(&reruns.restart));
    reruns.deletion = steady::deletion(stage).await?;
    tell("deletion", &report::deletion(&reruns.deletion));
    Ok(Some(reruns))
}

/// The bare client's rounds; its objects go afterwards.
async fn bare(world: &mut World, concurrency: usize) -> anyhow::Result<Rounds> {
    let count = world.args.runnables;
    world.let_control_plane_rest().await?;
    world.steps.forget_most();
    let before = world.cpu_seconds(None)?;
    let mut each = Vec::new();
    for number in 0..=world.args.reruns {
        let taken = floor::round(world, count, number, concurrency).await?;
        each.push(taken.as_secs_f64());
    }
    let cpu_seconds = spent(&before, world.cpu_seconds(None)?);
    let rounds = summed_up(world, each, concurrency, cpu_seconds);
    tell("floor", &report::rounds(&rounds));
    world.clear(FLOOR, count).await?;
    Ok(rounds)
}

fn summed_up(world: &World, each: Vec<f64>, concurrency: usize, cpu_seconds: CpuSeconds) -> Rounds {
    Rounds {
        each,
        concurrency,
        most: world.steps.most(),
        left: world.steps.count().total,
        cpu_seconds,
    }
}

/// The first round and so many more. Nothing rests between them, so what is late shows in the next.
async fn by_controller(stage: &mut Stage<'_>, again: usize) -> anyhow::Result<Runs> {
    stage.world.let_control_plane_rest().await?;
    stage.world.requests_until_rest().await?;
    stage.world.steps.forget_most();
    let pid = Some(stage.controller.process.pid());
    let reconciled = stage.controller.reconciles().await?;
    let before = stage.world.cpu_seconds(pid)?;
    let mut each = Vec::new();
    for number in 0..=again {
        let start = Instant::now();
        round(stage, number).await?;
        each.push(start.elapsed().as_secs_f64());
    }
    let cpu_seconds = spent(&before, stage.world.cpu_seconds(pid)?);
    let requests = stage.world.requests_until_rest().await?;
    Ok(Runs {
        rounds: summed_up(stage.world, each, stage.concurrency, cpu_seconds),
        reconciles: stage.controller.reconciles().await? - reconciled,
        requests: requests.of(Agent::Controller),
        by_agent: requests.by_agent(),
        usage: stage.controller.process.usage()?,
    })
}

async fn round(stage: &Stage<'_>, number: usize) -> anyhow::Result<()> {
    let (world, all, in_flight) = (&*stage.world, stage.owners(), stage.concurrency);
    let revision = round_revision(number);
    if number == 0 {
        world.create_owners(in_flight, all, &revision).await?;
    } else {
        let patch = new_revision(world.family, &revision);
        world.patch_owners(in_flight, all, &patch).await?;
    }
    let is_ready = has_outputs_of(number);
    let what = "all Runnables are Ready with the outputs of the round";
    let is_ready = move |_: &Key, owner: &Seen| is_ready(owner);
    world.owners.reach(what, stage.count, is_ready).await
}

/// Single runs of Runnables, each at the most once, which is their round `round`. The bare client's go afterwards.
async fn single(stage: &mut Stage<'_>, round: usize) -> anyhow::Result<Option<Single>> {
    let count = stage.world.args.source_changes.min(stage.count);
    if count == 0 {
        return Ok(None);
    }
    // They have been through the same rounds.
    for before in 0..round {
        floor::round(stage.world, count, before, stage.concurrency).await?;
    }
    stage.world.let_control_plane_rest().await?;
    let world = &*stage.world;
    let single = in_turn(
        count,
        (stage.owners(), owners(FLOOR, count)),
        async |owner, _| {
            let ready = world.owners.when(owner, has_outputs_of(round));
            let input = new_revision(world.family, &round_revision(round));
            let start = Instant::now();
            let path = world.family.owners.at(owner);
            world.client.merge(&path, &input).await?;
            Ok(ready.await? - start)
        },
        async |owner, _| floor::change_run(world, owner, round).await,
    );
    let single = single.await?;
    stage.world.clear(FLOOR, count).await?;
    Ok(single)
}
