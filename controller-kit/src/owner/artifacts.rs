//! The Artifacts of owners: what is known of them, and writing and deleting them with the controller's own rights.
//!
//! The kind is watched from the first time on that an owner keeps something in it, or its blueprint asks for that. Where
//! nobody does, nothing is asked and nothing is held. What is known comes from the watch and from the replies to our own
//! writes; the engine believes nothing of it that status does not tell (docs/behaviour/attribution.md#artifacts).

mod known;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api_types::artifact::{ARTIFACT, ARTIFACTS};
use http::StatusCode;
use parking_lot::Mutex;
use realizer::{ArtifactWrite, KnownArtifact, KnownArtifacts, Owner};
use serde_json::{Value, json};
use tokio::sync::watch as signal;
use tokio::time::Instant;

use super::{Dependency, DependencyIndex, OwnerKind};
use crate::cluster::{Call, Cluster, Identity, RequestError};
use crate::reflect::{Change, Reflector, Watched, follow_if_installed};
use crate::scheduler::{Lane, Scheduler};
use crate::shutdown::Tasks;
use crate::stamped::ObjectKey;
use crate::submit::Unavailable;

use known::{ArtifactEntry, Known, Trouble};

const WATCHED: Watched = Watched::carto(ARTIFACT, ARTIFACTS);
/// How long a walk waits for the first listing, before it makes room for others.
const LISTING: Duration = Duration::from_secs(2);

/// The Artifacts of all owners of one kind.
pub struct Artifacts {
    cluster: Cluster,
    kind: OwnerKind,
    field_manager: &'static str,
    tasks: Tasks,
    scheduler: Arc<Scheduler>,
    dependencies: Arc<DependencyIndex>,
    store: Arc<Reflector<ArtifactEntry>>,
    /// Whether it is known what there is, and since when that is asked; none as long as the kind is not watched.
    known: Mutex<Option<(signal::Receiver<bool>, Instant)>>,
    state: Arc<Mutex<Known>>,
}

impl Artifacts {
    /// Nothing is watched yet.
    pub(super) fn new(
        cluster: &Cluster,
        kind: OwnerKind,
        field_manager: &'static str,
        tasks: &Tasks,
        wakes: (&Arc<Scheduler>, &Arc<DependencyIndex>),
    ) -> Self {
        Self {
            cluster: cluster.clone(),
            kind,
            field_manager,
            tasks: tasks.clone(),
            scheduler: wakes.0.clone(),
            dependencies: wakes.1.clone(),
            store: Arc::default(),
            known: Mutex::default(),
            state: Arc::default(),
        }
    }

    /// What is known of those of an owner. They are asked for only if its status needs any, or `retains` says that its
    /// blueprint wants some.
    ///
    /// # Errors
    /// While the API server has not listed them.
    pub(super) async fn of(
        &self,
        owner: &Owner,
        retains: bool,
    ) -> Result<KnownArtifacts, Unavailable> {
        let key = ObjectKey::of_owner(&owner.namespace, &owner.name);
        let trouble = if retains || owner.has_artifacts() {
            self.trouble(&key).await?
        } else {
            None
        };
        self.read_values(&key, owner).await?;
        let known = self.state.lock().of(&key, owner);
        Ok(KnownArtifacts {
            is_unlisted: trouble.as_ref().is_some_and(|it| it.is_unlisted),
            is_unwritable: trouble.as_ref().is_some_and(|it| it.is_unwritable),
            trouble: trouble.map(|it| it.why),
            ..known
        })
    }

