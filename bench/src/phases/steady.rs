//! What every owner goes through: reconciles that change nothing, and a restart, which should both ask nothing and write
//! nothing; and its deletion.

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::json;
use test_support::Usage;

use crate::layout::{TEAM, namespaces, namespaces_of};
use crate::phases::{Phase, Stage};
use crate::report::report;
use crate::tally::Requests;
use crate::world::LIMIT;

/// Touches that come while an owner is still queued wake it once; so there may be more rounds than the number says.
const SPARE_ROUNDS: u64 = 3;

/// The steady phase.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Steady {
    /// Reconciles that happened, by the controller's own count.
    pub(crate) reconciles: u64,
    /// Annotations changed by the bench to force them.
    pub(crate) touches: u64,
    /// Requests of the controller.
    pub(crate) requests: Requests,
    /// CPU seconds of the controller.
    pub(crate) cpu_seconds: f64,
    /// The machine's pace meanwhile, in milliseconds.
    pub(crate) pace_ms: f64,
}

/// The restart.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Restart {
    /// What the killed process used since it started, in all phases before this one.
    pub(crate) killed: Usage,
    /// Of the new process, until it has reconciled as many owners as there are.
    #[serde(flatten)]
    pub(crate) phase: Phase,
}

/// Forces reconciles by changing annotations of the owners.
pub(crate) async fn measure(stage: &mut Stage<'_>) -> anyhow::Result<Steady> {
    let wanted = stage.world.args.reconciles;
    stage.world.forget_requests()?;
    let before = stage.controller.reconciles().await?;
    let used = stage.controller.process.usage()?.cpu_seconds;
    let pace = stage.world.pace.read();
    let owners = u64::try_from(stage.count)?;
    let most_rounds = SPARE_ROUNDS * wanted.div_ceil(owners.max(1)) + SPARE_ROUNDS;
    let mut rounds = 0;
    while stage.controller.reconciles().await? - before < wanted {
        ensure!(
            rounds < most_rounds,
            "{rounds} rounds of touches did not force {wanted} reconciles"
        );
        let touch =
            json!({"metadata": {"annotations": {"bench.carto.run/touch": rounds.to_string()}}});
        let all = stage.owners();
        let touched = stage.world.patch_owners(stage.concurrency, all, &touch);
        touched.await?;
        rounds += 1;
    }
    let requests = stage.requests().await?;
    let steady = Steady {
        reconciles: stage.controller.reconciles().await? - before,
        touches: rounds * owners,
        requests,
        cpu_seconds: stage.controller.process.usage()?.cpu_seconds - used,
        pace_ms: stage.world.pace.since(pace),
    };
    report("steady", &steady)?;
    Ok(steady)
}

/// Kills the controller with SIGKILL and starts it again.
pub(crate) async fn restart(stage: &mut Stage<'_>) -> anyhow::Result<Restart> {
    let killed = stage.controller.process.usage()?;
    stage.controller.process.kill();
    stage.world.requests_until_rest(Requests::sum).await?;
    let phase = stage.phase(async |stage| {
        stage.start_again().await?;
        let owners = u64::try_from(stage.count)?;
        stage.controller.reconciled(owners, LIMIT).await
    });
    let restart = Restart {
        killed,
        phase: phase.await?,
    };
    report("restart", &restart)?;
    Ok(restart)
}

/// Deletes all owners, whose objects go by garbage collection.
pub(crate) async fn deletion(stage: &mut Stage<'_>) -> anyhow::Result<Phase> {
    let deletion = stage.phase(async |stage| {
        let (kind, all) = (stage.world.family.owners, namespaces_of(stage.count));
        let all = namespaces(TEAM, all);
        let deleted = stage.world.delete_all(stage.concurrency, kind, all);
        deleted.await?;
        let steps = &stage.world.steps;
        steps
            .emptied("all stamped objects are gone", |_| true)
            .await
    });
    let deletion = deletion.await?;
    report("deletion", &deletion)?;
    Ok(deletion)
}
