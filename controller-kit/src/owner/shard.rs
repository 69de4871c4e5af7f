//! Which owners this process takes, and what it learns of the others (docs/behaviour/process.md#shards).
//!
//! Several processes may share the owners of a kind. Each watches a part of them, its shard, and leads it by a Lease of its
//! own. So an owner that is not in memory here may be in another shard, or may be gone. Taken for gone, its objects would be
//! taken over by others, or deleted. Where that matters the API server is asked; until it has answered, an owner is alive.

use std::collections::BTreeSet;
use std::future::ready;
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use api_types::names::NameRule;
use futures::{StreamExt as _, TryStreamExt as _};
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use serde_json::Value;
use thiserror::Error;
use tokio::time::Instant;
use tracing::debug;

use super::{OwnerKind, OwnerShell};
use crate::args::ShardArgs;
use crate::cluster::{Call, Cluster, Identity, RequestError, encode};
use crate::reflect::{Events, Kept, Selection, Watched, key_of};
use crate::scheduler::Next;
use crate::share::{Held, MayShare, PAGE_BESIDE};
use crate::stamped::ObjectKey;

/// An owner that was there is believed to be there for as long: what changes around it may have it asked for often.
const BELIEVED: Duration = Duration::from_secs(30);

/// Answers that are remembered. One that is forgotten is asked for again.
const ANSWERS: usize = 4096;

/// The owners that a process takes; by default all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shard {
    /// Its name; none where all owners are taken.
    pub name: Option<String>,
    /// Only owners with these labels: a selector as in URLs.
    pub labels: Option<String>,
    /// Only owners in these namespaces, if there is one.
    pub namespaces: BTreeSet<String>,
    /// Only what falls to this replica, where replicas share them.
    pub share: MayShare,
}

/// Flags of shards that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShardError {
    /// All shards would be led by one Lease, and only one of them would work.
    #[error(
        "--watch-label-selector and --watch-namespaces need --shard, a name for the Lease of this part"
    )]
    Unnamed,
    /// Two processes that take all owners would lead at once.
    #[error("--shard needs --watch-label-selector or --watch-namespaces, which say what it takes")]
    Whole,
}

impl Shard {
    /// As the flags say.
    ///
    /// # Errors
    /// When they do not fit together; the operator must correct them.
    pub fn new(args: &ShardArgs) -> Result<Self, ShardError> {
        let shard = Self {
            name: args.shard.clone(),
            labels: args.watch_label_selector.clone(),
            namespaces: args.watch_namespaces.clone().unwrap_or_default().0,
            share: MayShare::default(),
        };
        let is_whole = shard.labels.is_none() && shard.namespaces.is_empty();
        match (&shard.name, is_whole) {
            (None, false) => Err(ShardError::Unnamed),
            (Some(_), true) => Err(ShardError::Whole),
            _ => Ok(shard),
        }
    }

    /// Whether owners of this namespace may be among those that it takes.
    pub(crate) fn takes_from(&self, namespace: &str) -> bool {
        self.selects(namespace) && self.share.accepts(namespace)
    }

    /// Whether owners of this namespace are selected, whichever replica has them.
    pub(super) fn selects(&self, namespace: &str) -> bool {
        self.namespaces.is_empty() || self.namespaces.contains(namespace)
    }

    /// Whether it takes all owners of this namespace: one that is not in memory is gone.
    fn takes_all_of(&self, namespace: &str) -> bool {
        self.labels.is_none() && self.selects(namespace) && self.share.holds(namespace)
    }

    /// What happens to its owners. The API server selects by labels, and by one namespace but not by several: then those of
    /// other namespaces are dropped on arrival. A watch for each namespace would be as many connections, and listings that
    /// have to be put together.
    ///
    /// `held` counts those that are followed.
    pub(crate) fn events(&self, kind: Watched, client: kube::Client, held: Held) -> Events {
        let (shard, watching) = (self.clone(), self.share.watching(true));
        let open = move |namespace: Option<&str>| {
            let (client, kept) = watching.opens(&client, namespace);
            shard.selected(&kind, client, namespace, kept)
        };
        match &self.share.0 {
            Some(share) => share.owners(Arc::new(open), held),
            None => open(None),
        }
    }

