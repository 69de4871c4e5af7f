//! What the bench writes as users of the platform, and takes away again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use serde_json::{Value, json};
use test_support::eventually;

use super::{LIMIT, World};
use crate::api::{Api, CONFIG_MAPS, Kind, NAMESPACES, STEPS};
use crate::census::Census;
use crate::layout::{Key, namespaces, namespaces_of};
use crate::objects::{account, new_revision};
use crate::seen::Seen;

const SETUP_IN_FLIGHT: usize = 16;

impl World {
    /// Makes so many namespaces, each with a ServiceAccount and its rights, and waits until the control
    /// plane has done its own part in them.
    pub(crate) async fn furnish(&self, prefix: &str, count: usize) -> anyhow::Result<()> {
        let namespaces = namespaces(prefix, count);
        let made = self.client.each(SETUP_IN_FLIGHT, namespaces, furnish);
        made.await?;
        let what = format!("kube-controller-manager furnishes {count} namespaces");
        eventually(&what, LIMIT, async || {
            let published = self.published(prefix).await?;
            ensure!(published >= count, "{published} so far");
            anyhow::Ok(())
        })
        .await;
        Ok(())
    }

    /// Namespaces that have got their ConfigMap, which is the last thing the control plane does in a new one.
    async fn published(&self, prefix: &str) -> anyhow::Result<usize> {
        let field = "fieldSelector=metadata.name%3Dkube-root-ca.crt";
        let path = format!("{}?{field}", CONFIG_MAPS.everywhere());
        let maps = self.client.read(&path).await?;
        let is_ours = |map: &&Value| {
            let namespace = map["metadata"]["namespace"].as_str().unwrap_or_default();
            Key::new(namespace, "").is_of(prefix)
        };
        let maps = maps["items"].as_array().into_iter().flatten();
        Ok(maps.filter(is_ours).count())
    }

    /// Creates these owners of the controller, so many at a time; each is made when its turn comes.
    pub(crate) async fn create_owners(
        &self,
        concurrency: usize,
        owners: impl Iterator<Item = (Key, anyhow::Result<Value>)>,
    ) -> anyhow::Result<()> {
        let kind = self.family.owners;
        let create = move |client: Api, (key, object): (Key, anyhow::Result<Value>)| async move {
            let collection = kind.within(&key.namespace);
            client.create(&collection, &object?).await.map(drop)
        };
        self.client.each(concurrency, owners, create).await
    }

    /// Merges a patch into these owners of the controller, so many at a time.
    pub(crate) async fn patch_owners(
        &self,
        concurrency: usize,
        owners: Vec<Key>,
        patch: &Value,
    ) -> anyhow::Result<()> {
        let (kind, patch) = (self.family.owners, Arc::new(patch.clone()));
        let merge = move |client: Api, key: Key| {
            let patch = patch.clone();
            async move { client.merge(&kind.at(&key), &patch).await }
        };
        self.client.each(concurrency, owners, merge).await
    }

    /// Gives an owner of the bare client a new source or input, and waits until that is seen; its uid, and the moment before.
    pub(crate) async fn change_bare(
        &self,
        owner: &Key,
        revision: &str,
    ) -> anyhow::Result<(String, Instant)> {
        let (family, before) = (self.family.bare(), self.bare_owners.get(owner)?);
        let generation = before.metadata.generation;
        let is_newer = move |now: &Seen| now.metadata.generation > generation;
        let changed = self.bare_owners.when(owner, is_newer);
        let (path, patch) = (family.owners.at(owner), new_revision(family, revision));
        let start = Instant::now();
        self.client.merge(&path, &patch).await?;
        changed.await?;
        Ok((before.metadata.uid, start))
    }

    /// Removes all owners and stamped objects of so many owners of the bare client; nothing is left to garbage collection.
    pub(crate) async fn clear(&self, prefix: &'static str, owners: usize) -> anyhow::Result<()> {
        let namespaces = namespaces(prefix, namespaces_of(owners));
        for kind in [STEPS, self.family.bare().owners] {
            let deleted = self.delete_all(SETUP_IN_FLIGHT, kind, namespaces.clone());
            deleted.await?;
        }
        let in_these = move |key: &Key| key.is_of(prefix);
        are_gone(&self.bare_owners, &self.steps, in_these).await
    }

    /// Removes these owners of the controller, who share their namespaces with no others, and waits until garbage collection
    /// has taken their objects.
    pub(crate) async fn remove(&self, owners: &[Key]) -> anyhow::Result<()> {
        let namespaces = owners.iter().map(|owner| owner.namespace.clone());
        let namespaces: BTreeSet<String> = namespaces.collect();
        let all = namespaces.iter().cloned().collect();
        let deleted = self.delete_all(SETUP_IN_FLIGHT, self.family.owners, all);
        deleted.await?;
        let in_these = move |key: &Key| namespaces.contains(&key.namespace);
        are_gone(&self.owners, &self.steps, in_these).await
    }

    /// Deletes all objects of a kind, a namespace at a time.
    pub(crate) async fn delete_all(
        &self,
        concurrency: usize,
        kind: Kind,
        namespaces: Vec<String>,
    ) -> anyhow::Result<()> {
        let delete = move |client: Api, namespace: String| async move {
            client.delete(&kind.within(&namespace)).await
        };
        self.client.each(concurrency, namespaces, delete).await
    }
}

async fn are_gone(
    owners: &Census,
    steps: &Census,
    these: impl Fn(&Key) -> bool + Clone + Send + Sync + 'static,
) -> anyhow::Result<()> {
    owners.emptied("the owners are gone", these.clone()).await?;
    steps.emptied("their stamped objects are gone", these).await
}

async fn furnish(client: Api, namespace: String) -> anyhow::Result<()> {
    let itself = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    client.create(&NAMESPACES.everywhere(), &itself).await?;
    for (kind, object) in account(&namespace)? {
        client.create(&kind.within(&namespace), &object).await?;
    }
    Ok(())
}
