//! Changes: single owners, one after the other, and one template of all owners.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::api::TEMPLATES;
use crate::floor;
use crate::latency::Latency;
use crate::layout::{FLOOR, Key, owners, spread, step_of};
use crate::objects::{new_revision, template_name};
use crate::phases::blocks::block_size;
use crate::phases::{Phase, Stage};
use crate::report::report;
use crate::seen::Seen;
use crate::tally::Requests;

/// Between single changes. Back to back, fifty of them are over in a second, which a garbage collection of the API server
/// covers or does not; and each would meet what the last one left to do.
const PAUSE: Duration = Duration::from_millis(100);
const NOTE: &str = "edited";

/// Single changes, one owner after the other.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Single {
    /// By the controller, from the change of the owner until the last object of its chain carries it, or until the Runnable is
    /// Ready with its outputs.
    pub(crate) latency: Latency,
    /// By the bare client, in turn with it.
    pub(crate) bare: Latency,
}

/// Single changes of sources.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SourceChange {
    #[serde(flatten)]
    pub(crate) single: Single,
    /// Requests of the controller for all changes.
    pub(crate) requests: Requests,
}

/// So many changes on different owners, by the controller and by the bare client in turn: what the machine does to one of the
/// two, it does to the other. Nothing if none are asked for.
pub(crate) async fn in_turn(
    changes: usize,
    (owners, bare_owners): (Vec<Key>, Vec<Key>),
    by_controller: impl AsyncFn(&Key, usize) -> anyhow::Result<Duration>,
    by_bare_client: impl AsyncFn(&Key, usize) -> anyhow::Result<Duration>,
) -> anyhow::Result<Option<Single>> {
    let (mut samples, mut bare) = (Vec::new(), Vec::new());
    let pairs = spread(&owners, changes).zip(spread(&bare_owners, changes));
    for (number, (owner, bare_owner)) in pairs.enumerate() {
        tokio::time::sleep(PAUSE).await;
        samples.push(by_controller(owner, number).await?);
        tokio::time::sleep(PAUSE).await;
        bare.push(by_bare_client(bare_owner, number).await?);
    }
    let of_both = Latency::of(&samples).zip(Latency::of(&bare));
    Ok(of_both.map(|(latency, bare)| Single { latency, bare }))
}

/// Changes single sources. Then the bare client's objects go.
pub(crate) async fn sources(stage: &mut Stage<'_>) -> anyhow::Result<SourceChange> {
    stage.world.forget_requests()?;
    let (all, block) = (stage.owners(), block_size(stage.count));
    let last_block = all.chunks(block).last().map_or(0, <[Key]>::len);
    let revision = |number| format!("change-{number}");
    let now = &*stage;
    let single = in_turn(
        now.world.args.source_changes,
        (all, owners(FLOOR, last_block)),
        async |owner, number| source(now, owner, revision(number)).await,
        async |owner, number| floor::change_chain(now.world, owner, &revision(number)).await,
    );
    let single = single.await?.context("no changes were asked for")?;
    let requests = stage.requests().await?;
    stage.world.clear(FLOOR, block).await?;
    let change = SourceChange { single, requests };
    report("source change", &change)?;
    Ok(change)
}

async fn source(stage: &Stage<'_>, owner: &Key, revision: String) -> anyhow::Result<Duration> {
    let (world, family) = (&*stage.world, stage.world.family);
    let generation = world.owners.get(owner)?.metadata.generation;
    let patch = new_revision(family, &revision);
    let last = owner.step(world.args.steps);
    let is_carried = move |step: &Seen| step.spec.revision == revision;
    let carried = world.steps.when(&last, is_carried);
    let start = Instant::now();
    world.client.merge(&family.owners.at(owner), &patch).await?;
    let seen = carried.await?;
    // The next change starts from rest, or it would wait for this one's status.
    let at_rest = move |owner: &Seen| owner.metadata.generation > generation && owner.is_ready();
    world.owners.when(owner, at_rest).await?;
    Ok(seen - start)
}

/// Edits the template of the last step, which concerns one object of each owner.
pub(crate) async fn template(stage: &mut Stage<'_>) -> anyhow::Result<Phase> {
    let edited = stage.phase(async |stage| {
        let (world, last) = (&*stage.world, stage.world.args.steps);
        let edit = json!({"spec": {"template": {"spec": {"note": NOTE}}}});
        let path = TEMPLATES.named(&template_name(last));
        world.client.merge(&path, &edit).await?;
        let carries_it = move |key: &Key, step: &Seen| {
            step_of(&key.name) == Some(last) && step.spec.note == NOTE
        };
        let what = "each owner's object carries the edit";
        world.steps.reach(what, stage.count, carries_it).await
    });
    let edited = edited.await?;
    report("template edit", &edited)?;
    Ok(edited)
}
