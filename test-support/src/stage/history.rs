//! What came and went, told by the objects themselves: of a request whose sender was killed meanwhile, the audit log has a
//! code that does not say whether it was carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{PATIENCE, Stage, condition};
use crate::eventually;
use crate::observe::{Change, observe};

/// Of each object its uid.
#[derive(Default)]
struct Seen {
    created: BTreeSet<String>,
    deleted: BTreeSet<String>,
}

/// What is kept of what a watch tells.
trait Notes: Default + Send + 'static {
    /// An object is there, new or changed.
    fn note(&mut self, object: DynamicObject);

    /// An object is gone.
    fn note_deleted(&mut self, object: DynamicObject);
}

/// Notes what a watch tells, until it is dropped.
struct Followed<N> {
    heard: Arc<Mutex<Heard<N>>>,
    /// Ends with the set.
    _following: JoinSet<()>,
}

#[derive(Default)]
struct Heard<N> {
    notes: N,
    has_begun: bool,
    /// From here on something may be missing.
    broken: Option<String>,
}

impl<N: Notes> Heard<N> {
    fn hear(&mut self, told: Change<DynamicObject>) {
        match told {
            Change::Listed(objects) => {
                self.has_begun = true;
                for object in objects {
                    self.notes.note(object);
                }
            }
            Change::Changed(object) => self.notes.note(object),
            Change::Deleted(object) => self.notes.note_deleted(object),
            Change::Gap(why) => self.broken = Some(why),
        }
    }
}

impl<N: Notes> Followed<N> {
    async fn from_now(api: Api<DynamicObject>) -> Self {
        let heard = Arc::<Mutex<Heard<N>>>::default();
        let hearing = heard.clone();
        let mut following = JoinSet::new();
        following.spawn(async move {
            let (client, path) = (api.clone().into_client(), api.resource_url().to_owned());
            observe(&client, &path, |told| lock(&hearing).hear(told)).await;
        });
        eventually("what is there is listed", PATIENCE, async || {
            lock(&heard).has_begun
        })
        .await;
        Self {
            heard,
            _following: following,
        }
    }

    /// What was noted so far, none of it missed.
    fn heard(&self) -> MutexGuard<'_, Heard<N>> {
        let heard = lock(&self.heard);
        assert_eq!(heard.broken, None, "something may be missing");
        heard
    }
}

fn lock<N>(heard: &Mutex<Heard<N>>) -> MutexGuard<'_, Heard<N>> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
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
            let seen = &self.0.heard().notes;
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
    fn note(&mut self, object: DynamicObject) {
        self.created.extend(object.metadata.uid);
    }

    fn note_deleted(&mut self, object: DynamicObject) {
        self.deleted.extend(object.metadata.uid);
    }
}

/// Every version of the objects of a kind in the namespace, in the order of their writes, none of it missed.
pub struct Versions(Followed<Vec<Value>>);

impl Versions {
    /// From now on; what is there already is the first.
    pub async fn of(stage: &Stage, api_version: &str, kind: &str) -> Self {
        Self::in_api(stage.api(api_version, kind)).await
    }

    /// The same, where there is no stage.
    pub async fn in_api(api: Api<DynamicObject>) -> Self {
        Self(Followed::from_now(api).await)
    }

    /// What was seen until now.
    pub fn so_far(&self) -> Vec<Value> {
        self.0.heard().notes.clone()
    }

    /// What was seen until now, up to this version of an object and whatever followed it.
    pub async fn up_to(&self, object: &Value) -> Vec<Value> {
        let version = &object["metadata"]["resourceVersion"];
        eventually("the last version was seen", PATIENCE, async || {
            let seen = &self.0.heard().notes;
            let is_seen = seen
                .iter()
                .any(|it| it["metadata"]["resourceVersion"] == *version);
            is_seen.then(|| seen.clone())
        })
        .await
    }
}

impl Notes for Vec<Value> {
    fn note(&mut self, object: DynamicObject) {
        self.push(serde_json::to_value(object).unwrap_or_default());
    }

    fn note_deleted(&mut self, _: DynamicObject) {}
}

/// What the owners in the namespace have said while they were followed, none of it missed.
#[derive(Default)]
struct Said {
    /// Conditions `Ready` that were False.
    unready: BTreeSet<String>,
    /// The latest version of each owner.
    versions: BTreeMap<String, u64>,
}

/// Follows the owners in the namespace until it is dropped.
pub struct Reports(Followed<Said>);

impl Reports {
    /// From now on.
    pub async fn of_owners(stage: &Stage) -> Self {
        let owners = stage.api(stage.cast.api_version, stage.cast.owner_kind);
        Self(Followed::from_now(owners).await)
    }

    /// Each condition `Ready` that was False at any time up to these versions of the owners.
    pub async fn unready(&self, owners: &[Value]) -> BTreeSet<String> {
        eventually("all is heard that the owners said", PATIENCE, async || {
            let said = &self.0.heard().notes;
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
    fn note(&mut self, owner: DynamicObject) {
        let ready = condition(&owner.data["status"], "Ready");
        if ready["status"] == "False" {
            self.unready.insert(ready.to_string());
        }
        let metadata = owner.metadata;
        let version = metadata.resource_version.as_deref().and_then(number);
        self.versions.extend(metadata.name.zip(version));
    }

    fn note_deleted(&mut self, _owner: DynamicObject) {}
}

/// The API server counts all changes of a kind.
fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}
