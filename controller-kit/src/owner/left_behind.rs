//! Cluster-scoped objects whose owner is gone.
//!
//! The garbage collector cannot delete them: an owner reference from a cluster-scoped object to an owner in a namespace means
//! nothing to it, and the object stays for ever, a ClusterRole for instance, with all that it allows. So they are deleted
//! here, when the deletion of the owner is seen, and, if that was missed, when the objects are listed after a restart. It is
//! done with the rights of the service account that made them. Without that account they stay, and the log says so.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{info, warn};

use super::OwnerShell;
use crate::mapper::{Kind, MapError, Served};
use crate::scheduler::Next;
use crate::stamped::{ObjectKey, Projection, Stamped};
use crate::tokens::Account;

/// A kind that is not served may come with an aggregated API, of which no definition tells.
const NOT_SERVED: Duration = Duration::from_mins(5);

/// An API whose server is dead takes a minute to say nothing: it is not asked for each of its kinds all the time.
const NOT_KNOWN: Duration = Duration::from_mins(1);

/// Uses the watches of kinds of which something may have been left behind. No owner has this uid.
const CLEANING: &str = "objects left behind";

impl OwnerShell {
    /// Whether an owner that is gone, or in another shard now, left cluster-scoped objects behind.
    pub(crate) fn has_left_behind(&self, key: &ObjectKey) -> bool {
        !self.left_behind(key).is_empty()
    }

    /// Deletes the cluster-scoped objects of an owner that is gone; nothing as long as it is there, in whatever shard.
    pub async fn clean_up(&self, key: &ObjectKey) -> Next {
        let left_behind = self.left_behind(key);
        if left_behind.is_empty() {
            return Next::Done;
        }
        if let Some(next) = self.rests_with_another_shard(key).await {
            return next;
        }
        let mut next = Next::Done;
        for (served, object) in left_behind {
            if object.terminating {
                continue;
            }
            let resource = served.qualified();
            let name = &*object.key.name;
            match self.remove_left_behind(&served, &object).await {
                Ok(()) => info!(%resource, name, "deleted an object whose owner is gone"),
                Err(why) => {
                    warn!(%resource, name, %why, "cannot delete an object whose owner is gone; delete it by hand or grant the right to its service account");
                    next = Next::Slow;
                }
            }
        }
        next
    }

    async fn remove_left_behind(&self, served: &Served, object: &Stamped) -> Result<(), String> {
        let (account, submitter) = (self.account_of(object)?, &self.submitter);
        let removed = submitter.remove_left_behind(&account, served, object);
        removed.await
    }

    fn account_of(&self, object: &Stamped) -> Result<Account, String> {
        let text = object.annotations.account.as_deref().unwrap_or_default();
        let (namespace, name) = text
            .split_once('/')
            .ok_or("annotation carto.run/service-account does not name the account that made it")?;
        let key = ObjectKey::new(namespace, name);
        let account = self.accounts.get(&key);
        let account = account.ok_or_else(|| format!("service account [{text}] is gone, too"))?;
        Ok(Account::new(&key, &account.uid))
    }

    fn left_behind(&self, key: &ObjectKey) -> Vec<(Arc<Served>, Arc<Stamped>)> {
        if self.owners.get(key).is_some() || !self.shard.takes_from(&key.namespace) {
            return Vec::new();
        }
        let mut found = self.submitter.watches().owned_by(key, "");
        found.retain(|(_, object)| object.belongs_to(self.kind.kind, key, ""));
        found
    }

    /// Has the cluster-scoped ones of these kinds watched, also while no owner uses them: after a restart only a listing
    /// shows what an owner left behind that went meanwhile.
    pub async fn watch_for_left_behind(&self, kinds: BTreeSet<Kind>) {
        let watches = self.submitter.watches();
        let mut watched = watches.cluster_scoped_kinds();
        for kind in kinds {
            if self.is_cluster_scoped(&kind).await {
                watched.insert(kind);
            }
        }
        for kind in &watched {
            if let Ok(served) = self.submitter.mapper().served(kind).await {
                watches.ensure(&served, &Projection::default());
            }
        }
        watches.set_uses(CLEANING, watched);
    }

    /// Asked once for each kind that is served, until a definition of its group changes. A kind that is not served has no
    /// objects.
    async fn is_cluster_scoped(&self, kind: &Kind) -> bool {
        let now = Instant::now();
        if let Some(known) = self.scopes.0.lock().get(kind)
            && known.until.is_none_or(|until| now < until)
        {
            return known.is_cluster_scoped;
        }
        let (is_cluster_scoped, holds_for) = match self.submitter.mapper().served(kind).await {
            Ok(served) => (!served.namespaced, None),
            Err(MapError::NotServed { .. }) => (false, Some(NOT_SERVED)),
            Err(MapError::Discovery { .. }) => (false, Some(NOT_KNOWN)),
        };
        let scope = Scope {
            is_cluster_scoped,
            until: holds_for.map(|time| now + time),
        };
        self.scopes.0.lock().insert(kind.clone(), scope);
        is_cluster_scoped
    }
}

/// Which kinds are cluster-scoped, of those that templates name.
#[derive(Default)]
pub struct Scopes(Mutex<BTreeMap<Kind, Scope>>);

/// What is known of a kind.
struct Scope {
    is_cluster_scoped: bool,
    /// Then it is asked again.
    until: Option<Instant>,
}

impl Scopes {
    /// A definition of this group changed.
    pub(crate) fn forget_group(&self, group: &str) {
        self.0.lock().retain(|kind, _| kind.group() != group);
    }

    /// Definitions may have changed unseen.
    pub(crate) fn forget_all(&self) {
        self.0.lock().clear();
    }
}
