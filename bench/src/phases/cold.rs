//! Cold: all owners are created at once; how long until all are Ready, and at what cost?

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;

use crate::floor::spent;
use crate::objects::{CHAIN, chain_owner};
use crate::phases::Stage;
use crate::proc_stat::Usage;
use crate::tally::{Agent, ByAgent, Requests};
use crate::workers::each;
use crate::world::{LIMIT, World};

const LOOK: Duration = Duration::from_millis(20);

/// The cold phase.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cold {
    /// From the first create to the last Ready.
    pub(crate) seconds: f64,
    /// Owners reconciled, by the controller's own count.
    pub(crate) reconciles: u64,
    /// Requests of the controller, until it came to rest.
    pub(crate) requests: Requests,
    /// Requests of everybody meanwhile.
    pub(crate) by_agent: ByAgent,
    /// Statuses the bench wrote in place of controllers downstream.
    pub(crate) child_statuses: u64,
    /// CPU seconds by process, from the first create to the last Ready.
    pub(crate) cpu_seconds: BTreeMap<String, f64>,
    /// The machine's pace meanwhile, in milliseconds.
    pub(crate) pace_ms: f64,
    /// What the controller used since it started, at rest.
    pub(crate) usage: Usage,
}

/// Measures it.
///
/// # Errors
///
/// When not all owners become Ready.
pub(crate) async fn measure(stage: &mut Stage<'_>) -> anyhow::Result<Cold> {
    blueprint_ready(stage.world).await?;
    stage.world.let_control_plane_rest().await?;
    stage.world.requests_until_rest(Agent::Controller).await?;
    let pid = Some(stage.controller.pid());
    let reconciled = stage.controller.reconciles().await?;
    let (before, pace) = (stage.world.cpu_seconds(pid)?, stage.world.pace.read());
    let start = Instant::now();
    create_all(stage).await?;
    let ready = stage
        .world
        .owners
        .reach("all owners are Ready", stage.count, LIMIT, |_, owner| {
            owner.is_ready()
        });
    ready.await.map_err(|error| stage.explain(error))?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu_seconds = spent(&before, stage.world.cpu_seconds(pid)?);
    let pace_ms = stage.world.pace.since(pace);
    let requests = stage.world.requests_until_rest(Agent::Controller).await?;
    Ok(Cold {
        seconds,
        reconciles: stage.controller.reconciles().await? - reconciled,
        requests: requests.of(Agent::Controller),
        by_agent: requests.by_agent(),
        child_statuses: requests.of(Agent::Downstream).writes,
        cpu_seconds,
        pace_ms,
        usage: stage.controller.usage()?,
    })
}

async fn create_all(stage: &Stage<'_>) -> anyhow::Result<()> {
    let (client, family) = (stage.world.client.clone(), stage.world.family);
    each(stage.concurrency, stage.owners(), move |owner| {
        let client = client.clone();
        async move {
            let collection = family.owners.within(&owner.key.namespace);
            client
                .create(&collection, &chain_owner(family, &owner, "v1"))
                .await
                .map(drop)
        }
    })
    .await
}

/// The controller has taken up its work when it says so of the blueprint.
pub(crate) async fn blueprint_ready(world: &World) -> anyhow::Result<()> {
    let deadline = Instant::now() + LIMIT;
    let blueprint = world.family.blueprints.named(CHAIN);
    loop {
        let chain = world.client.read(&blueprint).await?;
        let conditions = chain["status"]["conditions"].as_array();
        let is_ready = |condition: &&serde_json::Value| {
            condition["type"] == "Ready" && condition["status"] == "True"
        };
        if conditions
            .into_iter()
            .flatten()
            .any(|condition| is_ready(&condition))
        {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "the {} does not become Ready: {}",
            world.family.blueprint_kind,
            chain["status"]
        );
        tokio::time::sleep(LOOK).await;
    }
}
