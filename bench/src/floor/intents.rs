//! The floor of PodIntents: for each the call of each webhook and one status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::Api;
use crate::family::TWIN_INTENT;
use crate::images::Image;
use crate::layout::{FLOOR, Key, owners};
use crate::objects::{MEASURED, convention_name, intent, intent_context, intent_status};
use crate::seen::Seen;
use crate::world::World;

/// Writes everything for so many PodIntents and leaves it there; the time until the last status is seen.
pub(crate) async fn write_intents(
    world: &World,
    webhook: &Api,
    images: &Arc<Vec<Image>>,
    count: usize,
    concurrency: usize,
) -> anyhow::Result<Duration> {
    let names: Arc<[String]> = (0..world.args.conventions).map(convention_name).collect();
    let items = owners(FLOOR, count).into_iter().enumerate();
    let write = |client: Api, (number, key): (usize, Key)| {
        let (webhook, images, names) = (webhook.clone(), images.clone(), names.clone());
        async move {
            let image = &images[number % images.len()];
            write_one(&client, &webhook, &key, image, &names).await
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
    conventions: &[String],
) -> anyhow::Result<()> {
    let kind = TWIN_INTENT.owners;
    let mut object = intent(&TWIN_INTENT, key, &image.pinned, MEASURED)?;
    client.create(&kind.within(&key.namespace), &object).await?;
    let mut template = object["spec"]["template"].take();
    for convention in conventions {
        let asked = intent_context(key, convention, &template, image)?;
        let mut answer = webhook.post(&format!("/{convention}"), &asked).await?;
        template = answer["status"]["template"].take();
    }
    let status = intent_status(&template, conventions, image)?;
    client.merge(&kind.status_at(key), &status).await
}
