//! Changes: one owner's source, and one template of all owners.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::Serialize;
use serde_json::json;

use crate::api::TEMPLATES;
use crate::floor::{self, spread};
use crate::latency::{Latency, PAUSE};
use crate::layout::{FLOOR, Owner, step_of};
use crate::objects::{new_revision, template_name};
use crate::phases::Stage;
use crate::phases::cold::block_size;
use crate::seen::{OwnerSeen, Step};
use crate::tally::Requests;
use crate::world::LIMIT;

/// How long one change may take: a chain that stopped should not stop the bench for long.
const CHANGE_LIMIT: Duration = Duration::from_mins(1);
const NOTE: &str = "edited";

/// Single changes of sources, by the controller and by the bare client in turn.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceChange {
    /// From the change of the owner until the last object of its chain carries it.
    pub(crate) latency: Latency,
    /// The same by the bare client.
    pub(crate) bare: Latency,
    /// Requests of the controller for all changes.
    pub(crate) requests: Requests,
}

/// An edit of a template.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateEdit {
    /// From the edit until each owner's object carries it.
    pub(crate) seconds: f64,
    /// Requests of the controller, until it came to rest.
    pub(crate) requests: Requests,
}

/// Changes single sources, one after the other, on different owners, and in turn with the bare client on its own: what the
/// machine does to one of the two, it does to the other. Then the bare client's objects go.
///
/// # Errors
///
/// When a change does not come through.
pub(crate) async fn sources(stage: &mut Stage<'_>, changes: usize) -> anyhow::Result<SourceChange> {
    stage.world.forget_requests()?;
    let (owners, block) = (stage.owners(), block_size(stage.count));
    let last_block = owners.chunks(block).last().map_or(0, <[Owner]>::len);
    let bare_owners = crate::layout::owners(FLOOR, last_block);
    let (mut samples, mut bare) = (Vec::new(), Vec::new());
    let pairs = spread(&owners, changes).zip(spread(&bare_owners, changes));
    for (number, (owner, bare_owner)) in pairs.enumerate() {
        let revision = format!("change-{number}");
        tokio::time::sleep(PAUSE).await;
        let sample = source(stage, owner, revision.clone()).await;
        samples.push(sample.map_err(|error| stage.explain(error))?);
        tokio::time::sleep(PAUSE).await;
        bare.push(floor::chain(stage.world, bare_owner, stage.steps, revision).await?);
    }
    let requests = stage.requests().await?;
    stage.world.clear(FLOOR, block).await?;
    let of = |samples: &[Duration]| Latency::of(samples).context("no changes were asked for");
    Ok(SourceChange {
        latency: of(&samples)?,
        bare: of(&bare)?,
        requests,
    })
}

async fn source(stage: &Stage<'_>, owner: &Owner, revision: String) -> anyhow::Result<Duration> {
    let world = &*stage.world;
    let generation = world
        .owners
        .get(&owner.key)
        .context("an owner is missing")?
        .metadata
        .generation;
    let patch = new_revision(&revision);
    let carried = world
        .steps
        .when(&owner.step(stage.steps), move |step: &Step| {
            step.spec.revision == revision
        });
    let start = Instant::now();
    world
        .client
        .merge(&world.family.owners.at(&owner.key), &patch)
        .await?;
    let seen = tokio::time::timeout(CHANGE_LIMIT, carried)
        .await
        .context("a change does not come through")??;
    // The next change starts from rest, or it would wait for this one's status.
    let at_rest =
        move |owner: &OwnerSeen| owner.metadata.generation > generation && owner.is_ready();
    let ready = world.owners.when(&owner.key, at_rest);
    tokio::time::timeout(CHANGE_LIMIT, ready)
        .await
        .context("an owner is not Ready again")??;
    Ok(seen - start)
}

/// Edits the template of the last step, which concerns one object of each owner.
///
/// # Errors
///
/// When the edit does not reach all objects.
pub(crate) async fn template(stage: &mut Stage<'_>) -> anyhow::Result<TemplateEdit> {
    stage.world.forget_requests()?;
    let last = stage.steps;
    let edit = json!({"spec": {"template": {"spec": {"note": NOTE}}}});
    let start = Instant::now();
    stage
        .world
        .client
        .merge(&TEMPLATES.named(&template_name(last)), &edit)
        .await?;
    let carries_it = move |key: &crate::layout::Key, step: &Step| {
        step_of(&key.name) == Some(last) && step.spec.note == NOTE
    };
    let reached = stage
        .world
        .steps
        .reach(
            "each owner's object carries the edit",
            stage.count,
            LIMIT,
            carries_it,
        )
        .await;
    reached.map_err(|error| stage.explain(error))?;
    let seconds = start.elapsed().as_secs_f64();
    let requests = stage.requests().await?;
    Ok(TemplateEdit { seconds, requests })
}
