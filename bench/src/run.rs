//! One run: the floor, the controller, and the floor again, on one control plane.

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::controller::Program;
use crate::family::Family;
use crate::figures::{Measured, Run};
use crate::floor;
use crate::layout::{FLOOR, TEAM};
use crate::phases::{Stage, change, cold, end, steady};
use crate::report;
use crate::world::World;

/// Measures everything for one number of owners. `binary` is the controller's; without it, only the floor is measured.
///
/// # Errors
///
/// When the control plane or the controller fails, or a phase does not come to its end.
pub(crate) async fn run(
    args: &Args,
    family: &'static Family,
    count: usize,
    binary: Option<&Path>,
) -> anyhow::Result<Run> {
    say(&format!(
        "\nN = {count} {}s × {} steps",
        family.kind, args.steps
    ));
    let mut world = World::start(family, &args.api_server).await?;
    let run = phases(args, &mut world, count, binary).await;
    if let Some(folder) = &args.logs {
        world.keep_audit_log(&folder.join(format!("audit-{}-{count}.log", family.name)))?;
    }
    run
}

async fn phases(
    args: &Args,
    world: &mut World,
    count: usize,
    binary: Option<&Path>,
) -> anyhow::Result<Run> {
    world.furnish(FLOOR, count).await?;
    let write =
        async |owners, in_flight| floor::write_all(world, owners, args.steps, in_flight).await;
    let concurrency = floor::best_concurrency(args, world, count, write).await?;
    world.let_control_plane_rest().await?;
    let floor = floor::measure(world, count, args.steps, concurrency).await?;
    say(&format!("floor          {}", report::floor(&floor)));
    let chains = floor::chains(world, count, args.steps, args.source_changes).await?;
    if let Some(chains) = &chains {
        say(&format!("floor, changes {}", report::latency(chains)));
    }
    world.clear(FLOOR, count).await?;
    let mut run = Run {
        kind: world.family.kind,
        owners: count,
        steps: args.steps,
        floor_again: floor.clone(),
        floor,
        chains,
        measured: None,
    };
    if let Some(binary) = binary {
        run.measured = Some(controller(args, world, binary, &run).await?);
    }
    world.let_control_plane_rest().await?;
    run.floor_again = floor::measure(world, count, args.steps, concurrency).await?;
    say(&format!("floor again    {}", report::drift(&run)));
    Ok(run)
}

async fn controller(
    args: &Args,
    world: &mut World,
    binary: &Path,
    run: &Run,
) -> anyhow::Result<Measured> {
    world.furnish(TEAM, run.owners).await?;
    world.write_blueprint(args.steps).await?;
    let name = format!("{}-{}", world.family.name, run.owners);
    let program = program(args, world, binary, &name)?;
    let controller = program.start().await?;
    let (count, steps, concurrency) = (run.owners, args.steps, run.floor.concurrency);
    let mut stage = Stage {
        world,
        program: &program,
        controller,
        count,
        steps,
        concurrency,
    };
    let cold = cold::measure(&mut stage).await?;
    say(&format!(
        "cold           {}",
        report::cold(&cold, &run.floor, count)
    ));
    let steady = steady::measure(&mut stage, args.reconciles).await?;
    say(&format!("steady         {}", report::steady(&steady)));
    let source_change = change::sources(&mut stage, args.source_changes).await?;
    say(&format!(
        "source change  {}",
        report::source_change(&source_change, run.chains.as_ref())
    ));
    let template_edit = change::template(&mut stage).await?;
    say(&format!(
        "template edit  {}",
        report::template_edit(&template_edit)
    ));
    let (mut stage, restart) = steady::restart(stage).await?;
    say(&format!("restart        {}", report::restart(&restart)));
    let deletion = end::measure(&mut stage).await?;
    say(&format!("deletion       {}", report::deletion(&deletion)));
    stage.controller.kill();
    Ok(Measured {
        cold,
        steady,
        source_change,
        template_edit,
        restart,
        deletion,
    })
}

/// How the controller is started; what it prints goes to a file with this name in it.
///
/// # Errors
///
/// When the folder for that file cannot be made.
pub(crate) fn program(
    args: &Args,
    world: &World,
    binary: &Path,
    name: &str,
) -> anyhow::Result<Program> {
    Ok(Program {
        family: world.family,
        path: binary.to_owned(),
        args: args.more.clone(),
        metrics_port: args.metrics_port,
        kubeconfig: world.plane().kubeconfig_path().to_owned(),
        log: log(args, world, name)?,
    })
}

fn log(args: &Args, world: &World, name: &str) -> anyhow::Result<PathBuf> {
    let folder = args
        .logs
        .clone()
        .unwrap_or_else(|| world.home().path().to_owned());
    std::fs::create_dir_all(&folder)?;
    Ok(folder.join(format!("controller-{name}.log")))
}

/// Says something on the terminal.
#[expect(clippy::print_stdout, reason = "the bench speaks to a terminal")]
pub(crate) fn say(text: &str) {
    println!("{}", text.trim_end_matches('\n'));
}