    /// Reads the values that are needed and not held: after a restart, or where somebody else wrote them.
    async fn read_values(&self, key: &ObjectKey, owner: &Owner) -> Result<(), Unavailable> {
        let missing = self.state.lock().without_values(key, owner);
        for name in missing {
            let path = WATCHED.path(Some(&key.namespace), &name);
            let read = self.cluster.send(Identity::Controller, Call::get(path));
            match read.await {
                Ok(answer) => self.take(key, &name, answer.body),
                Err(error) if error.passes_by_itself() => {
                    let why = format!("Artifact [{name}] cannot be read: {error}");
                    return Err(Unavailable::of(&error, why));
                }
                // The watch tells that it is gone; the step says that it is not there as it is to be.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Why there are none to be had in the namespace of an owner, if that is so.
    async fn trouble(&self, owner: &ObjectKey) -> Result<Option<Trouble>, Unavailable> {
        let (mut known, since) = self.begin();
        let listed = tokio::time::timeout(LISTING, known.wait_for(|known| *known)).await;
        if self.store.is_told() {
            return Ok(self.state.lock().refusal(owner));
        }
        if listed.is_err() {
            return Err(Unavailable::unlisted(
                "the Artifacts are not listed yet",
                since,
            ));
        }
        let why = match self.store.refused() {
            Some(why) => format!("artifacts.carto.run cannot be watched: {why}"),
            None => "kind Artifact is not installed: apply the CustomResourceDefinition \
                     artifacts.carto.run of this release"
                .to_owned(),
        };
        Ok(Some(Trouble {
            why,
            is_unlisted: true,
            is_unwritable: true,
        }))
    }

    /// What is refused may be allowed by now.
    pub(super) fn forget_refusals(&self) {
        self.state.lock().forget_refusals();
    }

    /// Watches the kind from now on.
    fn begin(&self) -> (signal::Receiver<bool>, Instant) {
        let mut known = self.known.lock();
        if let Some(known) = &*known {
            return known.clone();
        }
        let sender = signal::Sender::new(false);
        let begun = (sender.subscribe(), Instant::now());
        *known = Some(begun.clone());
        self.follow(sender);
        begun
    }

    fn follow(&self, known: signal::Sender<bool>) {
        let (state, scheduler, kind) = (self.state.clone(), self.scheduler.clone(), self.kind);
        let changed = move |change: Change<'_, ArtifactEntry>| {
            if let Some(owner) = state.lock().follow(kind.kind, &change) {
                scheduler.wake(owner, Lane::Fresh, None);
            }
        };
        let (store, client) = (self.store.clone(), self.cluster.controller().clone());
        let cancel = self.tasks.token().clone();
        let following = follow_if_installed(store, WATCHED, client, cancel, known, changed);
        self.tasks.spawn("artifact-watch", following);
        // Who waits until the kind is installed is woken once it can be used.
        let (mut told, scheduler) = (self.store.told_signal(), self.scheduler.clone());
        let dependencies = self.dependencies.clone();
        let waking = async move {
            // The sender lives as long as the store.
            let _ = told.wait_for(|told| *told).await;
            for owner in dependencies.take(&installed()) {
                scheduler.wake(owner, Lane::Fresh, None);
            }
        };
        self.tasks.spawn_until_stopped("artifacts-listed", waking);
    }

    /// Writes these Artifacts of an owner, unless they are there. Returns the names of those that are not.
    ///
    /// # Errors
    /// When the API server did not carry it out, for no reason that lies in what was asked.
    pub(super) async fn write(
        &self,
        owner: &ObjectKey,
        writes: &[ArtifactWrite],
    ) -> Result<BTreeSet<String>, Unavailable> {
        let mut unkept = BTreeSet::new();
        for write in writes {
            let trouble = self.trouble(owner).await?;
            if trouble.is_some_and(|trouble| trouble.is_unwritable) {
                unkept.insert(write.name.clone());
                continue;
            }
            let Err(error) = self.write_one(owner, write).await else {
                self.state.lock().allow(owner);
                continue;
            };
            let why = format!("Artifact [{}] cannot be written: {error}", write.name);
            if error.passes_by_itself() {
                return Err(Unavailable::of(&error, why));
            }
            tracing::warn!(%owner, %why, "an output is not kept");
            // A right and a quota are of the namespace; all else may be about this object alone.
            let is_of_namespace = error.is(StatusCode::FORBIDDEN);
            self.state.lock().refuse(owner, is_of_namespace, why);
            unkept.insert(write.name.clone());
        }
        Ok(unkept)
    }

    async fn write_one(
        &self,
        owner: &ObjectKey,
        write: &ArtifactWrite,
    ) -> Result<(), RequestError> {
        let wanted = KnownArtifact::read(&write.object);
        let present = self.state.lock().get(owner, &write.name);
        if let Some(present) = present {
            if *present.known == wanted {
                return Ok(());
            }
            self.delete_one(owner, &write.name, &present.uid).await?;
        }
        match self.create(owner, write).await {
            Err(error) if error.is(StatusCode::CONFLICT) => {}
            created => return created,
        }
        // What has its name was written before the watch told, or by somebody else.
        let path = WATCHED.path(Some(&owner.namespace), &write.name);
        let found = self.cluster.send(Identity::Controller, Call::get(path));
        let found = match found.await {
            Ok(found) => found.body,
            // It is gone again, or there was another conflict, about a quota.
            Err(error) if error.is(StatusCode::NOT_FOUND) => {
                return self.create(owner, write).await;
            }
            Err(error) => return Err(error),
        };
        if KnownArtifact::read(&found) == wanted {
            self.take(owner, &write.name, found);
            return Ok(());
        }
        let uid = found["metadata"]["uid"].as_str().unwrap_or_default();
        self.delete_one(owner, &write.name, uid).await?;
        self.create(owner, write).await
    }

    async fn create(&self, owner: &ObjectKey, write: &ArtifactWrite) -> Result<(), RequestError> {
        let collection = WATCHED.collection(Some(&owner.namespace));
        let call = Call::create(&collection, self.field_manager, &write.object);
        let created = self.cluster.send(Identity::Controller, call).await?;
        self.take(owner, &write.name, created.body);
        Ok(())
    }

    /// Takes a reply to our own request.
    fn take(&self, owner: &ObjectKey, name: &str, object: Value) {
        let entry = Arc::new(ArtifactEntry::with_values(object));
        self.state.lock().take(owner, name, entry);
    }

    /// Deletes Artifacts of an owner.
    ///
    /// # Errors
    /// When one of them could not be.
    pub(super) async fn delete(
        &self,
        owner: &ObjectKey,
        names: &[String],
    ) -> Result<(), RequestError> {
        for name in names {
            let entry = self.state.lock().get(owner, name);
            if let Some(entry) = entry {
                self.delete_one(owner, name, &entry.uid).await?;
            }
        }
        Ok(())
    }

    /// Deletes exactly this one. It is known at once, or a walk before the watch tells would delete it again.
    async fn delete_one(
        &self,
        owner: &ObjectKey,
        name: &str,
        uid: &str,
    ) -> Result<(), RequestError> {
        let path = WATCHED.path(Some(&owner.namespace), name);
        let options = json!({"preconditions": {"uid": uid}});
        let call = Call::delete(path, &options);
        match self.cluster.send(Identity::Controller, call).await {
            Ok(_) => {}
            // It is gone, or another one has its name: the watch tells.
            Err(error) if error.is(StatusCode::NOT_FOUND) || error.is(StatusCode::CONFLICT) => {}
            Err(error) => return Err(error),
        }
        self.state.lock().remove(owner, name, uid);
        Ok(())
    }
}

/// What an owner waits for while the kind is not installed.
pub(super) fn installed() -> Dependency {
    Dependency::Group(api_types::GROUP.into())
}