    /// In one namespace, or in all that it selects.
    fn selected(
        &self,
        kind: &Watched,
        client: kube::Client,
        namespace: Option<&str>,
        kept: Option<Kept>,
    ) -> Events {
        let mut names = self.namespaces.iter();
        let only = names.next().filter(|_| self.namespaces.len() == 1);
        let selection = Selection {
            labels: self.labels.as_deref(),
            namespace: namespace.or_else(|| only.map(|it| &**it)),
            page: namespace.map(|_| PAGE_BESIDE),
            kept,
        };
        let events = kind.selected(client, selection);
        if self.namespaces.is_empty() {
            return events;
        }
        let shard = self.clone();
        let is_ours = move |event: &Event<Value>| match event {
            Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) => {
                shard.selects(&key_of(object).namespace)
            }
            Event::Init | Event::InitDone => true,
        };
        events
            .try_filter(move |event| ready(is_ours(event)))
            .boxed()
    }
}

/// What is known of owners that are not in memory here.
pub struct OtherShards {
    cluster: Cluster,
    kind: OwnerKind,
    /// Those that are there: the uid, and until when that is believed.
    alive: Cache<ObjectKey, (Box<str>, Instant)>,
    /// Those that are gone, with the uid, and until when that is believed: a restored etcd brings them back. Whoever forges a
    /// reference may name anything: so a uid alone says nothing.
    gone: Cache<(ObjectKey, Box<str>), Instant>,
}

impl OtherShards {
    pub(crate) fn new(cluster: Cluster, kind: OwnerKind) -> Self {
        Self {
            cluster,
            kind,
            alive: Cache::new(ANSWERS),
            gone: Cache::new(ANSWERS),
        }
    }

    /// Whether this owner is there, as far as that was asked.
    fn known(&self, owner: &ObjectKey, uid: &str) -> Option<bool> {
        let asked: (ObjectKey, Box<str>) = (owner.clone(), uid.into());
        if self
            .gone
            .get(&asked)
            .is_some_and(|until| Instant::now() < until)
        {
            return Some(false);
        }
        let (alive, _) = self.believed(owner)?;
        (*alive == *uid).then_some(true)
    }

    /// The uid of the owner of this name that was there a moment ago, and until when that is believed.
    fn believed(&self, owner: &ObjectKey) -> Option<(Box<str>, Instant)> {
        let believed = self.alive.get(owner);
        believed.filter(|(_, until)| Instant::now() < *until)
    }

    /// The uid of the owner of this name as the API server has it now.
    async fn ask(&self, owner: &ObjectKey) -> Result<Option<Box<str>>, RequestError> {
        let is_name = NameRule::DnsLabel.is_kept_by(&owner.namespace)
            && NameRule::Subdomain.is_kept_by(&owner.name);
        if !is_name {
            // It comes from a reference, in which anything may stand. No owner has it, and no request must.
            return Ok(None);
        }
        let uid = self.list(owner, None).await?;
        if let Some(uid) = &uid {
            let until = Instant::now() + BELIEVED;
            self.alive.insert(owner.clone(), (uid.clone(), until));
        }
        Ok(uid)
    }

    /// The uid of the owner of this name, if it has these labels.
    ///
    /// It is a list by name: the right to watch owners is enough for it, and unlike a cached read it knows of the latest.
    async fn list(
        &self,
        owner: &ObjectKey,
        labels: Option<&str>,
    ) -> Result<Option<Box<str>>, RequestError> {
        let mut path = format!(
            "/apis/{}/namespaces/{}/{}?fieldSelector=metadata.name%3D{}",
            api_types::API_VERSION,
            encode(&owner.namespace),
            self.kind.plural,
            encode(&owner.name),
        );
        if let Some(labels) = labels {
            path.push_str("&labelSelector=");
            path.push_str(&encode(labels));
        }
        let answer = self.cluster.send(Identity::Controller, Call::get(path));
        let listed = answer.await?.body;
        let uid = listed["items"][0]["metadata"]["uid"].as_str();
        Ok(uid.map(Into::into))
    }

    /// Whether this owner has these labels for certain.
    async fn has_labels(&self, owner: &ObjectKey, uid: &str, labels: &str) -> bool {
        match self.list(owner, Some(labels)).await {
            Ok(found) => found.as_deref() == Some(uid),
            Err(error) => {
                debug!(%error, "cannot tell whether the owner is still in this shard; nothing is deleted");
                false
            }
        }
    }

    /// Whether this owner is gone for certain.
    async fn is_gone(&self, owner: &ObjectKey, uid: &str) -> bool {
        match self.ask(owner).await {
            Ok(found) if found.as_deref() == Some(uid) => false,
            Ok(_) => {
                let until = Instant::now() + BELIEVED;
                self.gone.insert((owner.clone(), uid.into()), until);
                true
            }
            Err(error) => {
                debug!(%error, "cannot tell whether an owner of another shard is there; it counts as alive");
                false
            }
        }
    }
}

