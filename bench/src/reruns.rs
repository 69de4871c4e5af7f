//! Runnables: each is run, and run again whenever its inputs change; retention takes the runs before.
//!
//! ```text
//!  measure ─► reruns/floor.rs       the bare client
//!        ├──► reruns/rounds.rs      the same rounds by the controller
//!        ├──► reruns/single.rs      one Runnable at a time, by either
//!        └──► phases/               steady, restart, deletion: as for any owner
//! ```

mod floor;
mod objects;
mod rounds;
mod single;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::args::Args;
use crate::family::RUNNABLE;
use crate::floor::best_concurrency;
use crate::latency::Latency;
use crate::layout::{FLOOR, TEAM};
use crate::phases::Stage;
use crate::phases::end::{self, Deletion};
use crate::phases::steady::{self, Restart, Steady};
use crate::proc_stat::Usage;
use crate::report;
use crate::run::{program, say};
use crate::tally::{ByAgent, Requests};
use crate::world::World;

use objects::{KEPT, run_template};

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
    /// The bare client, before the controller.
    pub(crate) floor: Rounds,
    /// Single runs by the bare client, one after the other.
    pub(crate) single: Option<Latency>,
    /// The bare client, after the controller.
    pub(crate) floor_again: Rounds,
    /// The controller; absent with `--floor-only`.
    pub(crate) measured: Option<Measured>,
}

impl Reruns {
    /// All runs there were.
    pub(crate) fn runs(&self) -> usize {
        self.runnables * (self.again + 1)
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

/// What was measured of the controller.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    /// All rounds.
    pub(crate) runs: Runs,
    /// Single runs, one after the other: from the new input until the Runnable is seen Ready with its outputs.
    pub(crate) single: Option<Latency>,
    /// Reconciles that change nothing.
    pub(crate) steady: Steady,
    /// Killed and started again.
    pub(crate) restart: Restart,
    /// All Runnables deleted.
    pub(crate) deletion: Deletion,
}

/// Measures it on a control plane of its own.
///
/// # Errors
///
/// When the control plane or the controller fails, or a phase does not come to its end.
pub(crate) async fn measure(args: &Args, binary: Option<&Path>) -> anyhow::Result<Reruns> {
    let (count, again) = (args.runnables, args.reruns);
    say(&format!(
        "\nN = {count} Runnables, each run again {again} times"
    ));
    let mut world = World::start(&RUNNABLE, &args.api_server).await?;
    let measured = phases(args, &mut world, binary).await;
    if let Some(folder) = &args.logs {
        world.keep_audit_log(&folder.join("audit-runnable.log"))?;
    }
    measured
}

async fn phases(args: &Args, world: &mut World, binary: Option<&Path>) -> anyhow::Result<Reruns> {
    let (count, again) = (args.runnables, args.reruns);
    world.furnish(FLOOR, count).await?;
    let write = async |owners, in_flight| floor::rounds(world, owners, 1, in_flight).await;
    let concurrency = best_concurrency(args, world, count, write).await?;
    world.let_control_plane_rest().await?;
    let floor = floor::measure(world, count, again, concurrency).await?;
    say(&format!("floor          {}", report::rounds(&floor)));
    let single = single::by_bare_client(world, count, args.source_changes, again + 1).await?;
    if let Some(single) = &single {
        say(&format!("floor, single  {}", report::latency(single)));
    }
    world.clear(FLOOR, count).await?;
    let mut measured = Reruns {
        runnables: count,
        again,
        kept: KEPT,
        floor_again: floor.clone(),
        floor,
        single,
        measured: None,
    };
    if let Some(binary) = binary {
        measured.measured = Some(controller(args, world, binary, &measured).await?);
    }
    world.let_control_plane_rest().await?;
    measured.floor_again = floor::measure(world, count, again, concurrency).await?;
    say(&format!(
        "floor again    {}",
        report::rounds(&measured.floor_again)
    ));
    Ok(measured)
}

async fn controller(
    args: &Args,
    world: &mut World,
    binary: &Path,
    reruns: &Reruns,
) -> anyhow::Result<Measured> {
    world.furnish(TEAM, reruns.runnables).await?;
    let templates = RUNNABLE.blueprints.everywhere();
    world.client.create(&templates, &run_template()).await?;
    let program = program(args, world, binary, RUNNABLE.name)?;
    let controller = program.start().await?;
    let mut stage = Stage {
        world,
        program: &program,
        controller,
        count: reruns.runnables,
        steps: 1,
        concurrency: reruns.floor.concurrency,
    };
    let runs = rounds::measure(&mut stage, reruns.again).await?;
    say(&format!("runs           {}", report::runs(&runs, reruns)));
    let single = single::by_controller(&stage, args.source_changes, reruns.again + 1).await?;
    say(&format!(
        "single         {}",
        report::single(single.as_ref(), reruns.single.as_ref())
    ));
    let steady = steady::measure(&mut stage, args.reconciles).await?;
    say(&format!("steady         {}", report::steady(&steady)));
    let (mut stage, restart) = steady::restart(stage).await?;
    say(&format!("restart        {}", report::restart(&restart)));
    let deletion = end::measure(&mut stage).await?;
    say(&format!("deletion       {}", report::deletion(&deletion)));
    stage.controller.kill();
    Ok(Measured {
        runs,
        single,
        steady,
        restart,
        deletion,
    })
}
