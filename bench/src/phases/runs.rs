//! Runnables: each is run, and run again whenever its inputs change; retention takes the runs before.
//!
//! The rounds come in parts, each between two parts by the bare client, because the machine's pace changes within a minute. After
//! them comes what every owner goes through.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::cpu::{CpuSeconds, add_spent};
use crate::family::{Measured, RUNNABLE};
use crate::floor::{self, has_outputs_of};
use crate::layout::{FLOOR, Key, owners};
use crate::objects::{KEPT, all_owners, new_revision, round_revision};
use crate::pairs::{Pair, are_enough};
use crate::phases::change::{Single, in_turn};
use crate::phases::steady::{self, Restart, Steady};
use crate::phases::{Phase, Stage, Work};
use crate::report::{report, say};
use crate::seen::Seen;
use crate::tally::Requests;
use crate::world::World;

/// Rounds of a part. Nothing rests between them, so what is late shows in the next; what is late after a part does not, and so
/// a part is no single round.
const PART: usize = 3;
/// A part takes about two minutes.
const MOST_PARTS: usize = 6;

/// What was measured of Runnables.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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
    pub(crate) deletion: Phase,
}

/// Rounds of runs; in the first all Runnables are created, in each other one all get new inputs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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

    fn add(&mut self, part: Self) {
        self.each.extend(part.each);
        self.concurrency = part.concurrency;
        self.most = self.most.max(part.most);
        self.left = part.left;
        add_spent(&mut self.cpu_seconds, &CpuSeconds::new(), part.cpu_seconds);
    }
}

/// The rounds by the controller.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Runs {
    /// Until all Runnables are Ready with the outputs of the round.
    pub(crate) rounds: Rounds,
    /// For all rounds.
    #[serde(flatten)]
    pub(crate) work: Work,
}

/// Measures it on a control plane of its own.
pub(crate) async fn measure(args: &Args, measured: &Measured) -> anyhow::Result<Reruns> {
    let count = args.runnables;
    say(&format!(
        "\nN = {count} Runnables, each run again and again"
    ));
    let write = async |world: &World, owners, in_flight| {
        let first = floor::round(world, owners, 0, in_flight).await?;
        Ok(first + floor::round(world, owners, 1, in_flight).await?)
    };
    let world = (RUNNABLE.name.to_owned(), count, count);
    Stage::within(args, measured, world, write, phases).await
}

/// One after the other, as they stand here.
async fn phases(stage: &mut Stage<'_>) -> anyhow::Result<Reruns> {
    let reruns = between_floors(stage).await?;
    stage.world.clear(FLOOR, stage.count).await?;
    report("runs", &reruns)?;
    Ok(Reruns {
        single: single(stage, reruns.again + 1).await?,
        steady: steady::measure(stage).await?,
        restart: steady::restart(stage).await?,
        deletion: steady::deletion(stage).await?,
        ..reruns
    })
}

/// As many parts as were asked for, and more until their ratio is known well enough.
async fn between_floors(stage: &mut Stage<'_>) -> anyhow::Result<Reruns> {
    let least = stage.world.args.reruns + 1;
    let mut reruns = Reruns {
        runnables: stage.count,
        kept: KEPT,
        ..Reruns::default()
    };
    let mut before = bare(stage, 0).await?;
    while reruns.runs.rounds.each.len() < least
        || !are_enough(&stage.world.args, &reruns.pairs, MOST_PARTS)
    {
        let from = reruns.runs.rounds.each.len();
        let part = by_controller(stage, from, &mut reruns.runs.work).await?;
        let after = bare(stage, from + PART).await?;
        reruns.pairs.push(Pair {
            floor: [before.seconds(), after.seconds()],
            controller: part.seconds(),
        });
        report("part", &part)?;
        reruns.runs.rounds.add(part);
        before = after.clone();
        reruns.floor.add(after);
    }
    reruns.again = reruns.runs.rounds.each.len() - 1;
    Ok(reruns)
}

/// A part of the bare client's rounds. Its objects stay, as those of the controller do.
async fn bare(stage: &mut Stage<'_>, from: usize) -> anyhow::Result<Rounds> {
    stage.world.let_control_plane_rest().await?;
    let (world, count, concurrency) = (&*stage.world, stage.count, stage.concurrency);
    let mut cpu_seconds = CpuSeconds::new();
    let each = world.measure_cpu(None, &mut cpu_seconds, async || {
        let round = async |number| floor::round(world, count, number, concurrency).await;
        part(from, round).await
    });
    let rounds = Rounds {
        each: each.await?,
        concurrency,
        cpu_seconds,
        ..Rounds::default()
    };
    report("floor", &rounds)?;
    Ok(rounds)
}

/// A part of the controller's rounds, and all requests until it rests.
async fn by_controller(
    stage: &mut Stage<'_>,
    from: usize,
    done: &mut Work,
) -> anyhow::Result<Rounds> {
    let mut cpu_seconds = CpuSeconds::new();
    let rounds = async |stage: &Stage<'_>| {
        stage.world.steps.forget_most();
        part(from, async |number| round(stage, number).await).await
    };
    let work = stage.work(Requests::sum, (done, &mut cpu_seconds), rounds);
    let each = work.await?;
    // At rest the bare client has kept one run of each of its Runnables.
    let (of_others, steps) = (KEPT * stage.count, &stage.world.steps);
    Ok(Rounds {
        each,
        concurrency: stage.concurrency,
        most: steps.most() - of_others,
        left: steps.total() - of_others,
        cpu_seconds,
    })
}

/// Seconds of each round of a part.
async fn part(
    from: usize,
    round: impl AsyncFn(usize) -> anyhow::Result<Duration>,
) -> anyhow::Result<Vec<f64>> {
    let mut each = Vec::new();
    for number in from..from + PART {
        each.push(round(number).await?.as_secs_f64());
    }
    Ok(each)
}

async fn round(stage: &Stage<'_>, number: usize) -> anyhow::Result<Duration> {
    let (world, all, in_flight) = (&*stage.world, stage.owners(), stage.concurrency);
    let (revision, start) = (round_revision(number), Instant::now());
    if number == 0 {
        let all = all_owners(world.family, &all, &revision);
        world.create_owners(in_flight, all).await?;
    } else {
        let patch = new_revision(world.family, &revision);
        world.patch_owners(in_flight, all, &patch).await?;
    }
    let what = "all Runnables are Ready with the outputs of the round";
    let is_ready = has_outputs_of(number);
    let is_ready = move |_: &Key, owner: &Seen| is_ready(owner);
    world.owners.reach(what, stage.count, is_ready).await?;
    Ok(start.elapsed())
}

/// Single runs of Runnables, each at the most once, which is their round `round`. The bare client's go afterwards.
async fn single(stage: &mut Stage<'_>, round: usize) -> anyhow::Result<Option<Single>> {
    let count = stage.world.args.source_changes.min(stage.count);
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
    report("single", single)?;
    stage.world.requests_until_rest(Requests::sum).await?;
    Ok(single)
}
