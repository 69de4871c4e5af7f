//! PodIntents: conventions are applied to many at once, and then nothing is to happen; and to images with large bills of
//! materials.
//!
//! The webhook and the registry are the same for the controller and for the bare client, which only calls the former: all
//! images are known to the controller before it is measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use test_support::{DockerRegistry, Scratch, Usage};

use crate::api::Api;
use crate::args::Args;
use crate::cpu::CpuSeconds;
use crate::family::{CONVENTIONS, Measured};
use crate::floor::write_intents;
use crate::images::{BOM_BYTES, Image, push, push_with_bom};
use crate::layout::{CROWD, FLOOR, GUEST, Key, namespaces_of, owners};
use crate::objects::{BOMS, MEASURED, convention, convention_name, intent};
use crate::phases::Stage;
use crate::phases::blocks::{Blocks, bare, block_size};
use crate::phases::steady::{self, Restart, Steady};
use crate::report::{report, say, tell};
use crate::seen::Seen;
use crate::tally::Requests;
use crate::webhook::Webhook;
use crate::world::World;

/// What was measured of PodIntents.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Intents {
    /// Number of PodIntents.
    pub(crate) owners: usize,
    /// Conventions that are for each of them.
    pub(crate) conventions: usize,
    /// Different images.
    pub(crate) images: usize,
    /// Requests to the registry from the first sight of the images until the last PodIntent was Ready.
    pub(crate) registry_requests: u64,
    /// All at once.
    pub(crate) cold: Blocks,
    /// Calls of webhooks for all blocks.
    pub(crate) calls: u64,
    /// Reconciles that change nothing.
    pub(crate) steady: Steady,
    /// Killed and started again.
    pub(crate) restart: Restart,
    /// Calls of webhooks, and requests to the registry, in both.
    pub(crate) asked_at_rest: u64,
    /// Images with large bills of materials.
    pub(crate) boms: Option<Boms>,
}

/// Images with large bills of materials.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Boms {
    pub(crate) images: usize,
    /// Until conventions were applied to a PodIntent for each.
    pub(crate) seconds: f64,
    /// What the controller used since its restart.
    pub(crate) usage: Usage,
}

/// Whom the controller asks beside the API server.
struct Outside {
    registry: DockerRegistry,
    webhook: Webhook,
    /// The bare client's connections to it.
    bare: Api,
    images: Arc<Vec<Image>>,
}

impl Outside {
    /// Requests to the registry about an image so far. Once it is also asked how it wants to be asked.
    fn registry_requests(&self) -> anyhow::Result<u64> {
        let requests = self.registry.requests()?.into_iter();
        let of_images = requests.filter(|request| request.path != "/v2/");
        Ok(u64::try_from(of_images.count())?)
    }

    /// Those, and calls of webhooks.
    fn asked(&self) -> anyhow::Result<u64> {
        Ok(self.webhook.calls() + self.registry_requests()?)
    }
}

/// Measures it on a control plane of its own.
pub(crate) async fn measure(args: &Args, measured: &Measured) -> anyhow::Result<Intents> {
    let (count, conventions) = (args.intents, args.conventions);
    say(&format!(
        "\nN = {count} PodIntents × {conventions} conventions"
    ));
    let cache = Scratch::new("carto-images-")?;
    let mut args = args.clone();
    let folder = cache.path().display();
    args.more.push(format!("--image-cache={folder}"));
    let registry = DockerRegistry::start().await?;
    let names = (0..conventions).map(convention_name);
    let webhook = Webhook::start(names.chain([BOMS.to_owned()])).await?;
    let outside = Outside {
        images: Arc::new(push(&registry, args.images.into()).await?),
        bare: webhook.connect()?,
        webhook,
        registry,
    };
    let world = (CONVENTIONS.name.to_owned(), count, block_size(count));
    let phases = async |stage: &mut Stage<'_>| phases(stage, &outside).await;
    Stage::within(&args, measured, world, write(&outside), phases).await
}

/// One after the other, as they stand here.
async fn phases(stage: &mut Stage<'_>, outside: &Outside) -> anyhow::Result<Intents> {
    let mut intents = Intents {
        owners: stage.count,
        conventions: stage.world.args.conventions,
        images: outside.images.len(),
        ..Intents::default()
    };
    for name in (0..intents.conventions).map(convention_name) {
        write_convention(stage, outside, &name, MEASURED).await?;
    }
    let tagged = outside.images.iter().map(|image| image.tagged.clone());
    apply_to_each(stage, GUEST, tagged.collect(), MEASURED).await?;
    stage.requests().await?;
    cold(stage, outside, &mut intents).await?;
    intents.registry_requests = outside.registry_requests()?;
    report("intents", &intents)?;
    let before = outside.asked()?;
    intents.steady = steady::measure(stage).await?;
    intents.restart = steady::restart(stage).await?;
    intents.asked_at_rest = outside.asked()? - before;
    let asked = intents.asked_at_rest;
    tell(
        "at rest",
        &format!("{asked} calls and requests to the registry"),
    );
    intents.boms = boms(stage, outside).await?;
    Ok(intents)
}

