//! Kinds that come late, go, or never exist.

use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{PATIENCE, Stage, condition, step};
use crate::unchanged::blueprint_of;

type Definition =
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

const LATE: &str = "
apiVersion: late.run/v1
kind: Late
metadata: {name: $(workload.metadata.name)$}
spec: {a: b}
";
const CONFIG: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$}
data: {branch: $(workload.spec.source.git.ref.branch)$}
";
const DEFINITION: &str = r"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lates.late.run}
spec:
  group: late.run
  scope: Namespaced
  names: {kind: Late, plural: lates, singular: late, listKind: LateList}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
";

fn unknown(status: &Value, stage: &Stage) -> bool {
    condition(status, "Ready")["message"]
        == format!(
            "unable to apply object [{}/app] for resource [late] in supply chain [chain]: failed to get unstructured [{}/app] from \
             api server: no matches for kind \"Late\" in version \"late.run/v1\"",
            stage.namespace, stage.namespace
        )
}

async fn late(stage: &Stage) -> Option<Value> {
    let found = stage.api("late.run/v1", "Late").get_opt("app").await.ok()?;
    found.map(|object| serde_json::to_value(object).unwrap())
}

#[tokio::test]
async fn a_kind_that_comes_late_heals_and_one_that_goes_stops_nobody_else() {
    let stage = Stage::open().await;
    stage.grant("late", "[{apiGroups: [late.run], resources: [lates], verbs: [get, list, create, patch, delete]}]").await;
    stage
        .apply(&blueprint_of(&[("late", LATE), ("config", CONFIG)]))
        .await;
    stage.apply(crate::immutable::WORKLOAD).await;
    let missing = stage
        .ready("app", "False", "TemplateRejectedByAPIServer")
        .await;
    assert!(unknown(&missing["status"], &stage), "{missing}");
    assert_eq!(
        condition(&step(&missing, "config"), "Ready")["status"],
        "True"
    );

    stage.apply(DEFINITION).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(
        stage.requests_of_reconciles("app", 2).await,
        [] as [String; 0]
    );

    let definitions: kube::Api<Definition> = kube::Api::all(stage.client.clone());
    definitions
        .delete("lates.late.run", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the kind is gone", PATIENCE, async || {
        definitions
            .get_opt("lates.late.run")
            .await
            .unwrap()
            .is_none()
    })
    .await;
    // An owner is not stopped by another one's missing kind, nor a step by another step's.
    stage
        .edit_workload("app", crate::immutable::branch("b"))
        .await;
    eventually("the other step goes on", PATIENCE, async || {
        stage.get("v1", "ConfigMap", "app").await.unwrap()["data"]["branch"] == "b"
    })
    .await;
    stage
        .until("app", "the kind is unknown", |workload| {
            unknown(&workload["status"], &stage)
        })
        .await;

    stage.apply(DEFINITION).await;
    stage.ready("app", "True", "Ready").await;
    eventually("the object is back", PATIENCE, async || late(&stage).await).await;
    let foreign = json!({"spec": {"a": "edited"}});
    stage.edit("late.run/v1", "Late", "app", foreign).await;
    eventually("the edit is reverted", PATIENCE, async || {
        let late = late(&stage).await.unwrap();
        if late["spec"]["a"] == "b" {
            Ok(())
        } else {
            Err(late.to_string())
        }
    })
    .await;
    // It is watched again: whoever does not watch has to read.
    assert_eq!(
        stage.requests_of_reconciles("app", 2).await,
        [] as [String; 0]
    );
}

#[tokio::test]
async fn an_object_that_the_server_refuses_says_why_and_is_tried_again() {
    let stage = Stage::open().await;
    stage.grant("more", "[{apiGroups: [''], resources: [services, resourcequotas], verbs: [get, list, create, patch, delete]}]").await;
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"count/configmaps": "0"}}});
    let quotas = stage.api("v1", "ResourceQuota");
    quotas
        .create(
            &PostParams::default(),
            &serde_json::from_value(quota).unwrap(),
        )
        .await
        .unwrap();
    // The quota controller, which does not run here, would report the use.
    let used =
        json!({"status": {"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}}});
    quotas
        .patch_status(
            "none",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(used),
        )
        .await
        .unwrap();
    let invalid = "
apiVersion: v1
kind: Service
metadata: {name: app}
spec: {ports: [{port: 99999999}]}
";
    let long = format!(
        "
apiVersion: v1
kind: ConfigMap
metadata: {{name: {}}}
",
        "x".repeat(254)
    );
    stage
        .apply(&blueprint_of(&[
            ("quota", CONFIG),
            ("invalid", invalid),
            ("long", &long),
        ]))
        .await;
    stage.apply(crate::immutable::WORKLOAD).await;
    let refused = stage
        .ready("app", "False", "TemplateRejectedByAPIServer")
        .await;
    let said = |name: &str| {
        condition(&step(&refused, name), "Ready")["message"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        said("quota").contains("exceeded quota"),
        "{}",
        said("quota")
    );
    assert!(
        said("invalid").contains("must be between 1 and 65535"),
        "{}",
        said("invalid")
    );
    assert!(
        said("long").contains("must be no more than 253"),
        "{}",
        said("long")
    );

    // With nothing left that is tried again soon and ever later, only the retry of what is forbidden remains.
    stage.apply(&blueprint_of(&[("quota", CONFIG)])).await;
    stage
        .until("app", "one step is left", |workload| {
            workload["status"]["resources"].as_array().map(Vec::len) == Some(1)
        })
        .await;
    stage.reconcile("app").await;
    stage.delete("v1", "ResourceQuota", "none").await;
    // Nothing tells the controller of it: it tries again by itself, within 60 s and what a busy machine adds.
    eventually("the object is created", PATIENCE, async || {
        stage.get("v1", "ConfigMap", "app").await.is_some()
    })
    .await;
    stage.ready("app", "True", "Ready").await;
}

#[tokio::test]
async fn an_immutable_step_of_an_unknown_kind_is_told_as_before() {
    let stage = Stage::open().await;
    let immutable =
        blueprint_of(&[("late", LATE)]).replacen("spec:", "spec:\n  lifecycle: immutable", 1);
    stage.apply(&immutable).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    let missing = stage
        .ready("app", "False", "TemplateRejectedByAPIServer")
        .await;
    let expected = format!(
        "unable to apply object [{}/app] for resource [late] in supply chain [chain]: unable to list from api server: no matches \
         for kind \"Late\" in version \"late.run/v1\"",
        stage.namespace
    );
    assert_eq!(condition(&missing["status"], "Ready")["message"], expected);
}