impl OwnerShell {
    /// Whether an owner of our kind with this namespace, name and uid exists; nothing where only the API server knows.
    fn is_live_owner(&self, namespace: &str, name: &str, uid: &str) -> Option<bool> {
        let owner = ObjectKey::new(namespace, name);
        let here = self.owners.get(&owner);
        if here.is_some_and(|here| *here.uid == *uid) {
            return Some(true);
        }
        if self.shard.takes_all_of(namespace) {
            return Some(false);
        }
        self.other_shards.known(&owner, uid)
    }

    /// Whether an owner that is in memory here has not gone to another shard meanwhile.
    ///
    /// Where labels select the owners, our watch of them may be behind that of the objects: an owner that was given to another
    /// shard, and to another blueprint, seems to be ours, and what the other shard has stamped for it seems to be left over.
    pub(crate) async fn is_still_ours(&self, owner: &ObjectKey, uid: &str) -> bool {
        match &self.shard.labels {
            Some(labels) => self.other_shards.has_labels(owner, uid, labels).await,
            None => true,
        }
    }

    /// When to look again for what an owner left behind that is not in memory; nothing when it is gone for certain.
    pub(crate) async fn rests_with_another_shard(&self, key: &ObjectKey) -> Option<Next> {
        if self.shard.takes_all_of(&key.namespace) {
            return None;
        }
        if let Some((_, until)) = self.other_shards.believed(key) {
            // It may have come here and gone since.
            return Some(Next::After(until.saturating_duration_since(Instant::now())));
        }
        match self.other_shards.ask(key).await {
            Ok(None) => None,
            Ok(Some(_)) => {
                debug!("the owner is in another shard; what it stamped is left to it");
                Some(Next::Done)
            }
            Err(error) => {
                debug!(%error, "cannot tell whether an owner of another shard is there; trying again");
                Some(Next::Backoff)
            }
        }
    }
}

/// Tells one walk which owners exist, and remembers of which it could not tell.
pub struct LiveOwners<'s> {
    shell: &'s OwnerShell,
    unknown: Mutex<BTreeSet<(ObjectKey, Box<str>)>>,
}

impl<'s> LiveOwners<'s> {
    /// Of the owners of this controller.
    pub fn new(shell: &'s OwnerShell) -> Self {
        Self {
            shell,
            unknown: Mutex::default(),
        }
    }

    /// Whether an owner with this namespace, name and uid exists. One of which that is not known does.
    pub fn has(&self, namespace: &str, name: &str, uid: &str) -> bool {
        self.shell
            .is_live_owner(namespace, name, uid)
            .unwrap_or_else(|| {
                let unknown = (ObjectKey::new(namespace, name), uid.into());
                self.unknown.lock().insert(unknown);
                true
            })
    }

