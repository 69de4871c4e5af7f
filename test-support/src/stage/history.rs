//! What came and went, told by the objects themselves: of a request whose sender was killed meanwhile, the audit log has a
//! code that does not say whether it was carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::{PATIENCE, Stage, condition, listed};
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

/// What is kept of what a watch tells.
trait Notes: Default + Send + 'static {
    fn note(&mut self, told: Told);
}

/// Notes what a watch tells, until it is dropped.
struct Followed<N> {
    notes: Arc<Mutex<N>>,
    /// Ends with the set.
    _following: JoinSet<()>,
}

impl<N: Notes> Followed<N> {
    async fn from_now(api: Api<DynamicObject>) -> Self {
        let notes = Arc::<Mutex<N>>::default();
        let noting = notes.clone();
        let mut following = JoinSet::new();
        follow_from_now(&mut following, api, move |told| lock(&noting).note(told)).await;
        Self {
            notes,
            _following: following,
        }
    }

    fn notes(&self) -> MutexGuard<'_, N> {
        lock(&self.notes)
    }
}

fn lock<N>(notes: &Mutex<N>) -> MutexGuard<'_, N> {
    notes.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Follows the objects of the kind that stands for a third party, in the namespace, until it is dropped.
pub struct History(Followed<Seen>);

impl History {
    /// From now on; what is there already counts as created.
    pub async fn of_tests(stage: &Stage) -> Self {
        Self(Followed::from_now(stage.api("test.run/v1alpha1", "Test")).await)
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
            let seen = self.0.notes();
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

impl Notes for Seen {
    fn note(&mut self, told: Told) {
        let (those, object) = match told {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                (&mut self.created, object)
            }
            Ok(WatchEvent::Deleted(object)) => (&mut self.deleted, object),
            Ok(WatchEvent::Bookmark(_)) => return,
            Ok(WatchEvent::Error(error)) => {
                self.broken = Some(error.to_string());
                return;
            }
            Err(why) => {
                self.broken = Some(why);
                return;
            }
        };
        those.extend(object.metadata.uid);
    }
}

/// What the owners in the namespace have said while they were followed, none of it missed.
#[derive(Default)]
struct Said {
    /// Conditions `Ready` that were False.
    unready: BTreeSet<String>,
    /// The latest version of each owner.
    versions: BTreeMap<String, u64>,
    broken: Option<String>,
}

/// Follows the owners in the namespace until it is dropped.
pub struct Reports(Followed<Said>);

impl Reports {
    /// From now on.
    pub async fn of_owners(stage: &Stage) -> Self {
        let owners = stage.api("carto.run/v1alpha1", stage.cast.owner_kind);
        Self(Followed::from_now(owners).await)
    }

    /// Each condition `Ready` that was False at any time up to these versions of the owners.
    pub async fn unready(&self, owners: &[Value]) -> BTreeSet<String> {
        eventually("all is heard that the owners said", PATIENCE, async || {
            let said = self.0.notes();
            assert_eq!(said.broken, None, "something may be missing");
            let is_heard = |owner: &Value| {
                let metadata = &owner["metadata"];
                let name = metadata["name"].as_str().unwrap_or_default();
                let version = metadata["resourceVersion"].as_str().and_then(number);
                version.is_some() && said.versions.get(name).copied() >= version
            };
            owners.iter().all(is_heard).then(|| said.unready.clone())
        })
        .await
    }
}

impl Notes for Said {
    fn note(&mut self, told: Told) {
        match told {
            Ok(WatchEvent::Added(owner) | WatchEvent::Modified(owner)) => {
                let ready = condition(&owner.data["status"], "Ready");
                if ready["status"] == "False" {
                    self.unready.insert(ready.to_string());
                }
                let metadata = owner.metadata;
                let version = metadata.resource_version.as_deref().and_then(number);
                self.versions.extend(metadata.name.zip(version));
            }
            Ok(WatchEvent::Deleted(_) | WatchEvent::Bookmark(_)) => {}
            Ok(WatchEvent::Error(error)) => self.broken = Some(error.to_string()),
            Err(why) => self.broken = Some(why),
        }
    }
}

/// The API server counts all changes of a kind.
fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// What a watch tells, or why it does not go on where it ended.
type Told = Result<WatchEvent<DynamicObject>, String>;

type Watch = BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>;

async fn open(api: &Api<DynamicObject>, since: &str) -> kube::Result<Watch> {
    Ok(api.watch(&WatchParams::default(), since).await?.boxed())
}

/// Tells of what is there, and from then on of all that happens to it.
async fn follow_from_now(
    following: &mut JoinSet<()>,
    api: Api<DynamicObject>,
    note: impl Fn(Told) + Send + 'static,
) {
    let now = listed(&api).await;
    for object in now.items {
        note(Ok(WatchEvent::Added(object)));
    }
    let since = now.metadata.resource_version.unwrap();
    let watch = eventually("a watch is open", PATIENCE, async || {
        open(&api, &since).await.map(Some)
    })
    .await;
    following.spawn(follow(api, watch, since, note));
}

/// A watch ends after a few minutes at the latest; the next one goes on where it ended.
async fn follow(
    api: Api<DynamicObject>,
    mut watch: Watch,
    mut since: String,
    note: impl Fn(Told) + Send,
) {
    loop {
        while let Some(Ok(event)) = watch.next().await {
            since = version(&event).unwrap_or(since);
            let is_end = matches!(event, WatchEvent::Error(_));
            note(Ok(event));
            if is_end {
                return;
            }
        }
        match open(&api, &since).await {
            Ok(next) => watch = next,
            Err(kube::Error::Api(status)) if status.code == 410 => {
                note(Err(status.to_string()));
                return;
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
