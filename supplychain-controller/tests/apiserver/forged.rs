//! What a tenant can write on objects decides nothing: one test for each thing that he can say, as a user with the rights
//! that are shipped for people, and those to edit what is stamped.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::{Tenant, forged_copy};

use crate::immutable::{WORKLOAD, branch, instant, runs_up_to};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

const TESTS: &str = "test.run/v1alpha1";

/// A source that is changed in place, and what is made of it.
const CHAIN: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: src}
spec:
  urlPath: .spec.value.url
  revisionPath: .spec.value.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-src, labels: {team: a}}
    spec: {value: {url: 'https://git.good/app', rev: main}}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: sink}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: $(workload.metadata.name)$-sink}
    data: {url: $(source.url)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
    - {name: publish, templateRef: {kind: ClusterTemplate, name: sink}, sources: [{name: source, resource: fetch}]}
";

async fn settled() -> (Stage, Tenant) {
    let stage = Stage::open().await;
    stage.apply(CHAIN).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    let tenant = stage.tenant().await;
    (stage, tenant)
}

/// Waits until the rendering is back in both objects.
async fn put_back(stage: &Stage, what: &str) {
    eventually(what, PATIENCE, async || {
        let source = stage.get(TESTS, "Test", "app-src").await.unwrap();
        let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
        let good = "https://git.good/app";
        let is_good = source["spec"]["value"]["url"] == good
            && source["spec"]["value"]["rev"] == "main"
            && source["metadata"]["labels"]["team"] == "a"
            && sink["data"]["url"] == good;
        if is_good {
            Ok(())
        } else {
            Err(format!("{} {}", source["spec"], sink["data"]))
        }
    })
    .await;
}

/// Waits until peace is believed, as changes that follow one another are a fight, and nothing is left to do.
async fn comes_to_rest(stage: &Stage) {
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn no_annotation_keeps_a_changed_value_in_an_object() {
    let (stage, tenant) = settled().await;
    let held = stage.get(TESTS, "Test", "app-src").await.unwrap();
    let digest = &held["metadata"]["annotations"]["carto.run/rendered-digest"];
    for annotations in [
        json!({"carto.run/unowned": "[\"/spec/value/url\"]"}),
        json!({"carto.run/unowned": "[\"/spec/value\"]", "carto.run/rendered-digest": digest}),
        json!({"carto.run/rendered-digest": "sha256:forged"}),
        json!({"carto.run/adopt": "true"}),
    ] {
        let evil = json!({
            "spec": {"value": {"url": "https://git.evil/x"}}, "metadata": {"annotations": annotations},
        });
        tenant.patch(TESTS, "Test", "app-src", evil).await.unwrap();
        put_back(
            &stage,
            &format!("the url is put back in spite of {annotations}"),
        )
        .await;
        // Later, without touching any annotation.
        let evil = json!({"spec": {"value": {"url": "https://git.evil/y"}}, "metadata": {"labels": {"team": "b"}}});
        tenant.patch(TESTS, "Test", "app-src", evil).await.unwrap();
        put_back(&stage, "the url is put back the second time").await;
    }
    comes_to_rest(&stage).await;
}

#[tokio::test]
async fn a_change_under_our_name_is_put_back_for_kinds_with_and_without_generation() {
    let (stage, tenant) = settled().await;
    for name in ["carto-supplychain", "cartographer", "somebody"] {
        let mut source = stage.get(TESTS, "Test", "app-src").await.unwrap();
        let mut sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
        source["spec"]["value"]["url"] = json!("https://git.evil/x");
        sink["data"]["url"] = json!("https://git.evil/x");
        for object in [&mut source, &mut sink] {
            for field in [
                "managedFields",
                "resourceVersion",
                "uid",
                "creationTimestamp",
                "generation",
            ] {
                object["metadata"].as_object_mut().unwrap().remove(field);
            }
        }
        for object in [&source, &sink] {
            tenant.apply_as(name, object).await.unwrap();
        }
        put_back(&stage, &format!("an apply as {name} is put back")).await;
        for object in [&source, &sink] {
            tenant.patch_as(name, object).await.unwrap();
        }
        put_back(&stage, &format!("an update as {name} is put back")).await;
    }
    comes_to_rest(&stage).await;
}

#[tokio::test]
async fn managed_fields_that_are_rewritten_hide_nothing_not_even_from_the_next_process() {
    let (mut stage, tenant) = settled().await;
    let held = stage.get(TESTS, "Test", "app-src").await.unwrap();
    let ours = held["metadata"]["managedFields"].as_array().unwrap();
    let ours = ours
        .iter()
        .find(|entry| entry["manager"] == "carto-supplychain" && entry["operation"] == "Apply");
    let mut without_url = ours.unwrap().clone();
    without_url["fieldsV1"]["f:spec"]["f:value"]
        .as_object_mut()
        .unwrap()
        .remove("f:url");
    for entries in [json!([ours.unwrap()]), json!([without_url]), json!([{}])] {
        for restart in [false, true] {
            if restart {
                stage.kill_controller();
            }
            let evil = json!({
                "spec": {"value": {"url": "https://git.evil/x"}}, "metadata": {"managedFields": entries},
            });
            tenant.patch(TESTS, "Test", "app-src", evil).await.unwrap();
            if restart {
                stage.start_controller();
            }
            put_back(
                &stage,
                &format!("the url is put back in spite of {entries}"),
            )
            .await;
        }
    }
    comes_to_rest(&stage).await;
}

/// Somebody else's copy of a member, with what he would like to be believed.
fn copy_of(run: &Value, name: &str, namespace: &str) -> Value {
    let mut copy = forged_copy(run, name);
    copy["metadata"]["namespace"] = json!(namespace);
    copy["spec"]["value"]["branch"] = json!("evil");
    copy
}

async fn with_a_run() -> (Stage, Value) {
    let stage = Stage::open().await;
    stage.apply(&instant(3)).await;
    stage.apply(WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.settle("app").await;
    let run = stage.tests().await.remove(0);
    (stage, run)
}

async fn hands_on_only(stage: &Stage, good: &str) {
    stage.settle("app").await;
    let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
    assert_eq!(sink["data"]["url"], good);
    let workload = stage.workload("app").await;
    assert!(
        !workload["status"].to_string().contains("forged"),
        "{workload}"
    );
}

#[tokio::test]
async fn a_run_that_a_tenant_makes_replaces_none_that_is_due() {
    let (stage, run) = with_a_run().await;
    let tenant = stage.tenant().await;
    for (name, sequence) in [
        ("forged", "999999"),
        ("forged-highest", "18446744073709551615"),
    ] {
        let mut forged = copy_of(&run, name, &stage.namespace);
        forged["metadata"]["annotations"]["carto.run/submission"] = json!(sequence);
        tenant.create(forged).await.unwrap();
    }
    hands_on_only(&stage, "a").await;
    stage.edit_workload("app", branch("b")).await;
    eventually("the new run is made", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.iter().any(|run| run["spec"]["value"]["branch"] == "b")
    })
    .await;
    eventually("its output is handed on", PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
        sink["data"]["url"] == "b"
    })
    .await;
    hands_on_only(&stage, "b").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn a_run_that_claims_to_be_the_next_one_is_not_taken_for_it() {
    let (stage, run) = with_a_run().await;
    let tenant = stage.tenant().await;
    // The digest of what will be asked for next can be known in advance: it has been asked for before.
    stage.edit_workload("app", branch("b")).await;
    let next = runs_up_to(&stage, "b").await.pop().unwrap();
    stage.edit_workload("app", branch("a")).await;
    eventually("three runs", PATIENCE, async || {
        stage.tests().await.len() == 3
    })
    .await;
    stage.settle("app").await;
    let mut forged = copy_of(&run, "forged", &stage.namespace);
    forged["metadata"]["annotations"]["carto.run/rendered-digest"] =
        next["metadata"]["annotations"]["carto.run/rendered-digest"].clone();
    tenant.create(forged).await.unwrap();
    stage.edit_workload("app", branch("b")).await;
    eventually(
        "the output of a real run is handed on",
        PATIENCE,
        async || {
            let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
            sink["data"]["url"] == "b"
        },
    )
    .await;
    hands_on_only(&stage, "b").await;
}

#[tokio::test]
async fn a_run_made_anew_under_its_name_is_not_taken_for_the_old_one_where_nothing_is_watched() {
    let mut stage = Stage::set().await;
    stage.grant_user_the_least(crate::rights::STATUSES).await;
    stage.apply(&instant(3)).await;
    stage.apply(WORKLOAD).await;
    stage.start_controller_as_user();
    let ready = stage.ready("app", "True", "Ready").await;
    assert!(
        !condition(&ready["status"], "WatchForbidden").is_null(),
        "{ready}"
    );
    let run = stage.tests().await.remove(0);
    let tenant = stage.tenant().await;
    let name = run["metadata"]["name"].as_str().unwrap();
    stage.delete(TESTS, "Test", name).await;
    let forged = copy_of(&run, name, &stage.namespace);
    tenant.create(forged).await.unwrap();
    // The family is listed in each reconcile: the copy was seen in each of these.
    for _ in 0..3 {
        stage.reconcile("app").await;
    }
    let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
    assert_eq!(sink["data"]["url"], "a");
    let workload = stage.workload("app").await;
    assert!(
        !workload["status"].to_string().contains("evil"),
        "{workload}"
    );

    stage.edit_workload("app", branch("b")).await;
    eventually("a new input is run", PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
        sink["data"]["url"] == "b"
    })
    .await;
}

#[tokio::test]
async fn objects_of_another_namespace_count_for_nothing_and_are_left_alone() {
    const FLOOD: usize = 40;
    let (stage, run) = with_a_run().await;
    let elsewhere = stage.plane.create_namespace("evil").await.unwrap();
    let tenant = stage.tenant_of(&elsewhere).await;
    let uid = run["metadata"]["ownerReferences"][0]["uid"].clone();
    let references = [
        json!({"apiVersion": "nope.example.com/v1", "kind": "Nope", "name": "x", "uid": uid, "controller": true}),
        json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": "app", "uid": uid, "controller": true}),
    ];
    for (index, reference) in references.iter().enumerate() {
        let mut forged = copy_of(&run, &format!("forged-{index}"), &elsewhere);
        forged["metadata"]["ownerReferences"] = json!([reference]);
        tenant.create(forged).await.unwrap();
    }
    for index in 0..FLOOD {
        let mut orphan = copy_of(&run, &format!("forged-orphan-{index}"), &elsewhere);
        orphan["metadata"]["ownerReferences"] = json!([references[1]]);
        orphan["metadata"]["labels"]["carto.run/resource-name"] = json!("gone");
        tenant.create(orphan).await.unwrap();
    }
    let before = stage.requests().len();
    hands_on_only(&stage, "a").await;
    stage.edit_workload("app", branch("b")).await;
    eventually("the new run is made and handed on", PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
        sink["data"]["url"] == "b"
    })
    .await;
    hands_on_only(&stage, "b").await;
    let there: Vec<String> = stage.requests()[before..]
        .iter()
        .filter(|request| request.contains("forged"))
        .cloned()
        .collect();
    assert_eq!(there, NOTHING);
    let left = stage.all_in(&elsewhere, TESTS, "Test").await;
    assert_eq!(left.len(), references.len() + FLOOD);
    assert_eq!(
        stage.workload("app").await["status"]["pendingRemovals"],
        Value::Null
    );
}

