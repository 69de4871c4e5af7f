//! What an operator does with a node and with certificates.

use std::collections::BTreeSet;

use anyhow::{bail, ensure};
use e2e::AdmissionLoad;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, EvictParams};
use serde_json::Value;
use test_support::{all_objects, eventually};

use super::cluster::{cordon, every_replica_is_ready, pods, ready, secrets};
use super::{Installed, LIMIT};

const WEBHOOK: &str = "supplychain-controller";
const WEBHOOK_SECRET: &str = "supplychain-controller-webhook";
const WEBHOOK_CONFIGURATION: &str = "carto-supplychain-controller";

/// While a node is drained as `kubectl drain` does it, one Pod of each controller stays, and the webhook answers. The last
/// ones go only when others have come: on one node that is after it may be used again.
pub(super) async fn the_node_is_drained(installed: &Installed<'_>) -> anyhow::Result<()> {
    let stack = installed.stack;
    let pods = pods(stack)?;
    let before = ready(&pods).await?;
    let load = AdmissionLoad::begin(&stack.control_plane)?;
    cordon(stack, true).await?;
    let (evicted, kept) = evict(&pods, &before).await?;
    ensure!(
        evicted.len() == kept.len(),
        "evicted {evicted:?}, kept {kept:?}"
    );
    eventually("evicted Pods are gone", LIMIT, async || {
        let now = ready(&pods).await?;
        ensure!(now == kept, "{now:?}");
        anyhow::Ok(())
    })
    .await;
    let (second, _) = evict(&pods, &kept).await?;
    ensure!(second.is_empty(), "no budget kept {second:?}");
    cordon(stack, false).await?;
    every_replica_is_ready(stack).await?;
    let (second, _) = evict(&pods, &kept).await?;
    ensure!(second == kept, "only {second:?} of {kept:?} were evicted");
    every_replica_is_ready(stack).await?;
    let after = ready(&pods).await?;
    ensure!(after.is_disjoint(&before), "{after:?} {before:?}");
    load.end()?;
    installed.a_commit_arrives("Hola").await
}

/// Asks for the eviction of these Pods; returns those that go, and those that a budget keeps.
async fn evict(
    pods: &Api<Pod>,
    names: &BTreeSet<String>,
) -> anyhow::Result<(BTreeSet<String>, BTreeSet<String>)> {
    let (mut evicted, mut kept) = (BTreeSet::new(), BTreeSet::new());
    for name in names {
        match pods.evict(name, &EvictParams::default()).await {
            Ok(_) => evicted.insert(name.clone()),
            Err(kube::Error::Api(status)) if status.code == 429 => kept.insert(name.clone()),
            Err(error) => bail!("{name}: {error}"),
        };
    }
    Ok((evicted, kept))
}

/// A webhook whose Secret is gone makes another key and another authority, and no request notices.
pub(super) async fn certificates_are_rotated(installed: &Installed<'_>) -> anyhow::Result<()> {
    let stack = installed.stack;
    let secrets = secrets(stack)?;
    let before = secrets.get(WEBHOOK_SECRET).await?.data;
    let trusted = authorities(installed).await?;
    let load = AdmissionLoad::begin(&stack.control_plane)?;
    secrets
        .delete(WEBHOOK_SECRET, &DeleteParams::default())
        .await?;
    let after = eventually("there is another certificate", LIMIT, async || {
        let found = secrets.get(WEBHOOK_SECRET).await?.data;
        ensure!(found != before, "it is as before");
        anyhow::Ok(Some(found))
    })
    .await;
    eventually("the API server is told of it", LIMIT, async || {
        let now = authorities(installed).await?;
        ensure!(now != trusted, "the authorities are as before");
        anyhow::Ok(())
    })
    .await;
    ensure!(
        secrets.get(WEBHOOK_SECRET).await?.data == after,
        "made twice"
    );
    // Long enough for all replicas to have read it.
    installed.a_commit_arrives("Ciao").await?;
    load.end()?;
    Ok(())
}

async fn authorities(installed: &Installed<'_>) -> anyhow::Result<Value> {
    let configurations = all_objects(
        &installed.stack.control_plane.client()?,
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
    );
    let mut found = configurations.get(WEBHOOK_CONFIGURATION).await?;
    let first = found.data["webhooks"][0]["clientConfig"]["caBundle"].take();
    ensure!(first.is_string(), "{WEBHOOK} has no authority");
    Ok(first)
}
