//! PodIntents: conventions are applied to many at once, and then nothing is to happen; and to images with large bills of
//! materials.
//!
//! The webhook and the registry are the same for the controller and for the bare client, which only calls the former: all
//! images are known to the controller before it is measured.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde::Serialize;
use test_support::{DockerRegistry, Scratch, Usage};

use crate::api::Api;
use crate::args::Args;
use crate::family::{CONVENTIONS, Measured};
use crate::floor::{Bare, write_intents};
use crate::images::{BOM_BYTES, Image, push, push_with_bom};
use crate::layout::{CROWD, FLOOR, GUEST, Key, namespaces_of, owners};
use crate::objects::intents::{BOMS, MEASURED, convention, convention_name, intent};
use crate::phases::Stage;
use crate::phases::blocks::{Blocks, block_size};
use crate::phases::steady::{self, Restart, Steady};
use crate::report::{self, say, tell};
use crate::seen::Seen;
use crate::tally::Requests;
use crate::webhook::Webhook;
use crate::world::World;

/// What was measured of PodIntents.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
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
#[derive(Debug, Clone, Copy, Default, Serialize)]
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
    let outside = Outside {
        images: Arc::new(push(&registry, args.images.into()).await?),
        webhook: Webhook::start(names.chain([BOMS.to_owned()])).await?,
        registry,
    };
    let bare = Bare {
        webhook: outside.webhook.connect()?,
        images: outside.images.clone(),
    };
    let world = (CONVENTIONS.name.to_owned(), count, block_size(count));
    let phases = async |stage: &mut Stage<'_>| phases(stage, &outside, &bare).await;
    Stage::within(&args, measured, world, write(&bare), phases).await
}

/// One after the other, as they stand here.
async fn phases(stage: &mut Stage<'_>, outside: &Outside, bare: &Bare) -> anyhow::Result<Intents> {
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
    (intents.cold, intents.calls) = cold(stage, outside, bare).await?;
    intents.registry_requests = outside.registry_requests()?;
    tell("intents", &report::intents(&intents));
    let before = outside.asked()?;
    intents.steady = steady::measure(stage).await?;
    intents.restart = steady::restart(stage).await?;
    intents.asked_at_rest = outside.asked()? - before;
    let asked = format!(
        "{} calls and requests to the registry",
        intents.asked_at_rest
    );
    tell("at rest", &asked);
    intents.boms = boms(stage, outside).await?;
    Ok(intents)
}

async fn write_convention(
    stage: &Stage<'_>,
    outside: &Outside,
    name: &str,
    set: &str,
) -> anyhow::Result<()> {
    let convention = convention(name, set, &outside.webhook);
    let path = CONVENTIONS.blueprints.everywhere();
    stage
        .world
        .client
        .create(&path, &convention)
        .await
        .map(drop)
}

/// Makes a PodIntent for each image, in namespaces of their own, and waits until all are Ready.
async fn apply_to_each(
    stage: &Stage<'_>,
    prefix: &'static str,
    images: Vec<String>,
    set: &'static str,
) -> anyhow::Result<()> {
    let (world, count) = (&*stage.world, images.len());
    world.furnish(prefix, namespaces_of(count)).await?;
    let items = owners(prefix, count).into_iter().zip(images).collect();
    create(world, stage.concurrency, items, set).await?;
    let is_ready = move |key: &Key, owner: &Seen| key.is_of(prefix) && owner.is_ready();
    let what = "conventions are applied to each image";
    world.owners.reach(what, count, is_ready).await
}

/// Creates PodIntents, each with its image.
async fn create(
    world: &World,
    concurrency: usize,
    items: Vec<(Key, String)>,
    set: &'static str,
) -> anyhow::Result<()> {
    let create = move |client: Api, (key, image): (Key, String)| async move {
        let object = intent(&CONVENTIONS, &key, &image, set);
        let collection = CONVENTIONS.owners.within(&key.namespace);
        client.create(&collection, &object).await.map(drop)
    };
    world.client.each(concurrency, items, create).await
}

/// Makes PodIntents in blocks, whose images are known by then; how often webhooks were called for them.
async fn cold(
    stage: &mut Stage<'_>,
    outside: &Outside,
    bare: &Bare,
) -> anyhow::Result<(Blocks, u64)> {
    let mut calls = 0;
    let controller = async |stage: &mut Stage<'_>, owners: &[Key], blocks: &mut Blocks| {
        let before = outside.webhook.calls();
        let images = outside.images.iter().map(|image| image.pinned.clone());
        let items = owners.iter().cloned().zip(images.cycle()).collect();
        let create =
            async |world: &World, in_flight| create(world, in_flight, items, MEASURED).await;
        let done = blocks.work(stage, owners, Requests::sum, create).await?;
        calls += outside.webhook.calls() - before;
        Ok((done.taken.as_secs_f64(), String::new()))
    };
    let blocks = Blocks::measure(stage, write(bare), controller).await?;
    stage.world.clear(FLOOR, block_size(stage.count)).await?;
    Ok((blocks, calls))
}

/// What the bare client does for PodIntents.
fn write(bare: &Bare) -> impl AsyncFn(&World, usize, usize) -> anyhow::Result<Duration> {
    async move |world: &World, owners, in_flight| {
        write_intents(world, bare, owners, in_flight).await
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
    let (told, all) = (outside.webhook.bom_bytes() - before, count * BOM_BYTES);
    ensure!(
        told >= u64::try_from(all)?,
        "the webhook was told {told} bytes of {all}"
    );
    stage.requests().await?;
    let usage = stage.controller.process.usage()?;
    let peak = usage.peak_rss_mib;
    let text = format!("{seconds:.1} s for {count} images of 20 MB, {peak:.1} MiB peak");
    tell("boms", &text);
    Ok(Some(Boms {
        images: count,
        seconds,
        usage,
    }))
}