    /// Asks for those of which it was not known. True when one of them is gone: what was decided has to be decided anew.
    pub(crate) async fn have_changed(&self) -> bool {
        let unknown = take(&mut *self.unknown.lock());
        let mut changed = false;
        for (owner, uid) in &unknown {
            changed |= self.shell.other_shards.is_gone(owner, uid).await;
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use realizer::Family;
    use serde_json::json;

    use super::*;
    use crate::args::Namespaces;
    use crate::metrics::Metrics;

    /// An API server that has these owners, with their uids, and what it was asked for.
    #[derive(Default)]
    struct Server {
        owners: Mutex<Vec<(&'static str, &'static str)>>,
        fails: Mutex<bool>,
        asked: Mutex<Vec<String>>,
    }

    impl Server {
        fn answer(&self, request: &Request<Body>) -> Response<Body> {
            let uri = request.uri().to_string();
            let owners = self.owners.lock();
            // All owners have the label `shard: a`.
            let asked = uri.strip_suffix("&labelSelector=shard%3Da").unwrap_or(&uri);
            let found = owners.iter().filter(|(name, _)| {
                asked == format!(
                    "/apis/carto.run/v1alpha1/namespaces/dev/workloads?fieldSelector=metadata.name%3D{name}"
                )
            });
            let items: Vec<Value> = found
                .map(|(name, uid)| json!({"metadata": {"name": name, "uid": uid}}))
                .collect();
            self.asked.lock().push(uri.clone());
            let mut response =
                Response::new(Body::from(json!({"items": items}).to_string().into_bytes()));
            if *self.fails.lock() {
                *response.status_mut() = StatusCode::FORBIDDEN;
            }
            response
        }
    }

    fn others(server: &Arc<Server>) -> OtherShards {
        let server = server.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = server.answer(&request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let client = kube::Client::new(service, "default");
        let cluster = Cluster::new(client.clone(), client, Arc::new(Metrics::new()));
        OtherShards::new(cluster, Family::SupplyChain.into())
    }

    #[tokio::test]
    async fn an_owner_is_gone_when_the_api_server_says_so_and_not_before() {
        let server = Arc::new(Server::default());
        let others = others(&server);
        let owner = ObjectKey::new("dev", "app");
        *server.owners.lock() = vec![("app", "1")];
        assert_eq!(others.known(&owner, "1"), None);
        assert!(!others.is_gone(&owner, "1").await);
        assert_eq!(others.known(&owner, "1"), Some(true));
        // One that was deleted and made anew has another uid.
        assert_eq!(others.known(&owner, "0"), None);
        assert!(others.is_gone(&owner, "0").await);
        assert_eq!(others.known(&owner, "0"), Some(false));
        assert_eq!(others.known(&owner, "1"), Some(true));
        *server.fails.lock() = true;
        assert!(
            !others.is_gone(&owner, "2").await,
            "who is not told does not know"
        );
        assert_eq!(others.known(&owner, "2"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn that_an_owner_is_there_is_believed_for_a_while_only() {
        let server = Arc::new(Server::default());
        let others = others(&server);
        let owner = ObjectKey::new("dev", "app");
        *server.owners.lock() = vec![("app", "1")];
        others.ask(&owner).await.unwrap();
        assert_eq!(others.known(&owner, "1"), Some(true));
        tokio::time::advance(BELIEVED).await;
        assert_eq!(others.known(&owner, "1"), None);
    }

    #[tokio::test(start_paused = true)]
    async fn that_an_owner_is_gone_is_believed_for_a_while_only() {
        let server = Arc::new(Server::default());
        let others = others(&server);
        let owner = ObjectKey::new("dev", "app");
        assert!(others.is_gone(&owner, "1").await);
        assert_eq!(others.known(&owner, "1"), Some(false));
        // etcd was restored.
        *server.owners.lock() = vec![("app", "1")];
        tokio::time::advance(BELIEVED).await;
        assert_eq!(others.known(&owner, "1"), None);
    }

    #[tokio::test]
    async fn an_owner_is_ours_as_long_as_it_has_the_labels_for_certain() {
        let server = Arc::new(Server::default());
        let others = others(&server);
        let owner = ObjectKey::new("dev", "app");
        *server.owners.lock() = vec![("app", "1")];
        assert!(others.has_labels(&owner, "1", "shard=a").await);
        assert!(
            !others.has_labels(&owner, "1", "shard=b").await,
            "it went to another shard"
        );
        assert!(
            !others.has_labels(&owner, "0", "shard=a").await,
            "it is another one"
        );
        *server.fails.lock() = true;
        assert!(
            !others.has_labels(&owner, "1", "shard=a").await,
            "nobody knows"
        );
    }

    /// Whoever may write an object may write any owner reference.
    #[tokio::test]
    async fn what_is_no_name_is_not_asked_for_and_another_name_says_nothing_of_a_uid() {
        let server = Arc::new(Server::default());
        let others = others(&server);
        *server.owners.lock() = vec![("app", "1")];
        for (namespace, name) in [
            ("dev", "app,metadata.namespace!=dev"),
            ("dev/../../x", "app"),
            ("dev", "App"),
            ("dev", ""),
        ] {
            assert!(others.is_gone(&ObjectKey::new(namespace, name), "1").await);
        }
        assert_eq!(*server.asked.lock(), Vec::<String>::new());
        assert!(others.is_gone(&ObjectKey::new("dev", "other"), "1").await);
        let owner = ObjectKey::new("dev", "app");
        assert_eq!(others.known(&owner, "1"), None);
        assert!(!others.is_gone(&owner, "1").await);
    }

    #[test]
    fn a_shard_has_a_name_and_a_name_has_a_shard() {
        let named = |name: Option<&str>, labels: Option<&str>, namespaces: &[&str]| {
            let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
            Shard::new(&ShardArgs {
                shard: name.map(str::to_owned),
                watch_label_selector: labels.map(str::to_owned),
                watch_namespaces: Some(Namespaces(namespaces)),
                share_owners: false,
            })
        };
        assert_eq!(named(None, None, &[]), Ok(Shard::default()));
        assert_eq!(named(None, Some("a=b"), &[]), Err(ShardError::Unnamed));
        assert_eq!(named(None, None, &["dev"]), Err(ShardError::Unnamed));
        assert_eq!(named(Some("a"), None, &[]), Err(ShardError::Whole));
        let of_namespace = named(Some("a"), None, &["dev"]).unwrap();
        assert!(of_namespace.takes_all_of("dev") && !of_namespace.takes_from("prod"));
        let of_labels = named(Some("a"), Some("a=b"), &["dev"]).unwrap();
        assert!(of_labels.takes_from("dev") && !of_labels.takes_all_of("dev"));
    }
}
