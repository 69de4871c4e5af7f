//! Runnables and Deliverables, which are judged as Workloads are.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use test_support::all_objects;

use crate::installation::Installation;

const NONE: [Value; 0] = [];
const OURS: &str = "carto.run/v1alpha1";

const RUN_TEMPLATE: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {name: tests}
spec:
  outputs: {result: .status.result}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {generateName: $(runnable.metadata.name)$-}
    spec: {value: {revision: $(runnable.spec.inputs.revision)$}}
";

const RUNNABLE: &str = r"
apiVersion: carto.run/v1alpha1
kind: Runnable
metadata: {name: unit}
spec: {serviceAccountName: sa, runTemplateRef: {name: tests}, inputs: {revision: a}}
";

const DELIVERY: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: fetched}
spec:
  urlPath: .data.url
  revisionPath: .data.revision
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(deliverable.metadata.name)$-fetched}
    data: {url: $(deliverable.spec.source.git.url)$, revision: '1'}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: deployed}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(deliverable.metadata.name)$-deployed}
    data: {from: $(source.url)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterDelivery
metadata: {name: delivery}
spec:
  selector: {type: web}
  resources:
    - {name: source, templateRef: {kind: ClusterSourceTemplate, name: fetched}}
    - {name: deploy, templateRef: {kind: ClusterTemplate, name: deployed}, sources: [{name: source, resource: source}]}
";

const DELIVERABLE: &str = r"
apiVersion: carto.run/v1alpha1
kind: Deliverable
metadata: {name: shop, labels: {type: web}}
spec: {serviceAccountName: sa, source: {git: {url: https://git.example/shop, ref: {branch: main}}}}
";

async fn owner(installation: &Installation, kind: &str, name: &str) -> Value {
    installation.stage.get(OURS, kind, name).await.unwrap()
}

fn owned_by(owner: &Value) -> Value {
    json!([{"apiVersion": OURS, "kind": owner["kind"], "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true}])
}

/// A Runnable, and the run that the Go controller made for it.
async fn run(installation: &Installation) {
    let stage = &installation.stage;
    stage.apply(RUN_TEMPLATE).await;
    stage.apply(RUNNABLE).await;
    let runnable = owner(installation, "Runnable", "unit").await;
    let left = json!({"apiVersion": "test.run/v1alpha1", "kind": "Test",
        "metadata": {"name": "unit-x7k2p", "namespace": stage.namespace, "ownerReferences": owned_by(&runnable),
            "labels": {"carto.run/runnable-name": "unit", "carto.run/run-template-name": "tests"}},
        "spec": {"value": {"revision": "a"}}});
    stage.create_as("cartographer", left).await;
    let ended =
        json!({"result": "passed", "conditions": [{"type": "Succeeded", "status": "True"}]});
    stage.report("unit-x7k2p", ended).await;
}

/// A Deliverable, and what the Go controller made of it.
async fn deliver(installation: &Installation) {
    let stage = &installation.stage;
    stage.apply(DELIVERY).await;
    let ready = json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2023-05-01T00:00:00Z"}]}});
    all_objects(&stage.client, OURS, "ClusterDelivery")
        .patch_status("delivery", &PatchParams::default(), &Patch::Merge(ready))
        .await
        .unwrap();
    stage.apply(DELIVERABLE).await;
    let deliverable = owner(installation, "Deliverable", "shop").await;
    let url = "https://git.example/shop";
    for (step, kind, template, data) in [
        (
            "source",
            "ClusterSourceTemplate",
            "fetched",
            json!({"url": url, "revision": "1"}),
        ),
        (
            "deploy",
            "ClusterTemplate",
            "deployed",
            json!({"from": url}),
        ),
    ] {
        let left = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": format!("shop-{template}"), "namespace": stage.namespace, "ownerReferences": owned_by(&deliverable),
                "labels": {"carto.run/deliverable-name": "shop", "carto.run/deliverable-namespace": stage.namespace,
                    "carto.run/delivery-name": "delivery", "carto.run/resource-name": step, "carto.run/template-kind": kind,
                    "carto.run/cluster-template-name": template, "carto.run/template-lifecycle": "mutable"}}});
        stage.create_as("cartographer", left).await;
    }
}

#[tokio::test]
async fn a_plan_judges_runnables_and_deliverables_as_it_does_workloads() {
    let installation = Installation::of(0).await;
    run(&installation).await;
    deliver(&installation).await;
    let (is_clear, plan) = installation.plan().await;
    assert!(is_clear, "{plan:#}");
    assert_eq!(plan["judgedOwners"], 2);
    for none in ["runs", "changes", "removals", "refused", "held", "unjudged"] {
        assert_eq!(plan[none], json!(NONE), "{none}");
    }

    // While no controller looked, an input and a source were changed.
    let stage = &installation.stage;
    let next = json!({"spec": {"inputs": {"revision": "b"}}});
    stage.edit(OURS, "Runnable", "unit", next).await;
    let moved = json!({"spec": {"source": {"git": {"url": "https://git.example/other"}}}});
    stage.edit(OURS, "Deliverable", "shop", moved).await;
    let (is_clear, plan) = installation.plan().await;
    assert!(!is_clear);
    let namespace = &stage.namespace;
    assert_eq!(plan["runs"].as_array().unwrap().len(), 1, "{plan:#}");
    let started = &plan["runs"][0];
    assert_eq!(
        started["owner"],
        json!(format!("Runnable {namespace}/unit"))
    );
    assert_eq!(started["newest"], "unit-x7k2p");
    assert_eq!(started["fields"], json!(["spec.value.revision"]));
    // What takes the output of an object that would change is judged by the output of today.
    assert_eq!(plan["changes"].as_array().unwrap().len(), 1, "{plan:#}");
    let change = &plan["changes"][0];
    assert_eq!(
        change["owner"],
        json!(format!("Deliverable {namespace}/shop"))
    );
    assert_eq!(change["step"], "source");
    assert_eq!(change["fields"], json!(["data.url"]));
    assert_eq!(stage.tests().await.len(), 1, "nothing was made");
    let map = stage.get("v1", "ConfigMap", "shop-fetched").await.unwrap();
    assert_eq!(map["data"]["url"], "https://git.example/shop");
}
