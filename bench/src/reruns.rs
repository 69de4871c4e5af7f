//! Runnables: each is run, and run again whenever its inputs change; retention takes the runs before.
//!
//! ```text
//!  measure ─► between_floors ─► reruns/floor.rs     the bare client, before and after
//!        │                └───► reruns/rounds.rs    the same rounds by the controller
//!        │                └───► reruns/single.rs    one Runnable at a time, by either in turn
//!        └──► phases/                               steady, restart, deletion: as for any owner
//! ```

mod floor;
mod objects;
mod rounds;
mod single;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use serde::Serialize;

use crate::args::Args;
use crate::family::RUNNABLE;
use crate::floor::best_concurrency;
use crate::layout::{FLOOR, TEAM, namespaces_of};
use crate::pairs::Pair;
use crate::phases::Stage;
use crate::phases::end::{self, Deletion};
use crate::phases::steady::{self, Restart, Steady};
use crate::proc_stat::Usage;
use crate::report;
use crate::run::{program, say, tries};
use crate::tally::{Agent, ByAgent, Requests};
use crate::world::World;

use objects::{KEPT, run_template};
pub(crate) use single::Single;

/// What was measured of Runnables.
#[derive(Debug, Clone, Serialize)]
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
        pair_of(&self.floor, &self.runs)
    }
}

fn pair_of(floor: &[Rounds; 2], runs: &Runs) -> Pair {
    Pair {
        floor: floor.each_ref().map(Rounds::seconds),
        controller: runs.rounds.seconds(),
    }
}

/// Rounds of runs; in the first all Runnables are created, in each other one all get new inputs.
#[derive(Debug, Clone, Serialize)]
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
    pub(crate) cpu_seconds: BTreeMap<String, f64>,
}

impl Rounds {
    /// Of all rounds.
    pub(crate) fn seconds(&self) -> f64 {
        self.each.iter().sum()
    }
}

/// The rounds by the controller.
#[derive(Debug, Clone, Serialize)]
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

/// The controller between two floors.
struct Between {
    floor: [Rounds; 2],
    runs: Runs,
    single: Option<Single>,
}

/// Measures it on a control plane of its own; on another one again when the floor drifted.
///
/// # Errors
///
/// When the control plane or the controller fails, or a phase does not come to its end.
pub(crate) async fn measure(args: &Args, binary: &Path) -> anyhow::Result<Reruns> {
    let (count, again) = (args.runnables, args.reruns);
    for left in (0..tries(args)).rev() {
        say(&format!(
            "\nN = {count} Runnables, each run again {again} times"
        ));
        let mut world = World::start(&RUNNABLE, &args.api_server).await?;
        let measured = phases(args, &mut world, binary, left == 0).await;
        if let Some(folder) = &args.logs {
            world.keep_audit_log(&folder.join("audit-runnable.log"))?;
        }
        if let Some(reruns) = measured? {
            return Ok(reruns);
        }
    }
    bail!("nothing was measured")
}

/// Nothing if the floor drifted, unless this is the last try.
async fn phases(
    args: &Args,
    world: &mut World,
    binary: &Path,
    is_last: bool,
) -> anyhow::Result<Option<Reruns>> {
    let (count, again) = (args.runnables, args.reruns);
    world.furnish(FLOOR, namespaces_of(count)).await?;
    let write = async |owners, in_flight| floor::rounds(world, owners, 1, in_flight).await;
    let concurrency = best_concurrency(args, world, count, write).await?;
    let before = bare(args, world, concurrency).await?;
    world.furnish(TEAM, namespaces_of(count)).await?;
    let templates = RUNNABLE.blueprints.everywhere();
    world.client.create(&templates, &run_template()).await?;
    let program = program(args, world, binary, RUNNABLE.name).await?;
    let controller = program.start().await?;
    let mut stage = Stage {
        world,
        program: &program,
        controller,
        count,
        steps: 1,
        concurrency,
    };
    let between = between_floors(args, &mut stage, before).await?;
    let pair = pair_of(&between.floor, &between.runs);
    if !pair.is_steady() && !is_last {
        return Ok(None);
    }
    let steady = steady::measure(&mut stage, args.reconciles).await?;
    say(&format!("steady         {}", report::steady(&steady)));
    let (mut stage, restart) = steady::restart(stage).await?;
    say(&format!("restart        {}", report::restart(&restart)));
    let deletion = end::measure(&mut stage).await?;
    say(&format!("deletion       {}", report::deletion(&deletion)));
    stage.controller.kill();
    let Between {
        floor,
        runs,
        single,
    } = between;
    Ok(Some(Reruns {
        runnables: count,
        again,
        kept: KEPT,
        floor,
        runs,
        single,
        steady,
        restart,
        deletion,
    }))
}

/// The floor comes right after the rounds; what is measured in turn needs none.
async fn between_floors(
    args: &Args,
    stage: &mut Stage<'_>,
    before: Rounds,
) -> anyhow::Result<Between> {
    let (again, all) = (args.reruns, args.runnables * (args.reruns + 1));
    let runs = rounds::measure(stage, again).await?;
    let after = bare(args, stage.world, stage.concurrency).await?;
    let floor = [before, after];
    say(&format!(
        "runs           {}",
        report::runs(&runs, &floor[0], pair_of(&floor, &runs), all)
    ));
    let single = single::measure(stage, args.source_changes, again + 1).await?;
    stage.world.requests_until_rest(Agent::Controller).await?;
    say(&format!(
        "single         {}",
        report::single(single.as_ref())
    ));
    Ok(Between {
        floor,
        runs,
        single,
    })
}

/// The bare client's rounds; its objects go afterwards.
async fn bare(args: &Args, world: &mut World, concurrency: usize) -> anyhow::Result<Rounds> {
    let (count, again) = (args.runnables, args.reruns);
    world.let_control_plane_rest().await?;
    let rounds = floor::measure(world, count, again, concurrency).await?;
    say(&format!("floor          {}", report::rounds(&rounds)));
    world.clear(FLOOR, count).await?;
    Ok(rounds)
}
