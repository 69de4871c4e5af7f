//! Runnables: each is run, and run again whenever its inputs change; retention takes the runs before.
//!
//! The rounds come in parts, each between two parts by the bare client, because the machine's pace changes within a minute. After
//! them comes what every owner goes through.

use std::time::Instant;

use serde::Serialize;
use test_support::Usage;

use crate::args::Args;
use crate::bare::round_revision;
use crate::cpu::{CpuSeconds, add, spent};
use crate::family::{Measured, RUNNABLE};
use crate::floor::{self, best_concurrency, has_outputs_of};
use crate::layout::{FLOOR, Key, TEAM, namespaces_of, owners};
use crate::objects::{KEPT, new_revision};
use crate::pairs::{Pair, are_enough};
use crate::phases::Stage;
use crate::phases::change::{Single, in_turn};
use crate::phases::steady::{self, Deletion, Restart, Steady};
use crate::report::{self, say, tell};
use crate::seen::Seen;
use crate::tally::{Agent, ByAgent, Requests, Tally};
use crate::world::World;

/// Rounds of a part. Nothing rests between them, so what is late shows in the next; what is late after a part does not, and so
/// a part is no single round.
const PART: usize = 3;
/// A part takes about two minutes.
const MOST_PARTS: usize = 6;

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
    /// Seconds of each part, between two of the bare client.
    pub(crate) pairs: Vec<Pair>,
    /// The parts of the bare client right after those of the controller.
    pub(crate) floor: Rounds,
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

    fn add(&mut self, part: &Self) {
        self.each.extend(&part.each);
        self.concurrency = part.concurrency;
        self.most = self.most.max(part.most);
        self.left = part.left;
        add(&mut self.cpu_seconds, &part.cpu_seconds);
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

/// Measures it on a control plane of its own.
pub(crate) async fn measure(args: &Args, measured: &Measured) -> anyhow::Result<Reruns> {
    let count = args.runnables;
    say(&format!(
        "\nN = {count} Runnables, each run again and again"
    ));
    let name = RUNNABLE.name.to_owned();
    World::within(args, measured, name, async |world| phases(world).await).await
}

async fn phases(world: &mut World) -> anyhow::Result<Reruns> {
    let count = world.args.runnables;
    world.furnish(FLOOR, namespaces_of(count)).await?;
    let now = &*world;
    let concurrency = best_concurrency(now, count, async |owners, in_flight| {
        let first = floor::round(now, owners, 0, in_flight).await?;
        Ok(first + floor::round(now, owners, 1, in_flight).await?)
    });
    let concurrency = concurrency.await?;
    world.furnish(TEAM, namespaces_of(count)).await?;
    Stage::with_controller(world, count, concurrency, async |stage| {
        with_controller(stage).await
    })
    .await
}

async fn with_controller(stage: &mut Stage<'_>) -> anyhow::Result<Reruns> {
    let mut reruns = between_floors(stage).await?;
    stage.world.clear(FLOOR, stage.count).await?;
    tell("runs", &report::runs(&reruns));
    reruns.single = single(stage, reruns.again + 1).await?;
    stage.world.requests_until_rest().await?;
    tell("single", &report::single(reruns.single.as_ref()));
    reruns.steady = steady::measure(stage).await?;
    tell("steady", &report::steady(&reruns.steady));
    reruns.restart = steady::restart(stage).await?;
    tell("restart", &report::restart(&reruns.restart));
    reruns.deletion = steady::deletion(stage).await?;
    tell("deletion", &report::deletion(&reruns.deletion));
    Ok(reruns)
}

/// As many parts as were asked for, and more until their ratio is known well enough.
async fn between_floors(stage: &mut Stage<'_>) -> anyhow::Result<Reruns> {
    let least = stage.world.args.reruns + 1;
    let mut reruns = Reruns {
        runnables: stage.count,
        kept: KEPT,
        ..Reruns::default()
    };
    let mut sent = Tally::default();
    let mut before = bare(stage, 0).await?;
    while reruns.runs.rounds.each.len() < least
        || !are_enough(&stage.world.args, &reruns.pairs, MOST_PARTS)
    {
        let from = reruns.runs.rounds.each.len();
        let (part, requests) = by_controller(stage, from, &mut reruns.runs.reconciles).await?;
        sent.merge(requests);
        let after = bare(stage, from + PART).await?;
        reruns.pairs.push(Pair {
            floor: [before.seconds(), after.seconds()],
            controller: part.seconds(),
        });
        tell("part", &report::rounds(&part));
        reruns.runs.rounds.add(&part);
        reruns.floor.add(&after);
        before = after;
    }
    reruns.again = reruns.runs.rounds.each.len() - 1;
    reruns.runs.requests = sent.of(Agent::Controller);
    reruns.runs.by_agent = sent.by_agent();
    reruns.runs.usage = stage.controller.process.usage()?;
    Ok(reruns)
}

/// A part of the bare client's rounds. Its objects stay, as those of the controller do.
async fn bare(stage: &mut Stage<'_>, from: usize) -> anyhow::Result<Rounds> {
    let (world, count) = (&mut *stage.world, stage.count);
    world.let_control_plane_rest().await?;
    let before = world.cpu_seconds(None)?;
    let mut each = Vec::new();
    for number in from..from + PART {
        let taken = floor::round(world, count, number, stage.concurrency).await?;
        each.push(taken.as_secs_f64());
    }
    let rounds = Rounds {
        each,
        concurrency: stage.concurrency,
        cpu_seconds: spent(&before, world.cpu_seconds(None)?),
        ..Rounds::default()
    };
    tell("floor", &report::seconds(&rounds));
    Ok(rounds)
}

/// A part of the controller's rounds, and all requests until it rests.
async fn by_controller(
    stage: &mut Stage<'_>,
    from: usize,
    reconciles: &mut u64,
) -> anyhow::Result<(Rounds, Tally)> {
    stage.world.let_control_plane_rest().await?;
    stage.world.forget_requests()?;
    stage.world.steps.forget_most();
    // At rest the bare client has kept one run of each of its Runnables.
    let of_others = KEPT * stage.count;
    let pid = Some(stage.controller.process.pid());
    let reconciled = stage.controller.reconciles().await?;
    let before = stage.world.cpu_seconds(pid)?;
    let mut each = Vec::new();
    for number in from..from + PART {
        let start = Instant::now();
        round(stage, number).await?;
        each.push(start.elapsed().as_secs_f64());
    }
    let cpu_seconds = spent(&before, stage.world.cpu_seconds(pid)?);
    let requests = stage.world.requests_until_rest().await?;
    *reconciles += stage.controller.reconciles().await? - reconciled;
    let part = Rounds {
        each,
        concurrency: stage.concurrency,
        most: stage.world.steps.most() - of_others,
        left: stage.world.steps.count().total - of_others,
        cpu_seconds,
    };
    Ok((part, requests))
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