#[tokio::test]
async fn what_stands_in_the_place_of_the_next_run_does_not_stop_it() {
    let (mut stage, _) = with_a_run().await;
    let tenant = stage.tenant().await;
    // The name of the next run can be computed: it is found out here by asking for it once, and asking again from the start.
    stage.edit_workload("app", branch("b")).await;
    let next = runs_up_to(&stage, "b").await.pop().unwrap();
    let name = next["metadata"]["name"].as_str().unwrap().to_owned();
    stage.kill_controller();
    stage.delete(TESTS, "Test", &name).await;
    let mut squatter = copy_of(&next, &name, &stage.namespace);
    squatter["metadata"]["labels"]
        .as_object_mut()
        .unwrap()
        .remove("carto.run/workload-name");
    tenant.create(squatter).await.unwrap();
    let known = stage.workload("app").await["status"]["resources"][0]["runs"].clone();
    let forgotten: Vec<&Value> = known
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["name"] != *name)
        .collect();
    let mut status = stage.workload("app").await["status"].clone();
    status["resources"][0]["runs"] = json!(forgotten);
    stage.set_owner_status("app", status).await;
    stage.start_controller();
    eventually("the run has another name", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.iter()
            .any(|run| run["metadata"]["name"] != *name && run["spec"]["value"]["branch"] == "b")
    })
    .await;
    stage.settle("app").await;
    let sink = stage.get("v1", "ConfigMap", "app-sink").await.unwrap();
    assert_eq!(sink["data"]["url"], "b");
}

