//! What the schemas accept, refuse, prune and fill in.

use http::Method;
use serde_json::{Value, json};
use test_support::{ControlPlane, shared_control_plane};
use tokio::sync::OnceCell;

use crate::sample::{add_unknown_fields, full, schema_of, violations};
use crate::server::{Reply, Server, collection, crd, deploy, manifests};

static INSTALLED: OnceCell<()> = OnceCell::const_new();

/// The shared API server with our CRDs and no policies.
pub(crate) async fn server() -> Server {
    let control_plane = shared_control_plane().await.unwrap();
    INSTALLED
        .get_or_init(async || control_plane.install_crds(deploy("crds")).await.unwrap())
        .await;
    Server::of(control_plane)
}

/// An object that gives every field.
pub(crate) fn full_object(kind: &str, name: &str) -> Value {
    let mut object = full(schema_of(&crd(kind)));
    object["apiVersion"] = json!("carto.run/v1alpha1");
    object["kind"] = json!(kind);
    object["metadata"] = json!({"name": name});
    object
}

fn assert_refused(reply: &Reply, what: &str) {
    assert_eq!(reply.status, 422, "{what} was not refused: {reply:?}");
}

#[tokio::test]
async fn crds_install_without_warnings() {
    let control_plane = ControlPlane::start().await.unwrap();
    let server = Server::of(&control_plane);
    for crd in manifests("crds") {
        let reply = server
            .create(
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                &crd,
            )
            .await;
        assert!(reply.is_success(), "{reply:?}");
        assert_eq!(
            reply.warnings,
            Vec::<String>::new(),
            "{}",
            crd["metadata"]["name"]
        );
    }
}

#[tokio::test]
async fn every_rule_of_every_spec_is_enforced() {
    let server = server().await;
    let mut broken = 0;
    for crd in api_types::crds() {
        let kind = crd.spec.names.kind.as_str();
        let dry_run = format!("{}?dryRun=All", collection(&crd));
        let mut object = full_object(kind, "rules");
        let reply = server.create(&dry_run, &object).await;
        assert!(reply.is_success(), "{kind}: {reply:?}");
        assert_eq!(reply.warnings, Vec::<String>::new());
        let schema = &schema_of(&crd).properties.as_ref().unwrap()["spec"];
        for violation in violations(schema) {
            object["spec"] = violation.value;
            assert_refused(
                &server.create(&dry_run, &object).await,
                &format!("{kind} spec{}", violation.rule),
            );
            broken += 1;
        }
        object.as_object_mut().unwrap().remove("spec");
        assert_refused(
            &server.create(&dry_run, &object).await,
            &format!("{kind} without spec"),
        );
    }
    assert!(broken > 400, "{broken}");
}

#[tokio::test]
async fn every_rule_of_every_status_is_enforced() {
    let server = server().await;
    let mut broken = 0;
    for crd in api_types::crds()
        .into_iter()
        .filter(|crd| crd.spec.versions[0].subresources.is_some())
    {
        let kind = crd.spec.names.kind.as_str();
        let object = full_object(kind, "status-rules");
        assert!(server.create(&collection(&crd), &object).await.is_success());
        let dry_run = format!("{}/status-rules/status?dryRun=All", collection(&crd));
        let reply = server
            .patch(&dry_run, &json!({"status": object["status"]}))
            .await;
        assert!(reply.is_success(), "{kind}: {reply:?}");
        assert_eq!(reply.body["status"], object["status"], "{kind}");
        let schema = &schema_of(&crd).properties.as_ref().unwrap()["status"];
        for violation in violations(schema) {
            let reply = server
                .patch(&dry_run, &json!({"status": violation.value}))
                .await;
            assert_refused(&reply, &format!("{kind} status{}", violation.rule));
            broken += 1;
        }
    }
    assert!(broken > 150, "{broken}");
}

#[tokio::test]
async fn templates_have_no_status_at_all() {
    let server = server().await;
    for crd in api_types::crds()
        .into_iter()
        .filter(|crd| crd.spec.versions[0].subresources.is_none())
    {
        let mut object = full_object(&crd.spec.names.kind, "no-status");
        object["status"] = json!({"conditions": []});
        let reply = server
            .create(&format!("{}?dryRun=All", collection(&crd)), &object)
            .await;
        assert!(reply.is_success(), "{reply:?}");
        assert_eq!(reply.body.get("status"), None);
    }
}

