//! One run: the controller and, in turn with it, the bare client, on one control plane.

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::controller::Program;
use crate::family::Family;
use crate::figures::Run;
use crate::floor::{self, By};
use crate::layout::{FLOOR, TEAM, namespaces_of};
use crate::pairs::TRIES;
use crate::phases::{Stage, change, cold, end, steady};
use crate::report;
use crate::world::World;

/// Measures everything for one number of owners. `binary` is the controller's.
///
/// # Errors
///
/// When the control plane or the controller fails, or a phase does not come to its end.
pub(crate) async fn run(
    args: &Args,
    family: &'static Family,
    count: usize,
    binary: &Path,
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
    binary: &Path,
) -> anyhow::Result<Run> {
    let steps = args.steps;
    let block = cold::block_size(count);
    world.furnish(FLOOR, namespaces_of(block)).await?;
    let write = async |owners, in_flight| {
        floor::write_all(world, owners, steps, in_flight, By::Apply).await
    };
    let concurrency = floor::best_concurrency(args, world, count, write).await?;
    world.furnish(TEAM, namespaces_of(count)).await?;
    world.write_blueprint(steps).await?;
    let name = format!("{}-{count}", world.family.name);
    let program = program(args, world, binary, &name).await?;
    let controller = program.start().await?;
    let kind = world.family.kind;
    let mut stage = Stage {
        world,
        program: &program,
        controller,
        count,
        steps,
        concurrency,
    };
    let cold = cold::measure(&mut stage, tries(args)).await?;
    say(&format!("cold           {}", report::cold(&cold, count)));
    let steady = steady::measure(&mut stage, args.reconciles).await?;
    say(&format!("steady         {}", report::steady(&steady)));
    let source_change = change::sources(&mut stage, args.source_changes).await?;
    say(&format!(
        "source change  {}",
        report::source_change(&source_change)
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
    Ok(Run {
        kind,
        owners: count,
        steps,
        concurrency,
        cold,
        steady,
        source_change,
        template_edit,
        restart,
        deletion,
    })
}

/// How often what drifted is measured.
pub(crate) fn tries(args: &Args) -> usize {
    if args.counts_only { 1 } else { TRIES }
}

/// Installs the controller and says how it is started; what it prints goes to a file with this name in it.
///
/// # Errors
///
/// When the folder for that file cannot be made, or the controller cannot be given its rights.
pub(crate) async fn program(
    args: &Args,
    world: &World,
    binary: &Path,
    name: &str,
) -> anyhow::Result<Program> {
    let kubeconfig = world.install().await?;
    Ok(Program {
        family: world.family,
        path: binary.to_owned(),
        args: args.more.clone(),
        metrics_port: args.metrics_port,
        kubeconfig,
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
