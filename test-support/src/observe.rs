//! One watch of a kind: what is there, and then all that happens to it.

use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use kube::Client;
use kube::core::{DynamicObject, ObjectList, WatchEvent};
use serde::de::DeserializeOwned;
use tokio::time::sleep;

/// Before the next try, when the API server cannot be reached.
const PAUSE: Duration = Duration::from_millis(100);
const GONE: u16 = 410;

/// What an observer reads of an object: all, or a few fields.
pub trait Observed: DeserializeOwned + Clone + Send {
    /// Its resource version.
    fn version(&self) -> &str;
}

impl Observed for DynamicObject {
    fn version(&self) -> &str {
        self.metadata
            .resource_version
            .as_deref()
            .unwrap_or_default()
    }
}

/// What a watch tells.
#[derive(Debug)]
pub enum Change<T> {
    /// This is all there is.
    Listed(Vec<T>),
    /// This object is new or has changed.
    Changed(T),
    /// This object is gone.
    Deleted(T),
    /// Why something may be missing. What there is then is listed anew.
    Gap(String),
}

/// Lists and watches the objects at a path of the API server, such as `/api/v1/pods`, and tells each change. Never returns:
/// whatever ends a watch, the next one goes on where it ended.
pub async fn observe<T: Observed>(client: &Client, path: &str, mut told: impl FnMut(Change<T>)) {
    loop {
        match list(client, path).await {
            Ok(ObjectList {
                metadata, items, ..
            }) => {
                told(Change::Listed(items));
                let since = metadata.resource_version.unwrap_or_default();
                let why = follow(client, path, since, &mut told).await;
                told(Change::Gap(why));
            }
            // Just after a definition was installed, the server's cache of its kind is not filled yet.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn list<T: Observed>(client: &Client, path: &str) -> kube::Result<ObjectList<T>> {
    let request = http::Request::get(path).body(Vec::new());
    client
        .request(request.map_err(kube::Error::HttpError)?)
        .await
}

/// Until there may be a gap; the text says why.
async fn follow<T: Observed>(
    client: &Client,
    path: &str,
    mut since: String,
    told: &mut impl FnMut(Change<T>),
) -> String {
    loop {
        let watch = format!("{path}?watch=1&allowWatchBookmarks=true&resourceVersion={since}");
        let request = match http::Request::get(watch).body(Vec::new()) {
            Ok(request) => request,
            Err(error) => return error.to_string(),
        };
        let events = match client.request_events::<T>(request).await {
            Ok(events) => events,
            Err(kube::Error::Api(status)) if status.code == GONE => return status.to_string(),
            // Whatever it is, it passes; nothing is missing as long as the watch goes on where it ended.
            Err(_) => {
                sleep(PAUSE).await;
                continue;
            }
        };
        pin_mut!(events);
        while let Some(Ok(event)) = events.next().await {
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    object.version().clone_into(&mut since);
                    told(Change::Changed(object));
                }
                WatchEvent::Deleted(object) => {
                    object.version().clone_into(&mut since);
                    told(Change::Deleted(object));
                }
                WatchEvent::Bookmark(bookmark) => since = bookmark.metadata.resource_version,
                WatchEvent::Error(status) => return status.to_string(),
            }
        }
    }
}
