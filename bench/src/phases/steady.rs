//! Steady: reconciles that change nothing, and a restart; both should ask nothing and write nothing.

use std::time::Instant;

use anyhow::ensure;
use serde::Serialize;
use serde_json::json;

use crate::phases::Stage;
use crate::proc_stat::Usage;
use crate::tally::{Agent, Requests};
use crate::workers::each;
use crate::world::LIMIT;

/// Touches that come while an owner is still queued wake it once; so there may be more rounds than the number says.
const SPARE_ROUNDS: u64 = 3;

/// The steady phase.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
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
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restart {
    /// What the killed process used since it started, in all phases before this one.
    pub(crate) killed: Usage,
    /// From the start of the new process until it has reconciled as many owners as there are.
    pub(crate) seconds: f64,
    /// Requests of the new process until it came to rest.
    pub(crate) requests: Requests,
    /// What the new process used.
    pub(crate) usage: Usage,
}

/// Forces reconciles by changing annotations of the owners.
///
/// # Errors
///
/// When the reconciles do not happen.
pub(crate) async fn measure(stage: &mut Stage<'_>, wanted: u64) -> anyhow::Result<Steady> {
    stage.world.forget_requests()?;
    let (before, used) = (
        stage.controller.reconciles().await?,
        stage.controller.usage()?.cpu_seconds,
    );
    let pace = stage.world.pace.read();
    let owners = u64::try_from(stage.count)?;
    let most_rounds = SPARE_ROUNDS * wanted.div_ceil(owners.max(1)) + SPARE_ROUNDS;
    let mut rounds = 0;
    while stage.controller.reconciles().await? - before < wanted {
        ensure!(
            rounds < most_rounds,
            "{rounds} rounds of touches did not force {wanted} reconciles"
        );
        touch_all(stage, rounds).await?;
        rounds += 1;
    }
    let requests = stage.requests().await?;
    Ok(Steady {
        reconciles: stage.controller.reconciles().await? - before,
        touches: rounds * owners,
        requests,
        cpu_seconds: stage.controller.usage()?.cpu_seconds - used,
        pace_ms: stage.world.pace.since(pace),
    })
}

async fn touch_all(stage: &Stage<'_>, round: u64) -> anyhow::Result<()> {
    let (client, family) = (stage.world.client.clone(), stage.world.family);
    let touch = json!({"metadata": {"annotations": {"bench.carto.run/touch": round.to_string()}}});
    each(stage.concurrency, stage.owners(), move |owner| {
        let (client, touch) = (client.clone(), touch.clone());
        async move { client.merge(&family.owners.at(&owner.key), &touch).await }
    })
    .await
}

/// Kills the controller with SIGKILL and starts it again.
///
/// # Errors
///
/// When it does not reconcile all owners again.
pub(crate) async fn restart(mut stage: Stage<'_>) -> anyhow::Result<(Stage<'_>, Restart)> {
    let killed = stage.controller.usage()?;
    stage.controller.kill();
    stage.world.requests_until_rest(Agent::Controller).await?;
    let start = Instant::now();
    stage.controller = stage.program.start().await?;
    let settled = stage
        .controller
        .reconciled(u64::try_from(stage.count)?, LIMIT)
        .await;
    settled.map_err(|error| stage.explain(error))?;
    let seconds = start.elapsed().as_secs_f64();
    let requests = stage.requests().await?;
    let restart = Restart {
        killed,
        seconds,
        requests,
        usage: stage.controller.usage()?,
    };
    Ok((stage, restart))
}
