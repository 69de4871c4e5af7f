//! The floor of PodIntents: for each the call of each webhook and one status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::Api;
use crate::family::TWIN_INTENT;
use crate::images::Image;
use crate::layout::{FLOOR, Key, owners};
use crate::objects::intents::{MEASURED, context, convention_name, intent, intent_status};
use crate::seen::Seen;
use crate::world::World;

/// What the bare client needs beside the API server.
#[derive(Clone)]
pub(crate) struct Bare {
    /// Connections to the webhook.
    pub(crate) webhook: Api,
    pub(crate) images: Arc<Vec<Image>>,
}

/// Writes everything for so many PodIntents and leaves it there; the time until the last status is seen.
pub(crate) async fn write_intents(
    world: &World,
    bare: &Bare,
    count: usize,
    concurrency: usize,
) -> anyhow::Result<Duration> {
    let conventions = world.args.conventions;
    let items = owners(FLOOR, count).into_iter().enumerate().collect();
    let write = |client: Api, (number, key): (usize, Key)| {
        let bare = bare.clone();
        async move {
            let image = &bare.images[number % bare.images.len()];
            write_one(&client, &bare.webhook, &key, image, conventions).await
        }
    };
    let start = Instant::now();
    world.client.each(concurrency, items, write).await?;
    let is_ready = |key: &Key, owner: &Seen| key.is_of(FLOOR) && owner.is_ready();
    let what = "all PodIntents of the bare client have a status";
    world.bare_owners.reach(what, count, is_ready).await?;
    Ok(start.elapsed())
}

async fn write_one(
    client: &Api,
    webhook: &Api,
    key: &Key,
    image: &Image,
    conventions: usize,
) -> anyhow::Result<()> {
    let mut object = intent(&TWIN_INTENT, key, &image.pinned, MEASURED);
    let collection = TWIN_INTENT.owners.within(&key.namespace);
    client.create(&collection, &object).await?;
    let mut template = object["spec"]["template"].take();
    for convention in (0..conventions).map(convention_name) {
        let asked = context(key, &convention, &template, image);
        let mut answer = webhook.post(&format!("/{convention}"), &asked).await?;
        template = answer["status"]["template"].take();
    }
    let status = intent_status(&template, conventions, image);
    client
        .merge(&TWIN_INTENT.owners.status_at(key), &status)
        .await
}
