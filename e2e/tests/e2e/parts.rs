//! Values by which one controller becomes several Deployments: a webhook of its own, and shards. Each runs with the flags and
//! the rights that the chart gives it, and with no others.

use std::collections::BTreeSet;

use e2e::Helm;
use e2e::binaries::{SUPPLY_CHAIN_CONTROLLER, workspace};
use e2e::helm::chart;
use e2e::stack::{Deployed, forbidden_requests, user};
use serde_json::{Value, json};
use test_support::{
    CONTROLLERS_NAMESPACE, ControlPlane, as_yaml, documents, eventually, objects_in,
};

use crate::LIMIT;

const WEBHOOK: &str = "supplychain-controller-webhook";
const CONFIGURATION: &str = "validatingwebhookconfigurations.admissionregistration.k8s.io named carto-supplychain-controller";
/// Only makes sense inside a cluster: here the controllers run beside it, and the API server reaches no Service.
const INSIDE: [&str; 3] = ["Deployment", "Service", "ValidatingWebhookConfiguration"];

const REFUSED: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec: {selector: {}, resources: []}
";

/// One owner for each shard, and one that none takes.
const OWNERS: &str = "
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: of-the-namespace, namespace: dev}
spec: {serviceAccountName: app}
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: of-the-label, namespace: prod, labels: {team: web}}
spec: {serviceAccountName: app}
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: of-nobody, namespace: prod}
spec: {serviceAccountName: app}
";

fn values() -> Value {
    let others = [
        "delivery-controller",
        "runnable-controller",
        "conventions-controller",
    ];
    let mut values = json!({
        "crds": {"enabled": false},
        "namespace": {"create": true},
        SUPPLY_CHAIN_CONTROLLER: {
            "webhook": {"ownDeployment": true},
            "shareOwners": true,
            "shards": [
                {"name": "dev", "namespaces": ["dev", "test"]},
                {"name": "web", "labelSelector": "team in (web, shop),!old"},
            ],
        },
    });
    for other in others {
        values[other] = json!({"enabled": false});
    }
    values
}

/// What helm makes of the values.
fn made() -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values().to_string()).unwrap();
    let helm = Helm::new().unwrap();
    let made = helm.render_as("carto", &chart("carto"), CONTROLLERS_NAMESPACE, &file);
    documents(&made.unwrap()).unwrap()
}

/// Applies it, and waits until all rights are in force.
async fn install(plane: &ControlPlane, made: &[Value]) {
    plane
        .install_crds(workspace().join("deploy/crds"))
        .await
        .unwrap();
    let beside = made.iter();
    let beside = beside.filter(|object| !INSIDE.iter().any(|kind| object["kind"] == *kind));
    let beside: Vec<Value> = beside.cloned().collect();
    plane.apply_yaml(&as_yaml(&beside)).await.unwrap();
    for namespace in ["dev", "prod"] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        plane.apply_yaml(&namespace.to_string()).await.unwrap();
    }
    let controller = user(SUPPLY_CHAIN_CONTROLLER);
    for shard in ["dev", "web"] {
        let lease = format!(
            "update leases.coordination.k8s.io in {CONTROLLERS_NAMESPACE} named {SUPPLY_CHAIN_CONTROLLER}-{shard}"
        );
        plane.until_it_may(&controller, &lease).await;
    }
    plane
        .until_it_may(&controller, "watch serviceaccounts")
        .await;
    plane
        .until_it_may(&user(WEBHOOK), &format!("patch {CONFIGURATION}"))
        .await;
    let certificate = format!("update secrets in {CONTROLLERS_NAMESPACE} named {WEBHOOK}");
    plane.until_it_may(&user(WEBHOOK), &certificate).await;
}

/// The resources that somebody has asked the API server for.
fn asked_for(plane: &ControlPlane, who: &str) -> BTreeSet<String> {
    let asked = plane.audit_events().unwrap().into_iter();
    let asked = asked.filter(|event| event.user.username == user(who));
    asked
        .filter_map(|event| Some(event.object_ref?.resource))
        .collect()
}

async fn has_been_looked_at(plane: &ControlPlane, namespace: &str, name: &str) {
    let client = plane.client().unwrap();
    let owners = objects_in(&client, namespace, "carto.run/v1alpha1", "Workload");
    eventually(&format!("{name} has a status"), LIMIT, async || {
        let owner = owners.get(name).await.unwrap();
        owner.data["status"]["conditions"].is_array().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_webhook_of_its_own_and_shards_have_the_rights_that_they_need_and_no_others() {
    let plane = ControlPlane::builder().audit().start().await.unwrap();
    let made = made();
    install(&plane, &made).await;
    for (who, right) in [
        (WEBHOOK, "create serviceaccounts/token in dev named app"),
        (WEBHOOK, "list workloads.carto.run"),
        (
            WEBHOOK,
            "list secrets in carto-system named carto-status-key",
        ),
        (SUPPLY_CHAIN_CONTROLLER, &*format!("patch {CONFIGURATION}")),
        (
            SUPPLY_CHAIN_CONTROLLER,
            "update secrets in carto-system named supplychain-controller-webhook",
        ),
        (
            SUPPLY_CHAIN_CONTROLLER,
            "update leases.coordination.k8s.io in carto-system named supplychain-controller",
        ),
    ] {
        assert!(
            !plane.may(&user(who), right).await.unwrap(),
            "{who} may {right}"
        );
    }

    let deployed = |name: &str| Deployed::of(&made, name, SUPPLY_CHAIN_CONTROLLER).unwrap();
    let _webhook = deployed(WEBHOOK).start(&plane, &[]).await.unwrap();
    let refused = plane.apply_yaml(REFUSED).await.unwrap_err();
    let text = format!("{refused:#}");
    assert!(
        text.contains("supply-chain-validator.cartographer.com"),
        "{text}"
    );
    let its_own = ["secrets", "validatingwebhookconfigurations"].map(str::to_owned);
    assert_eq!(asked_for(&plane, WEBHOOK), BTreeSet::from(its_own));

    plane.apply_yaml(OWNERS).await.unwrap();
    let _dev = deployed("supplychain-controller-dev")
        .start(&plane, &[])
        .await
        .unwrap();
    let _web = deployed("supplychain-controller-web")
        .start(&plane, &[])
        .await
        .unwrap();
    has_been_looked_at(&plane, "dev", "of-the-namespace").await;
    has_been_looked_at(&plane, "prod", "of-the-label").await;
    let client = plane.client().unwrap();
    let owners = objects_in(&client, "prod", "carto.run/v1alpha1", "Workload");
    let left = owners.get("of-nobody").await.unwrap();
    assert!(left.data["status"].is_null(), "{:?}", left.data);
    let asked = asked_for(&plane, SUPPLY_CHAIN_CONTROLLER);
    assert!(
        !asked.contains("validatingwebhookconfigurations"),
        "{asked:?}"
    );
    for who in [WEBHOOK, SUPPLY_CHAIN_CONTROLLER] {
        assert_eq!(forbidden_requests(&plane, who).unwrap(), [""; 0], "{who}");
    }
}