#[tokio::test]
async fn nobody_but_the_controllers_may_write_what_is_believed() {
    let (stage, tenant) = settled().await;
    let forged = json!({"status": {"resources": [], "pendingRemovals": [
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": stage.namespace, "name": "app-sink"}]}});
    let refused = tenant
        .patch_status("carto.run/v1alpha1", "Workload", "app", forged)
        .await;
    assert!(refused.unwrap_err().to_string().contains("forbidden"));
}

#[tokio::test]
async fn a_status_that_names_the_object_of_somebody_else_deletes_nothing() {
    let (stage, _) = settled().await;
    let elsewhere = stage.plane.create_namespace("victim").await.unwrap();
    let victim = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: precious}\n";
    stage.plane.apply_yaml_in(&elsewhere, victim).await.unwrap();
    stage.apply(victim).await;
    let mut status = stage.workload("app").await["status"].clone();
    let mut pending = Vec::new();
    for namespace in [&elsewhere, &stage.namespace] {
        let found = stage.all_in(namespace, "v1", "ConfigMap").await;
        let found = found
            .iter()
            .find(|object| object["metadata"]["name"] == "precious");
        pending.push(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "precious",
            "uid": found.unwrap()["metadata"]["uid"], "resource": "configmaps",
        }));
    }
    status["pendingRemovals"] = json!(pending);
    stage.set_owner_status("app", status).await;
    stage
        .until("app", "they count as deleted", |workload| {
            workload["status"]["pendingRemovals"].is_null()
        })
        .await;
    stage.settle("app").await;
    for namespace in [&elsewhere, &stage.namespace] {
        let left = stage.all_in(namespace, "v1", "ConfigMap").await;
        assert!(
            left.iter()
                .any(|object| object["metadata"]["name"] == "precious")
        );
    }
    let ready = stage.workload("app").await;
    assert_eq!(condition(&ready["status"], "Ready")["status"], "True");
    assert_eq!(step(&ready, "publish")["name"], "publish");
}
