//! A template that stamps an owner of its own blueprint comes to an end, whatever a tenant writes.

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{PATIENCE, Stage, condition};

const OURS: &str = "carto.run/v1alpha1";

/// The most that may follow the first by default, and the one that stamps nothing.
const MOST: usize = 8;

/// A supply chain whose immutable template stamps a Workload of the same supply chain. Names do not grow.
const LOOP: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: again}
spec:
  lifecycle: immutable
  template:
    apiVersion: carto.run/v1alpha1
    kind: Workload
    metadata: {generateName: loop-, labels: {type: loop}}
    spec:
      serviceAccountName: sa
      params: [{name: from, value: $(workload.metadata.name)$}]
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: loop}
spec:
  selector: {type: loop}
  resources: [{name: again, templateRef: {kind: ClusterTemplate, name: again}}]
";

const ROOT: &str = r"
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: root, labels: {type: loop}}
spec: {serviceAccountName: sa}
";

async fn set() -> Stage {
    let mut stage = Stage::set().await;
    let rules = "[{apiGroups: [carto.run], resources: [workloads], verbs: [create, get, list, patch, delete, watch]}]";
    stage.grant("owners", rules).await;
    stage.apply(LOOP).await;
    stage.start_controller();
    stage
}

fn depth(workload: &Value) -> usize {
    let stamped_for = workload["status"]["stampedFor"].as_array();
    stamped_for.map_or(0, Vec::len)
}

fn name(workload: &Value) -> &str {
    workload["metadata"]["name"].as_str().unwrap()
}

/// Waits until one Workload says that it is too deep, and returns it.
async fn too_deep(stage: &Stage) -> Value {
    eventually("a Workload is too deep", PATIENCE, async || {
        let workloads = stage.all(OURS, "Workload").await;
        let count = workloads.len();
        let is_too_deep = |workload: &Value| {
            condition(&workload["status"], "Ready")["reason"] == "StampedTooDeep"
        };
        let found = workloads.into_iter().find(is_too_deep);
        found.map(Some).ok_or(count)
    })
    .await
}

/// Edits it and waits until that was seen; returns it as it is then.
async fn touched(stage: &Stage, name: &str) -> Value {
    let before = stage.owner(name).await;
    let touch = json!({"spec": {"params": [{"name": "touched", "value": 1}]}});
    stage.edit_workload(name, touch).await;
    stage
        .until(name, "the edit was seen", |workload| {
            workload["status"]["observedGeneration"] == workload["metadata"]["generation"]
                && workload["metadata"]["generation"] != before["metadata"]["generation"]
        })
        .await
}

#[tokio::test]
async fn a_template_that_stamps_a_workload_of_its_own_chain_comes_to_an_end() {
    let stage = set().await;
    stage.apply(ROOT).await;
    let last = too_deep(&stage).await;
    stage.idle().await;
    let workloads = stage.all(OURS, "Workload").await;
    assert_eq!(
        workloads.len(),
        1 + MOST + 1,
        "the first, those that follow, and the one that stamps nothing"
    );
    let mut depths: Vec<usize> = workloads.iter().map(depth).collect();
    depths.sort_unstable();
    assert_eq!(depths, (0..=MOST + 1).collect::<Vec<_>>());

    let message = condition(&last["status"], "Ready")["message"].clone();
    let message = message.as_str().unwrap();
    let way: Vec<&str> = last["status"]["stampedFor"]
        .as_array()
        .unwrap()
        .iter()
        .map(|owner| owner.as_str().unwrap())
        .collect();
    assert_eq!(way[0], "Workload/root");
    let way = format!("{} -> Workload/{}", way.join(" -> "), name(&last));
    assert!(message.contains(&way), "{message} names {way}");
    assert_eq!(
        condition(&last["status"], "ResourcesSubmitted")["status"],
        "False"
    );
    let warned =
        |event: &String| event.starts_with("Warning ResourceFailed") && event.contains(&way);
    eventually("a Warning names the way", PATIENCE, async || {
        let told = stage.events().await;
        let warned = told.iter().any(warned);
        if warned { Ok(()) } else { Err(told) }
    })
    .await;
}

