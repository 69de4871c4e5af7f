//! What one owner may ask for, and what becomes of one that asks for more.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::eventually;

use crate::immutable::{RUNS, WORKLOAD};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};
use crate::unchanged::blueprint_of;

/// Stamps the Workload's parameter into a ConfigMap.
const ECHO: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: echo}
spec:
  params: [{name: text, default: small}, {name: labels, default: {}}]
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-echo, labels: $(params.labels)$}
    data: {once: $(params.text)$, twice: $(params.text)$, again: $(params.text)$, more: $(params.text)$, last: $(params.text)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: echo}
spec:
  selector: {type: web}
  resources: [{name: echo, templateRef: {kind: ClusterTemplate, name: echo}}]
";

fn param(name: &str, value: &Value) -> Value {
    json!({"spec": {"params": [{"name": name, "value": value}]}})
}

async fn reason(stage: &Stage, reason: &str) -> String {
    let owner = stage.ready("app", "False", reason).await;
    let message = condition(&owner["status"], "ResourcesSubmitted")["message"].clone();
    message.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_owner_and_a_rendering_may_have_so_many_bytes() {
    let stage = Stage::open().await;
    stage.apply(ECHO).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;

    let text = |kibibytes: usize| json!("x".repeat(kibibytes << 10));
    stage.edit_workload("app", param("text", &text(230))).await;
    let message = reason(&stage, "RenderingTooLarge").await;
    assert!(
        message.contains("the rendering has 11") && message.contains("1024 KiB are allowed"),
        "{message}"
    );
    let echo = stage.get("v1", "ConfigMap", "app-echo").await.unwrap();
    assert_eq!(echo["data"]["once"], "small", "what there is stays");

    stage.edit_workload("app", param("text", &text(300))).await;
    let message = reason(&stage, "OwnerTooLarge").await;
    assert!(
        message.contains("the workload has 30") && message.contains("256 KiB are allowed"),
        "{message}"
    );
    assert_eq!(stage.requests_of_reconciles("app", 1).await, NOTHING);

    stage
        .edit_workload("app", param("text", &json!("small again")))
        .await;
    stage.ready("app", "True", "Ready").await;
    let echo = stage.get("v1", "ConfigMap", "app-echo").await.unwrap();
    assert_eq!(echo["data"]["once"], "small again");
}

/// How often what is refused may be sent in this time: twice at the beginning, as something else may still be under way, and
/// then after 5 s, 10 s, 20 s and so on.
fn most_sent(elapsed: Duration) -> usize {
    let (mut sent, mut next, mut pause) = (2, 5, 10);
    while next <= elapsed.as_secs() {
        (sent, next, pause) = (sent + 1, next + pause, pause * 2);
    }
    sent
}

#[tokio::test]
async fn what_the_server_refused_as_invalid_is_sent_again_ever_less_often() {
    let stage = Stage::open().await;
    stage.apply(ECHO).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let invalid = json!({"a": "not a label value!"});
    let began = Instant::now();
    stage.edit_workload("app", param("labels", &invalid)).await;
    let message = reason(&stage, "TemplateRejectedByAPIServer").await;
    assert!(message.contains("a valid label must be"), "{message}");
    for _ in 0..20 {
        stage.reconcile("app").await;
    }
    let mut sent = stage.writes();
    sent.retain(|write| write == "patch configmaps/app-echo 422");
    let most = most_sent(began.elapsed());
    assert!((1..=most).contains(&sent.len()), "{sent:?}, and not {most}");
    assert_eq!(
        reason(&stage, "TemplateRejectedByAPIServer").await,
        message,
        "it is told all the same"
    );
    // It is sent again as soon as it is another one.
    stage
        .edit_workload("app", param("labels", &json!({"a": "b"})))
        .await;
    stage.ready("app", "True", "Ready").await;
}

/// A Service on the one port of the nodes that it may have.
fn service(name: &str) -> String {
    format!(
        "\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{type: NodePort, ports: [{{port: 80, nodePort: 30123}}]}}\n"
    )
}

/// The new object is refused as long as the old one, which is deleted after it was tried, has the port.
#[tokio::test]
async fn the_object_of_a_renamed_step_gets_the_port_of_the_old_one_when_that_is_gone() {
    let stage = Stage::open().await;
    stage
        .grant(
            "services",
            "[{apiGroups: [''], resources: [services], verbs: [get, list, create, patch, delete]}]",
        )
        .await;
    let named = async |name: &str| {
        stage.apply(&blueprint_of(&[(name, &service(name))])).await;
        stage
            .until("app", &format!("its service is {name}"), |workload| {
                step(workload, name)["stampedRef"]["name"] == name
                    && condition(&workload["status"], "Ready")["status"] == "True"
            })
            .await;
    };
    stage.apply(WORKLOAD).await;
    named("before").await;
    named("after").await;
    let refused = "patch services/after 422".to_owned();
    let writes = stage.writes();
    assert!(writes.contains(&refused), "{writes:?}");
    let services = stage.all("v1", "Service").await;
    assert_eq!(services.len(), 1, "{services:?}");
}

/// A run of the step, as the controller would have made it for an earlier edit.
fn run(owner: &Value, number: usize) -> Value {
    let metadata = &owner["metadata"];
    json!({
        "apiVersion": "test.run/v1alpha1", "kind": "Test",
        "metadata": {
            "name": format!("app-{number}"),
            "labels": {
                "carto.run/workload-name": "app", "carto.run/workload-namespace": metadata["namespace"],
                "carto.run/supply-chain-name": "runs", "carto.run/resource-name": "run",
                "carto.run/template-kind": "ClusterSourceTemplate", "carto.run/cluster-template-name": "run",
                "carto.run/template-lifecycle": "immutable",
            },
            "ownerReferences": [{"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": "app",
                "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true}],
        },
        "spec": {"value": {"branch": format!("earlier-{number}")}},
    })
}

/// A process that has just started knows it from the objects that are there.
#[tokio::test]
async fn more_than_sixty_creations_a_minute_for_a_step_wait() {
    let mut stage = Stage::set().await;
    stage.apply(RUNS).await;
    stage.apply(WORKLOAD).await;
    let owner = stage.workload("app").await;
    for number in 0..60 {
        stage.create_as("test", run(&owner, number)).await;
    }
    stage.start_controller();
    let message = reason(&stage, "CreatedTooOften").await;
    assert!(
        message.contains("60 objects were created for [run] within a minute"),
        "{message}"
    );
    assert_eq!(stage.tests().await.len(), 60);
    let told = stage.events().await;
    assert!(
        told.iter()
            .any(|event| event.starts_with("Warning ResourceFailed")),
        "{told:?}"
    );
    // It goes on by itself.
    eventually("the step goes on", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.iter()
            .any(|run| run["spec"]["value"]["branch"] == "a")
            .then_some(())
    })
    .await;
}
