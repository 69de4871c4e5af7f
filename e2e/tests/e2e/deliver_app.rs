//! examples/deliver-app, from the repository to what it describes, with real Flux.

use anyhow::ensure;
use e2e::binaries::{DELIVERY_CONTROLLER, SUPPLY_CHAIN_CONTROLLER};
use e2e::{DeliverApp, Delivery, Stack, example};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use serde_json::Value;
use test_support::eventually;

use crate::LIMIT;
use crate::rights::nothing_was_forbidden;

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: greeter}
spec:
  replicas: 0
  selector: {matchLabels: {app: greeter}}
  template:
    metadata: {labels: {app: greeter}}
    spec: {containers: [{name: app, image: registry.example.com/greeter}]}
";
const GREETING: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: greeting}
data: {text: Hello}
";

fn kustomization(files: &[&str]) -> String {
    format!(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [{}]\n",
        files.join(", ")
    )
}

#[tokio::test]
async fn the_example_follows_commits_and_says_why_one_cannot_be_delivered() {
    let stack = Stack::start(|_| {}).await.unwrap();
    let _delivery = Delivery::start(&stack).await.unwrap();
    let app = DeliverApp::prepare(&stack).await.unwrap();
    let farewell = GREETING.replace("name: greeting", "name: farewell");
    let first = app
        .commit(
            &[
                (
                    "kustomization.yaml",
                    &kustomization(&["deployment.yaml", "greeting.yaml", "farewell.yaml"]),
                ),
                ("deployment.yaml", DEPLOYMENT),
                ("greeting.yaml", GREETING),
                ("farewell.yaml", &farewell),
            ],
            "Say hello",
        )
        .unwrap();
    app.hand_in().await.unwrap();
    delivered(&app, "Hello", &first).await;
    let deployments: Api<Deployment> =
        Api::namespaced(stack.control_plane.client().unwrap(), example::NAMESPACE);
    deployments.get("greeter").await.unwrap();
    assert!(app.setting("farewell", "text").await.unwrap().is_some());

    let moin = GREETING.replace("Hello", "Moin");
    let without_farewell = kustomization(&["deployment.yaml", "greeting.yaml"]);
    let second = app
        .commit(
            &[
                ("kustomization.yaml", &without_farewell),
                ("greeting.yaml", &moin),
            ],
            "Say moin, and no farewell",
        )
        .unwrap();
    delivered(&app, "Moin", &second).await;
    eventually("what left the repository is gone", LIMIT, async || {
        Ok::<_, anyhow::Error>(app.setting("farewell", "text").await?.is_none())
    })
    .await;

    let broken = kustomization(&["deployment.yaml", "greeting.yaml", "forgotten.yaml"]);
    app.commit(
        &[("kustomization.yaml", &broken), ("greeting.yaml", GREETING)],
        "Forget a file",
    )
    .unwrap();
    eventually("the Deliverable says why", LIMIT, async || {
        let deliverable = app.deliverable().await?;
        let expected = "resource [deploy] failed condition met: deployment failure condition \
            [.status.conditions[?(@.type==\"Ready\")].status] was: False";
        let submitted = condition(&deliverable, "ResourcesSubmitted");
        let healthy = condition(&deliverable, "ResourcesHealthy");
        ensure!(
            submitted["reason"] == "FailedConditionMet"
                && submitted["message"] == expected
                && healthy["status"] == "False"
                && healthy["message"]
                    .as_str()
                    .is_some_and(|why| why.contains("forgotten.yaml")),
            "{:#}",
            deliverable["status"]["conditions"]
        );
        anyhow::Ok(())
    })
    .await;
    let record = || app.setting("deliver-app-delivered", "revision");
    assert_eq!(record().await.unwrap(), Some(second));
    assert_eq!(
        app.setting("greeting", "text").await.unwrap().as_deref(),
        Some("Moin"),
        "what runs stays"
    );

    let mended = app
        .commit(&[("kustomization.yaml", &without_farewell)], "Remember it")
        .unwrap();
    delivered(&app, "Hello", &mended).await;
    for controller in [SUPPLY_CHAIN_CONTROLLER, DELIVERY_CONTROLLER] {
        nothing_was_forbidden(&stack.control_plane, controller);
    }
}

/// Waits until the commit is applied, recorded, and the Deliverable ready.
async fn delivered(app: &DeliverApp<'_>, greeting: &str, revision: &str) {
    eventually(&format!("{revision} is delivered"), LIMIT, async || {
        let text = app.setting("greeting", "text").await?;
        let record = app.setting("deliver-app-delivered", "revision").await?;
        let deliverable = app.deliverable().await?;
        ensure!(
            text.as_deref() == Some(greeting)
                && record.as_deref() == Some(revision)
                && condition(&deliverable, "Ready")["status"] == "True",
            "greeting: {text:?}, record: {record:?}, {:#}",
            deliverable["status"]["conditions"]
        );
        anyhow::Ok(())
    })
    .await;
}

fn condition(object: &Value, kind: &str) -> Value {
    test_support::stage::condition(&object["status"], kind)
}