#[tokio::test]
async fn what_a_tenant_takes_off_a_stamped_workload_does_not_start_it_anew() {
    let mut stage = set().await;
    stage.apply(ROOT).await;
    let last = too_deep(&stage).await;
    stage.idle().await;
    let before = stage.all(OURS, "Workload").await.len();
    let tenant = stage.tenant().await;
    let strip = json!({"metadata": {"ownerReferences": null, "annotations": null}});
    tenant
        .patch(OURS, "Workload", name(&last), strip)
        .await
        .unwrap();
    let reset = json!({"status": {"stampedFor": null}});
    let refused = tenant
        .patch_status(OURS, "Workload", name(&last), reset)
        .await;
    assert!(refused.is_err(), "a tenant may not write a status");
    // Also for a process that has never seen it with a reference.
    stage.kill_controller();
    stage.start_controller();
    touched(&stage, name(&last)).await;
    stage.idle().await;
    let after = stage.owner(name(&last)).await;
    assert_eq!(
        condition(&after["status"], "Ready")["reason"],
        "StampedTooDeep"
    );
    assert_eq!(depth(&after), MOST + 1);
    // Its parent, to which it does not belong any more, may make another one, which is as deep.
    let workloads = stage.all(OURS, "Workload").await;
    assert!(workloads.len() <= before + 1, "{}", workloads.len());
    let is_made_by_it = |workload: &Value| workload["spec"]["params"][0]["value"] == name(&last);
    assert!(!workloads.iter().any(is_made_by_it));
    assert!(workloads.iter().all(|workload| depth(workload) <= MOST + 1));
}

#[tokio::test]
async fn a_workload_that_a_runnable_made_counts_who_came_before_the_runnable() {
    let stage = set().await;
    // As the controller of Runnables makes it: it knows of the Runnable what stands in its status.
    let above: Vec<String> = (0..MOST)
        .map(|number| format!("Workload/w{number}"))
        .collect();
    let reference = json!({"apiVersion": OURS, "kind": "Runnable", "name": "run", "uid": "of-run", "controller": true});
    let made = json!({
        "apiVersion": OURS, "kind": "Workload",
        "metadata": {
            "name": "made", "labels": {"type": "loop"}, "ownerReferences": [reference],
            "annotations": {"carto.run/stamped-for": above.join(",")},
        },
        "spec": {"serviceAccountName": "sa"},
    });
    stage.create_as("test", made).await;
    let made = stage.ready("made", "False", "StampedTooDeep").await;
    assert_eq!(depth(&made), MOST + 1);
    let message = condition(&made["status"], "Ready")["message"].clone();
    assert!(
        message
            .as_str()
            .unwrap()
            .contains("Workload/w7 -> Runnable/run -> Workload/made"),
        "{message}"
    );
    assert_eq!(stage.all(OURS, "Workload").await.len(), 1);
}

#[tokio::test]
async fn what_a_tenant_writes_to_a_workload_of_others_does_not_stop_it() {
    let stage = set().await;
    stage.apply(ROOT).await;
    let last = too_deep(&stage).await;
    stage.idle().await;
    // References that lead through all that there are and back, and a long annotation.
    let tenant = stage.tenant().await;
    let above: Vec<String> = (0..=MOST)
        .map(|number| format!("Workload/w{number}"))
        .collect();
    let reference = json!({"apiVersion": OURS, "kind": "Workload", "name": name(&last), "uid": last["metadata"]["uid"],
        "controller": true});
    let forged = json!({"metadata": {"ownerReferences": [reference],
        "annotations": {"carto.run/stamped-for": above.join(",")}}});
    tenant
        .patch(OURS, "Workload", "root", forged)
        .await
        .unwrap();
    let after = touched(&stage, "root").await;
    assert_eq!(depth(&after), 0);
    assert_eq!(
        condition(&after["status"], "ResourcesSubmitted")["status"],
        "True"
    );
}
