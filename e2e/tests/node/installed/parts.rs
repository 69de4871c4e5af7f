//! Values by which one controller becomes several Deployments, and several replicas share the owners.

use std::collections::BTreeMap;

use anyhow::ensure;
use e2e::example::NAMESPACE;
use serde_json::json;

use super::Installed;
use super::cluster::deployments;

/// Each Deployment, and how many of its Pods are ready.
const PARTS: [(&str, i32); 6] = [
    ("conventions-controller", 2),
    ("delivery-controller", 2),
    ("runnable-controller", 3),
    ("supplychain-controller-dev", 2),
    ("supplychain-controller-rest", 2),
    ("supplychain-controller-webhook", 2),
];

/// The webhook gets a Deployment of its own, and the owners are divided among shards and replicas. The example goes on, also
/// after a controller was switched off and on again.
pub(super) async fn take_over_from_one(installed: &Installed<'_>) -> anyhow::Result<()> {
    let mut values = installed.release.values().clone();
    let supply_chain = &mut values["supplychain-controller"];
    supply_chain["webhook"]["ownDeployment"] = json!(true);
    supply_chain["shareOwners"] = json!(true);
    supply_chain["shards"] = json!([
        {"name": "dev", "namespaces": [NAMESPACE]},
        {"name": "rest", "labelSelector": "team in (web, shop),!old"},
    ]);
    values["delivery-controller"]["shareOwners"] = json!(true);
    values["runnable-controller"]["shareOwners"] = json!(true);
    values["runnable-controller"]["replicas"] = json!(3);
    installed.release.upgrade(&values)?;
    let mut expected = BTreeMap::from(PARTS.map(|(name, ready)| (name.to_owned(), ready)));
    let found = ready(installed).await?;
    ensure!(found == expected, "{found:#?}");
    installed.a_commit_arrives("Salut").await?;

    values["delivery-controller"]["replicas"] = json!(0);
    installed.release.upgrade(&values)?;
    expected.insert("delivery-controller".to_owned(), 0);
    let found = ready(installed).await?;
    ensure!(found == expected, "{found:#?}");
    installed.release.rollback()?;
    installed.a_commit_arrives("Ciao").await
}

/// How many Pods of each Deployment are.
async fn ready(installed: &Installed<'_>) -> anyhow::Result<BTreeMap<String, i32>> {
    let found = deployments(installed.stack).await?;
    Ok(found
        .into_iter()
        .map(|it| {
            let ready = it.status.and_then(|status| status.ready_replicas);
            (it.metadata.name.unwrap_or_default(), ready.unwrap_or(0))
        })
        .collect())
}
