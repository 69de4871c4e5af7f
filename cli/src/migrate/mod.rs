//! `carto migrate`: from the Go controller to carto, and back.
//!
//! ```text
//!  plan      what is there (install) ─┐
//!            owners, templates ───────┼─▶ rehearsal: the engine walks, requests are dry runs ─▶ Plan
//!  apply     the old one down ─▶ its Pods gone ─▶ its webhooks away ─▶ ours up
//!  rollback  the same the other way, by the file that apply wrote
//! ```
//!
//! What a controller would do is decided by the same engine and the same functions as in the controllers (`realizer`,
//! `submission`); only that what they send is sent as a dry run here.

mod difference;
mod findings;
mod install;
mod owners;
mod patience;
mod plan;
mod rehearsal;
mod state;
mod takeover;
mod world;

use std::io::Write as _;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;

use crate::args::{
    ApplyArgs, Connection, MigrateCommand, Output, PlanArgs, RollbackArgs, WhichArgs,
};
use crate::cluster::Cluster;
use install::{Choice, Installed};
use owners::Catalogue;
use patience::Patience;
use state::Record;
use takeover::Way;
use world::World;

pub use findings::{Change, Findings, StartedRun, Told};
pub use install::{Controller, Definition, Package, Webhooks};
pub use plan::{Count, Plan, Unwatched};

/// As long as an API server takes for a request at most.
const ANSWER: Duration = Duration::from_mins(1);

/// Does what the command line says. Returns whether nothing stands in the way.
///
/// # Errors
/// The cluster cannot be read, or a step of the way could not be done; the text says what to do.
pub async fn migrate(connection: &Connection, command: MigrateCommand) -> anyhow::Result<bool> {
    let mut cluster = Cluster::connect(connection).await?;
    let limit = limit(&command);
    let (patience, mut over) = Patience::new(limit);
    cluster.client = patience.client(cluster.config.clone())?;
    let work = async {
        match command {
            MigrateCommand::Plan(args) => show(&cluster, &patience, &args).await,
            MigrateCommand::Apply(args) => apply(&cluster, &patience, &args).await,
            MigrateCommand::Rollback(args) => rollback(&cluster, &args).await,
        }
    };
    tokio::select! {
        done = work => done,
        Some(asked) = over.recv() => bail!(
            "the API server at {} has not answered {asked} within {} s\n  next: see that it is well (kubectl get --raw=/readyz), and run this again: what was begun is ended then",
            cluster.address.trim_end_matches('/'),
            limit.as_secs()
        ),
    }
}

/// How long each answer of the API server may take.
fn limit(command: &MigrateCommand) -> Duration {
    match command {
        MigrateCommand::Plan(args) => args.timeout,
        MigrateCommand::Apply(args) => args.way.timeout.min(ANSWER),
        MigrateCommand::Rollback(args) => args.way.timeout.min(ANSWER),
    }
}

async fn show(cluster: &Cluster, patience: &Patience, args: &PlanArgs) -> anyhow::Result<bool> {
    let plan = plan(cluster, patience, &choice(&args.which)).await?;
    let text = match args.output {
        Output::Tree => plan.render().join("\n"),
        Output::Json => serde_json::to_string_pretty(&plan)?,
    };
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(plan.is_clear())
}

/// What a takeover would come to. Nothing is written.
async fn plan(cluster: &Cluster, patience: &Patience, choice: &Choice) -> anyhow::Result<Plan> {
    let mut world = World::new(cluster, patience);
    let installed = Installed::read(&cluster.client, choice).await?;
    let catalogue = Catalogue::read(&world).await?;
    let rehearsed = catalogue.rehearse(&mut world, now()).await;
    Ok(Plan::of(&mut world, installed, &catalogue, rehearsed).await)
}

async fn apply(cluster: &Cluster, patience: &Patience, args: &ApplyArgs) -> anyhow::Result<bool> {
    let choice = choice(&args.way.which);
    let record = Record::open(&args.way.state, &cluster.client).await?;
    // Half a takeover is worse than a whole one: what was begun is ended.
    if !record.is_begun {
        let plan = plan(cluster, patience, &choice).await?;
        if !plan.todo.is_empty() {
            bail!(
                "nothing was changed; to do before:\n  {}\n  next: carto migrate plan",
                plan.todo.join("\n  ")
            );
        }
        if !plan.blockers.is_empty() && !args.accept_changes {
            bail!(
                "nothing was changed: {}\n  next: carto migrate plan shows them; if that is what you want, add --accept-changes",
                plan.blockers.join("; ")
            );
        }
    }
    let way = Way {
        client: &cluster.client,
        choice: &choice,
        limit: args.way.timeout,
        record,
    };
    way.forth(args.replicas).await?;
    Ok(true)
}

async fn rollback(cluster: &Cluster, args: &RollbackArgs) -> anyhow::Result<bool> {
    let choice = choice(&args.way.which);
    let way = Way {
        client: &cluster.client,
        choice: &choice,
        limit: args.way.timeout,
        record: Record::open(&args.way.state, &cluster.client).await?,
    };
    way.back().await?;
    Ok(true)
}

fn choice(args: &WhichArgs) -> Choice {
    Choice {
        old: args.old.clone(),
        ours: args.ours.clone(),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command's only reader of the clock"
)]
fn now() -> Timestamp {
    Timestamp::now()
}
