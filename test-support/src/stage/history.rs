//! What came and went, told by the objects themselves: of a request whose sender was killed meanwhile, the audit log has a
//! code that does not say whether it was carried out.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{PATIENCE, Stage, listed};
use crate::eventually;

/// Before a watch that could not be opened is tried again.
const PAUSE: Duration = Duration::from_millis(100);

/// Of each object its uid.
#[derive(Default)]
struct Seen {
    created: BTreeSet<String>,
    deleted: BTreeSet<String>,
    /// From here on something may be missing.
    broken: Option<String>,
}

/// Follows the objects of the kind that stands for a third party, in the namespace, until it is dropped.
pub struct History {
    seen: Arc<Mutex<Seen>>,
    /// Ends with the set.
    _following: JoinSet<()>,
}

impl History {
    /// From now on; what is there already counts as created.
    pub async fn of_tests(stage: &Stage) -> Self {
        let api = stage.api("test.run/v1alpha1", "Test");
        let now = listed(&api).await;
        let seen = Arc::<Mutex<Seen>>::default();
        for object in now.items {
            seen.lock().unwrap().note(WatchEvent::Added(object));
        }
        let since = now.metadata.resource_version.unwrap();
        let watch = eventually("a watch is open", PATIENCE, async || {
            open(&api, &since).await.map(Some)
        })
        .await;
        let mut following = JoinSet::new();
        following.spawn(follow(api, watch, since, seen.clone()));
        Self {
            seen,
            _following: following,
        }
    }

    /// How many objects were created and how many deleted, until now. The namespace must have come to rest.
    pub async fn created_and_deleted(&self, stage: &Stage) -> (usize, usize) {
        // Changes are told in their order: who knows of the last one knows of all before.
        let last = json!({"apiVersion": "test.run/v1alpha1", "kind": "Test",
            "metadata": {"generateName": "end-of-history-"}, "spec": {}});
        let last = stage.create_as("history", last).await;
        let metadata = &last["metadata"];
        let (name, uid) = (metadata["name"].as_str(), metadata["uid"].as_str());
        let counts = eventually("the history has come to its end", PATIENCE, async || {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            assert_eq!(seen.broken, None, "the history has a gap");
            let complete = seen.created.contains(uid.unwrap());
            complete.then_some((seen.created.len() - 1, seen.deleted.len()))
        })
        .await;
        stage
            .delete("test.run/v1alpha1", "Test", name.unwrap())
            .await;
        counts
    }
}

impl Seen {
    fn note(&mut self, event: WatchEvent<DynamicObject>) {
        let (those, object) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (&mut self.created, object),
            WatchEvent::Deleted(object) => (&mut self.deleted, object),
            WatchEvent::Bookmark(_) => return,
            WatchEvent::Error(error) => {
                self.broken = Some(error.to_string());
                return;
            }
        };
        those.extend(object.metadata.uid);
    }
}

type Watch = BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>;

async fn open(api: &Api<DynamicObject>, since: &str) -> kube::Result<Watch> {
    Ok(api.watch(&WatchParams::default(), since).await?.boxed())
}

/// A watch ends after a few minutes at the latest; the next one goes on where it ended.
async fn follow(
    api: Api<DynamicObject>,
    mut watch: Watch,
    mut since: String,
    seen: Arc<Mutex<Seen>>,
) {
    let seen = || seen.lock().unwrap_or_else(PoisonError::into_inner);
    while seen().broken.is_none() {
        while let Some(Ok(event)) = watch.next().await {
            since = version(&event).unwrap_or(since);
            seen().note(event);
        }
        match open(&api, &since).await {
            Ok(next) => watch = next,
            Err(kube::Error::Api(status)) if status.code == 410 => {
                seen().broken = Some(status.to_string());
            }
            // Whatever it is, it passes; nothing is missing as long as the watch goes on where it ended.
            Err(_) => sleep(PAUSE).await,
        }
    }
}

fn version(event: &WatchEvent<DynamicObject>) -> Option<String> {
    match event {
        WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
            object.metadata.resource_version.clone()
        }
        WatchEvent::Bookmark(bookmark) => Some(bookmark.metadata.resource_version.clone()),
        WatchEvent::Error(_) => None,
    }
}