#[tokio::test]
async fn unknown_fields_are_pruned_and_nothing_else() {
    let server = server().await;
    for crd in api_types::crds() {
        let kind = crd.spec.names.kind.as_str();
        let clean = full_object(kind, "pruned");
        let mut object = clean.clone();
        let schema = schema_of(&crd);
        let spec = &schema.properties.as_ref().unwrap()["spec"];
        assert!(add_unknown_fields(spec, &mut object["spec"]) > 0);
        let reply = server
            .create(&format!("{}?dryRun=All", collection(&crd)), &object)
            .await;
        assert!(reply.is_success(), "{kind}: {reply:?}");
        assert_eq!(reply.body["spec"], clean["spec"], "{kind}");
    }
}

#[tokio::test]
async fn defaults_are_filled_in() {
    let server = server().await;
    let template = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate",
        "metadata": {"name": "defaults"}, "spec": {"template": {"kind": "X"}}});
    let reply = server
        .create(
            "/apis/carto.run/v1alpha1/clustertemplates?dryRun=All",
            &template,
        )
        .await;
    assert_eq!(
        reply.body["spec"],
        json!({"template": {"kind": "X"}, "lifecycle": "mutable"})
    );
    let runnable = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Runnable",
        "metadata": {"name": "defaults"}, "spec": {"runTemplateRef": {"name": "t"}}});
    let reply = server
        .create(
            "/apis/carto.run/v1alpha1/namespaces/default/runnables?dryRun=All",
            &runnable,
        )
        .await;
    assert_eq!(
        reply.body["spec"],
        json!({"runTemplateRef": {"name": "t"}, "retentionPolicy": {"maxFailedRuns": 10, "maxSuccessfulRuns": 10}})
    );
}

#[tokio::test]
async fn null_is_kept_where_any_json_is_allowed() {
    let server = server().await;
    let workload = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "metadata": {"name": "null"},
        "spec": {"params": [{"name": "a", "value": null}, {"name": "b", "value": {"c": null}}], "image": null}});
    let reply = server
        .create(
            "/apis/carto.run/v1alpha1/namespaces/default/workloads?dryRun=All",
            &workload,
        )
        .await;
    assert!(reply.is_success(), "{reply:?}");
    // `image` is text: there null means absent.
    assert_eq!(
        reply.body["spec"],
        json!({"params": workload["spec"]["params"]})
    );
    let runnable = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Runnable", "metadata": {"name": "null"},
        "spec": {"runTemplateRef": {"name": "t"}, "inputs": {"a": null, "b": [null]}}});
    let reply = server
        .create(
            "/apis/carto.run/v1alpha1/namespaces/default/runnables?dryRun=All",
            &runnable,
        )
        .await;
    assert_eq!(
        reply.body["spec"]["inputs"],
        json!({"a": null, "b": [null]})
    );
}

#[tokio::test]
async fn tables_have_the_columns_of_the_go_controller() {
    let server = server().await;
    let path = "/apis/carto.run/v1alpha1/namespaces/default/workloads";
    let workload = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "metadata": {"name": "columns"},
        "spec": {"source": {"image": "registry.example/source"}}});
    assert!(server.create(path, &workload).await.is_success());
    let status = json!({"status": {"supplyChainRef": {"name": "chain"}, "conditions": [
        {"type": "Ready", "status": "False", "reason": "Because", "message": "", "lastTransitionTime": "2024-01-02T03:04:05Z"}]}});
    let reply = server
        .patch(&format!("{path}/columns/status"), &status)
        .await;
    assert!(reply.is_success(), "{reply:?}");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let reply = server
        .send_accepting(
            table,
            Method::GET,
            &format!("{path}/columns"),
            "application/json",
            &Value::Null,
        )
        .await;
    let columns: Vec<_> = reply.body["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["name"])
        .collect();
    assert_eq!(
        json!(columns),
        json!([
            "Name",
            "Source",
            "SupplyChain",
            "Ready",
            "Reason",
            "Age",
            "Step",
            "Message"
        ])
    );
    let wide: Vec<_> = reply.body["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["priority"] != 0)
        .collect();
    assert_eq!(wide, [false, false, false, false, false, false, true, true]);
    let cells = reply.body["rows"][0]["cells"].as_array().unwrap();
    assert_eq!(
        json!(cells[..5]),
        json!([
            "columns",
            "registry.example/source",
            "chain",
            "False",
            "Because"
        ])
    );
}
