//! What the controller needs of the cluster itself is not there: its own kinds, or a server behind the API server.

use kube::api::DeleteParams;
use serde_json::Value;
use test_support::eventually;

use crate::immutable::{WORKLOAD, branch};
use crate::stage::{NOTHING, PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;

type Definition =
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {branch: $(workload.spec.source.git.ref.branch)$}
";

const OWN_KINDS: [&str; 3] = ["workloads", "clustersupplychains", "clustertemplates"];

async fn delete_own_kinds(stage: &Stage) {
    let definitions: kube::Api<Definition> = kube::Api::all(stage.client.clone());
    for plural in OWN_KINDS {
        let name = format!("{plural}.carto.run");
        let by_default = DeleteParams::default();
        definitions.delete(&name, &by_default).await.unwrap();
        eventually(&format!("{name} is gone"), PATIENCE, async || {
            let found = definitions.get_opt(&name).await.unwrap();
            found.is_none().then_some(())
        })
        .await;
    }
}

async fn install_own_kinds(stage: &Stage) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/crds");
    stage.plane.install_crds(folder).await.unwrap();
}

async fn holds(stage: &Stage, name: &str, branch: &str) {
    eventually(&format!("{name} holds {branch}"), PATIENCE, async || {
        let config = stage.get("v1", "ConfigMap", name).await?;
        (config["data"]["branch"] == branch).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_controller_that_starts_before_its_kinds_are_installed_waits_for_them() {
    let mut stage = Stage::set().await;
    delete_own_kinds(&stage).await;
    stage.start_controller();
    eventually("it runs", PATIENCE, async || {
        stage.metric("carto_leader", &[]).await
    })
    .await;
    install_own_kinds(&stage).await;
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    holds(&stage, "app", "a").await;
}

#[tokio::test]
async fn own_kinds_that_go_and_come_back_are_followed_again_without_a_restart() {
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    let pid = stage.controller_pid();

    // With the kinds go all objects of them, and what was stamped goes with these.
    delete_own_kinds(&stage).await;
    stage.delete("v1", "ConfigMap", "app").await;
    install_own_kinds(&stage).await;
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage
        .apply(&WORKLOAD.replace("branch: a", "branch: b"))
        .await;
    holds(&stage, "app", "b").await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(stage.controller_pid(), pid);
    let panics = stage.metric("carto_reconcile_panics_total", &[]).await;
    assert_eq!(panics, Some(0.0));
}

const DEAD: &str = "
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: nobody, namespace: default}
";

const METRICS: &str = "
apiVersion: metrics.k8s.io/v1beta1
kind: PodMetrics
metadata: {name: $(workload.metadata.name)$}
";

/// As on many clusters where the metrics server is down.
#[tokio::test]
async fn a_server_that_is_registered_and_down_stops_only_the_steps_that_need_it() {
    let mut stage = Stage::open().await;
    stage.apply(DEAD).await;
    stage
        .apply(&blueprint_of(&[("config", CONFIG), ("metrics", METRICS)]))
        .await;
    stage.apply(WORKLOAD).await;
    let unready = |workload: &Value| {
        let ready = condition(&workload["status"], "Ready");
        let message = ready["message"].as_str().unwrap_or_default();
        ready["status"] != "True" && message.contains("metrics.k8s.io/v1beta1")
    };
    holds(&stage, "app", "a").await;
    stage.until("app", "it says what is missing", unready).await;

    stage.kill_controller();
    stage.edit_workload("app", branch("b")).await;
    stage.start_controller();
    holds(&stage, "app", "b").await;
    stage.until("app", "it still says so", unready).await;
}
