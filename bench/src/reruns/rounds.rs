//! The rounds by the controller: all Runnables are created, then all get new inputs, again and again.

use std::time::Instant;

use crate::api::RUNNABLES;
use crate::floor::spent;
use crate::layout::Owner;
use crate::phases::Stage;
use crate::reruns::objects::{new_input, revision, runnable};
use crate::reruns::{Rounds, Runs};
use crate::tally::Agent;
use crate::workers::each;
use crate::world::LIMIT;

/// Measures the first round and so many more. Nothing rests between them, so what is late shows in the next.
///
/// # Errors
///
/// When not all Runnables become Ready with the outputs of a round.
pub(crate) async fn measure(stage: &mut Stage<'_>, reruns: usize) -> anyhow::Result<Runs> {
    stage.world.let_control_plane_rest().await?;
    stage.world.requests_until_rest(Agent::Controller).await?;
    stage.world.steps.forget_most();
    let pid = Some(stage.controller.pid());
    let reconciled = stage.controller.reconciles().await?;
    let before = stage.world.cpu_seconds(pid)?;
    let mut rounds = Vec::new();
    for number in 0..=reruns {
        let start = Instant::now();
        round(stage, number).await?;
        rounds.push(start.elapsed().as_secs_f64());
    }
    let cpu_seconds = spent(&before, stage.world.cpu_seconds(pid)?);
    let requests = stage.world.requests_until_rest(Agent::Controller).await?;
    let rounds = Rounds {
        each: rounds,
        concurrency: stage.concurrency,
        most: stage.world.steps.most(),
        left: stage.world.steps.count().total,
        cpu_seconds,
    };
    Ok(Runs {
        rounds,
        reconciles: stage.controller.reconciles().await? - reconciled,
        requests: requests.of(Agent::Controller),
        by_agent: requests.by_agent(),
        usage: stage.controller.usage()?,
    })
}

async fn round(stage: &Stage<'_>, number: usize) -> anyhow::Result<()> {
    let client = stage.world.client.clone();
    each(stage.concurrency, stage.owners(), move |owner: Owner| {
        let client = client.clone();
        async move {
            let inputs = revision(number);
            if number > 0 {
                let path = RUNNABLES.at(&owner.key);
                return client.merge(&path, &new_input(&inputs)).await;
            }
            let collection = RUNNABLES.within(&owner.key.namespace);
            let created = client.create(&collection, &runnable(&owner, &inputs)).await;
            created.map(drop)
        }
    })
    .await?;
    let inputs = revision(number);
    let ready = stage.world.owners.reach(
        "all Runnables are Ready with the outputs of the round",
        stage.count,
        LIMIT,
        move |_, owner| owner.is_ready() && owner.status.outputs.revision == inputs,
    );
    ready.await.map_err(|error| stage.explain(error))
}
