//! Blueprints that are for the namespaces with certain labels.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use test_support::{all_objects, eventually};

use crate::immutable::{WORKLOAD, branch};
use crate::stage::{NOTHING, PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;

const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {branch: $(workload.spec.source.git.ref.branch)$}
";

/// For namespaces with the label `team=a` alone.
fn chain_for_team_a() -> String {
    let chain = blueprint_of(&[("config", CONFIG)]);
    let allowed = "spec:\n  allowedNamespaces: {matchLabels: {team: a}}\n  selector: {type: web}";
    chain.replace("spec:\n  selector: {type: web}", allowed)
}

/// Labels the namespace as whoever `client` is, or removes the label.
async fn try_to_label(client: &kube::Client, name: &str, team: Option<&str>) -> kube::Result<()> {
    let namespaces = Api::<Namespace>::all(client.clone());
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"team": team}}}));
    let by_default = PatchParams::default();
    namespaces.patch(name, &by_default, &labelled).await?;
    Ok(())
}

async fn label(stage: &Stage, team: Option<&str>) {
    let labelled = try_to_label(&stage.client, &stage.namespace, team).await;
    labelled.unwrap();
}

async fn refused(stage: &Stage, found: &str) -> Value {
    let namespace = &stage.namespace;
    let message = format!(
        "supply chain [chain] takes no workload of namespace [{namespace}]: its label [team] must be one of [a], but {found}; \
         have a cluster administrator label the namespace as spec.allowedNamespaces of the supply chain asks, or select another \
         supply chain. What is there stays as it is"
    );
    let what = format!("the team {found}");
    let refused = stage.until("app", &what, |workload| {
        condition(&workload["status"], "SupplyChainReady")["message"] == message
    });
    let refused = refused.await;
    let ready = condition(&refused["status"], "Ready");
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("False"), &json!("NamespaceNotAllowed"))
    );
    assert_eq!(refused["status"]["supplyChainRef"]["name"], "chain");
    refused
}

async fn config_is_of(stage: &Stage, branch: &str) {
    let what = format!("the ConfigMap is of {branch}");
    eventually(&what, PATIENCE, async || {
        let config = stage.get("v1", "ConfigMap", "app").await?;
        (config["data"]["branch"] == branch).then_some(())
    })
    .await;
}

fn is_forbidden<T>(answer: kube::Result<T>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}

/// Requests for namespaces that the controller has sent.
fn asked_for_namespaces(stage: &Stage) -> usize {
    let requests = stage.plane.requests_by("carto-supplychain").unwrap();
    let asks = |uri: &str| uri.starts_with("/api/v1/namespaces?");
    let asked = requests.iter().filter(|event| asks(&event.request_uri));
    asked.count()
}

#[tokio::test]
async fn owners_of_namespaces_that_are_not_allowed_wait_and_what_they_have_stays() {
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("config", CONFIG)])).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(asked_for_namespaces(&stage), 0, "no blueprint asks for it");

    stage.apply(&chain_for_team_a()).await;
    let refused_first = refused(&stage, "is not there").await;
    assert_ne!(refused_first["status"]["resources"], Value::Null);
    let stalled = condition(&refused_first["status"], "Stalled");
    assert_eq!(stalled["status"], "True");
    assert_ne!(asked_for_namespaces(&stage), 0);
    stage.edit_workload("app", branch("b")).await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    config_is_of(&stage, "a").await;

    // Who may edit the namespace can neither label it nor change what is asked of it.
    let tenant = stage.tenant().await;
    let tenant = stage.plane.client_as_user(tenant.user(), &[]).unwrap();
    let labelled = try_to_label(&tenant, &stage.namespace, Some("a")).await;
    assert!(is_forbidden(labelled));
    let chains = all_objects(&tenant, "carto.run/v1alpha1", "ClusterSupplyChain");
    let opened = Patch::Merge(json!({"spec": {"allowedNamespaces": null}}));
    let opened = chains
        .patch("chain", &PatchParams::default(), &opened)
        .await;
    assert!(is_forbidden(opened));

    label(&stage, Some("b")).await;
    refused(&stage, "is [b]").await;
    let before = stage.place_in_the_log();
    label(&stage, Some("a")).await;
    config_is_of(&stage, "b").await;
    stage.ready("app", "True", "Ready").await;
    stage.was_woken_since(before, "app").await;

    label(&stage, None).await;
    refused(&stage, "is not there").await;
    stage.edit_workload("app", branch("c")).await;
    stage.settle("app").await;
    config_is_of(&stage, "b").await;
}

#[tokio::test]
async fn a_controller_that_may_not_read_namespaces_lets_nobody_in_and_says_what_to_grant() {
    let mut stage = Stage::set().await;
    stage
        .grant_user_the_least("[workloads/status, clustersupplychains/status]")
        .await;
    stage.apply(&chain_for_team_a()).await;
    stage.apply(WORKLOAD).await;
    label(&stage, Some("a")).await;
    stage.start_controller_as_user();
    let refused = stage.ready("app", "False", "NamespaceNotAllowed").await;
    let message = condition(&refused["status"], "Ready")["message"].clone();
    let grant = "its labels cannot be read; grant the controller list and watch of namespaces";
    assert!(message.as_str().unwrap().contains(grant), "{message}");
    assert!(stage.get("v1", "ConfigMap", "app").await.is_none());
    let rules = "[{apiGroups: [''], resources: [namespaces], verbs: [list, watch]}]";
    stage.grant_user("namespaces", rules).await;
    config_is_of(&stage, "a").await;
}
