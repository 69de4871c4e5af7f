//! One watch of a kind, for as long as the bench runs.

use std::time::Duration;

use anyhow::bail;
use futures::{StreamExt as _, pin_mut};
use http::Request;
use kube::core::WatchEvent;
use serde::Deserialize;

use crate::api::{Api, Kind};
use crate::census::Change;
use crate::seen::{Metadata, Seen};

/// Before the next try, when the API server cannot be reached.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Deserialize)]
#[serde(bound = "T: Seen")]
struct List<T> {
    metadata: Metadata,
    items: Vec<T>,
}

/// Lists and watches all objects of a kind and tells each change. Never returns.
pub(crate) async fn observe<T: Seen>(api: &Api, kind: Kind, mut told: impl FnMut(Change<T>)) {
    loop {
        if let Err(error) = list_and_watch(api, kind, &mut told).await {
            complain(kind, &error);
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[expect(clippy::print_stderr, reason = "the bench speaks to a terminal")]
fn complain(kind: Kind, error: &anyhow::Error) {
    eprintln!("bench: watching {} again: {error:#}", kind.everywhere());
}

async fn list_and_watch<T: Seen>(
    api: &Api,
    kind: Kind,
    told: &mut impl FnMut(Change<T>),
) -> anyhow::Result<()> {
    let request = Request::get(kind.everywhere()).body(Vec::new())?;
    let list: List<T> = api.client().request(request).await?;
    let mut version = list.metadata.resource_version;
    told(Change::Listed(list.items));
    loop {
        watch_from(api, kind, &mut version, told).await?;
    }
}

/// Until the server ends the watch, which it does every few minutes.
async fn watch_from<T: Seen>(
    api: &Api,
    kind: Kind,
    version: &mut String,
    told: &mut impl FnMut(Change<T>),
) -> anyhow::Result<()> {
    let path = format!(
        "{}?watch=1&allowWatchBookmarks=true&resourceVersion={version}",
        kind.everywhere()
    );
    let events = api
        .client()
        .request_events::<T>(Request::get(path).body(Vec::new())?)
        .await?;
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                version.clone_from(&object.metadata().resource_version);
                told(Change::Changed(object));
            }
            WatchEvent::Deleted(object) => {
                version.clone_from(&object.metadata().resource_version);
                told(Change::Gone(object.key()));
            }
            WatchEvent::Bookmark(bookmark) => *version = bookmark.metadata.resource_version,
            WatchEvent::Error(status) => bail!("{}", status.message),
        }
    }
    Ok(())
}