async fn write_convention(
    stage: &Stage<'_>,
    outside: &Outside,
    name: &str,
    label: &str,
) -> anyhow::Result<()> {
    let convention = convention(name, label, &outside.webhook.client_config(name))?;
    let path = CONVENTIONS.blueprints.everywhere();
    let created = stage.world.client.create(&path, &convention);
    created.await.map(drop)
}

/// Makes a PodIntent for each image, in namespaces of their own, and waits until all are Ready.
async fn apply_to_each(
    stage: &Stage<'_>,
    prefix: &'static str,
    images: Vec<String>,
    label: &str,
) -> anyhow::Result<()> {
    let (world, count) = (&*stage.world, images.len());
    world.furnish(prefix, namespaces_of(count)).await?;
    let keys = owners(prefix, count);
    let intents = intents(&keys, images.into_iter(), label);
    world.create_owners(stage.concurrency, intents).await?;
    let is_ready = move |key: &Key, owner: &Seen| key.is_of(prefix) && owner.is_ready();
    let what = "conventions are applied to each image";
    world.owners.reach(what, count, is_ready).await
}

/// PodIntents, each with its image.
fn intents(
    keys: &[Key],
    images: impl Iterator<Item = String>,
    label: &str,
) -> impl Iterator<Item = (Key, anyhow::Result<Value>)> {
    let all = keys.iter().zip(images);
    all.map(move |(key, image)| (key.clone(), intent(&CONVENTIONS, key, &image, label)))
}

/// Makes PodIntents in blocks, whose images are known by then.
async fn cold(stage: &mut Stage<'_>, outside: &Outside, all: &mut Intents) -> anyhow::Result<()> {
    let controller = async |stage: &mut Stage<'_>, owners: &[Key], blocks: &mut Blocks| {
        let before = outside.webhook.calls();
        let images = outside.images.iter().map(|image| image.pinned.clone());
        let intents = intents(owners, images.cycle(), MEASURED);
        let done = blocks.work(stage, owners, Requests::sum, intents).await?;
        all.calls += outside.webhook.calls() - before;
        Ok((done.taken.as_secs_f64(), String::new()))
    };
    let calls = write(outside);
    let floor = async |stage: &mut Stage<'_>, count: usize, used: &mut CpuSeconds| {
        bare(stage, count, used, &calls).await
    };
    all.cold = Blocks::measure(stage, floor, controller).await?;
    stage.world.clear(FLOOR, block_size(stage.count)).await
}

/// What the bare client does for PodIntents.
fn write(outside: &Outside) -> impl AsyncFn(&World, usize, usize) -> anyhow::Result<Duration> {
    async move |world: &World, owners, in_flight| {
        write_intents(world, &outside.bare, &outside.images, owners, in_flight).await
    }
}

/// One PodIntent for each image with a large bill of materials; nothing if none are asked for.
async fn boms(stage: &mut Stage<'_>, outside: &Outside) -> anyhow::Result<Option<Boms>> {
    let count = stage.world.args.bom_images;
    if count == 0 {
        return Ok(None);
    }
    let mut images = Vec::new();
    for number in 0..count {
        images.push(push_with_bom(&outside.registry, number).await?.tagged);
    }
    write_convention(stage, outside, BOMS, BOMS).await?;
    let (start, before) = (Instant::now(), outside.webhook.bom_bytes());
    apply_to_each(stage, CROWD, images, BOMS).await?;
    let seconds = start.elapsed().as_secs_f64();
    let (told, all) = (
        outside.webhook.bom_bytes() - before,
        (count * BOM_BYTES) as u64,
    );
    ensure!(told >= all, "the webhook was told {told} bytes of {all}");
    stage.requests().await?;
    let usage = stage.controller.process.usage()?;
    let (images, peak) = (count, usage.peak_rss_mib);
    let text = format!("{seconds:.1} s for {images} images of 20 MB, {peak:.1} MiB peak");
    tell("boms", &text);
    Ok(Some(Boms {
        images,
        seconds,
        usage,
    }))
}
