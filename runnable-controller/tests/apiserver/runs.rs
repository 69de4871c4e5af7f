//! Runs, and what starts none (docs/behaviour/runnables.md#runs,
//! docs/behaviour/runnables.md#outputs; #587).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use test_support::stage::{NOTHING, PATIENCE};
use test_support::{Stage, eventually};

use crate::stage::{
    CAST, TEMPLATE, delete_template, end, open, outputs, revision, runnable, runs, says,
};

#[tokio::test]
async fn a_settled_runnable_sends_nothing_and_a_restart_runs_nothing() {
    let mut stage = open("").await;
    let run = runs(&stage, 1).await.remove(0);
    stage.ready("app", "Unknown", "Unknown").await;
    end(&stage, &run, "True", "good").await;
    let settled = stage.ready("app", "True", "Ready").await;
    assert_eq!(settled["status"]["outputs"], json!({"result": "good"}));
    assert_eq!(settled["status"]["stampedRef"]["name"], run);
    assert_eq!(settled["status"]["runs"][0]["result"], "Succeeded");
    assert_eq!(stage.traffic_of_reconciles("app", 3).await, NOTHING);

    stage.kill_controller();
    let writes = stage.writes();
    stage.start_controller();
    stage.reconcile("app").await;
    assert_eq!(runs(&stage, 1).await, [run]);
    assert_eq!(stage.writes(), writes);
}

#[tokio::test]
async fn inputs_that_go_and_come_back_start_three_runs() {
    let stage = open("").await;
    for (count, name) in [(1, "a"), (2, "b"), (3, "a")] {
        stage.edit_owner("app", revision(name)).await;
        runs(&stage, count).await;
    }
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    runs(&stage, 3).await;
}

#[tokio::test]
async fn a_spec_that_somebody_changes_starts_no_run() {
    let stage = open("").await;
    let run = runs(&stage, 1).await.remove(0);
    let patch = json!({"spec": {"value": {"nodeName": "n1", "revision": "other"}}});
    stage.edit("test.run/v1alpha1", "Test", &run, patch).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(runs(&stage, 1).await, [run]);
}

#[tokio::test]
async fn a_kind_without_spec_is_run_once() {
    let stage = open("").await;
    runs(&stage, 1).await;
    stage
        .apply(
            "
apiVersion: carto.run/v1alpha1
kind: ClusterRunTemplate
metadata: {name: tests}
spec:
  healthRule: {alwaysHealthy: {}}
  outputs: {revision: .data.revision}
  ytt: |
    #@ load(\"@ytt:data\", \"data\")
    apiVersion: v1
    kind: ConfigMap
    metadata:
      generateName: #@ data.values.runnable.metadata.name + \"-\"
    data:
      revision: #@ data.values.runnable.spec.inputs.revision
",
        )
        .await;
    outputs(&stage, json!({"revision": "a"})).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    let maps = stage.all("v1", "ConfigMap").await;
    let ours = maps
        .iter()
        .filter(|map| map["metadata"]["labels"]["carto.run/runnable-name"] == "app");
    assert_eq!(ours.count(), 1);
}

#[tokio::test]
async fn two_runnables_with_one_template_do_not_interfere() {
    let stage = open("  retentionPolicy: {maxSuccessfulRuns: 1, maxFailedRuns: 1}").await;
    let first = runs(&stage, 1).await;
    stage.apply(&runnable("other", "")).await;
    let both = runs(&stage, 2).await;
    let other = both.iter().find(|name| name.starts_with("other-")).unwrap();
    end(&stage, &first[0], "True", "of app").await;
    end(&stage, other, "True", "of other").await;
    outputs(&stage, json!({"result": "of app"})).await;
    stage
        .until("other", "its own outputs", |runnable| {
            runnable["status"]["outputs"] == json!({"result": "of other"})
        })
        .await;
    stage.edit_owner("app", revision("b")).await;
    let three = runs(&stage, 3).await;
    assert!(three.contains(other));
    let newest = three.iter().find(|name| !both.contains(name)).unwrap();
    end(&stage, newest, "True", "of b").await;
    // Of app one run stays, and the other's is none of its business.
    let left = runs(&stage, 2).await;
    assert!(left.contains(other) && left.contains(newest));
}

#[tokio::test]
async fn outputs_survive_errors_and_a_repaired_template_goes_on() {
    let stage = open("").await;
    let run = runs(&stage, 1).await.remove(0);
    end(&stage, &run, "True", "good").await;
    outputs(&stage, json!({"result": "good"})).await;
    stage
        .apply(&TEMPLATE.replace(
            "runnable.spec.inputs.revision",
            "runnable.spec.inputs.absent",
        ))
        .await;
    says(
        &stage,
        "TemplateStampFailure",
        "unable to stamp object for run template [tests]: ",
    )
    .await;
    outputs(&stage, json!({"result": "good"})).await;
    delete_template(&stage).await;
    let message = "[ClusterRunTemplate/tests]: ClusterRunTemplate.carto.run \"tests\" not found";
    says(&stage, "RunTemplateNotFound", message).await;
    outputs(&stage, json!({"result": "good"})).await;
    stage.apply(TEMPLATE).await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(runs(&stage, 1).await, [run]);
}

#[tokio::test]
async fn a_run_is_made_with_the_rights_of_the_runnable() {
    let stage = open("").await;
    runs(&stage, 1).await;
    stage
        .edit_owner("app", json!({"spec": {"serviceAccountName": "absent"}}))
        .await;
    says(
        &stage,
        "ServiceAccountError",
        "ServiceAccount \"absent\" not found",
    )
    .await;
    stage
        .edit_owner(
            "app",
            json!({"spec": {"serviceAccountName": "default", "inputs": {"revision": "b"}}}),
        )
        .await;
    says(&stage, "StampedObjectRejectedByAPIServer", "serviceaccount").await;
    let namespace = &stage.namespace;
    stage
        .apply(&format!(
            "
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: default-stamps}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: stamps}}
subjects: [{{kind: ServiceAccount, name: default, namespace: {namespace}}}]
"
        ))
        .await;
    runs(&stage, 2).await;
    // That the account goes is told at once, although there is nothing to run.
    stage.delete("v1", "ServiceAccount", "default").await;
    says(
        &stage,
        "ServiceAccountError",
        "ServiceAccount \"default\" not found",
    )
    .await;
}

#[tokio::test]
async fn events_tell_of_runs() {
    let stage = open("").await;
    let run = runs(&stage, 1).await.remove(0);
    end(&stage, &run, "True", "good").await;
    outputs(&stage, json!({"result": "good"})).await;
    let created = format!("Created object [tests.test.run/{run}]");
    let found = format!("Runnable [app] found a new output in [tests.test.run/{run}]");
    eventually("both events", PATIENCE, async || {
        let events = stage.events().await;
        let has = |text: &str| events.iter().any(|event| event.contains(text));
        if has(&created) && has(&found) {
            Ok(Some(()))
        } else {
            Err(events)
        }
    })
    .await;
}

/// What the Go controller left: labels and an owner reference, and neither digest nor sequence.
#[tokio::test]
async fn a_takeover_runs_nothing_again() {
    let mut stage = Stage::set(CAST).await;
    stage.apply(TEMPLATE).await;
    stage.apply(&runnable("app", "")).await;
    let uid = stage.owner("app").await["metadata"]["uid"].clone();
    let left = json!({"apiVersion": "test.run/v1alpha1", "kind": "Test",
        "metadata": {"name": "app-x7k2p", "namespace": stage.namespace,
            "labels": {"carto.run/runnable-name": "app", "carto.run/run-template-name": "tests"},
            "ownerReferences": [{"apiVersion": "carto.run/v1alpha1", "kind": "Runnable", "name": "app", "uid": uid,
                "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"value": {"revision": "a"}}});
    stage.create_as("cartographer", left).await;
    end(&stage, "app-x7k2p", "True", "of the Go controller").await;
    stage.start_controller();
    stage.ready("app", "True", "Ready").await;
    outputs(&stage, json!({"result": "of the Go controller"})).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(stage.tests().await.len(), 1);
    stage.edit_owner("app", revision("b")).await;
    stage
        .until("app", "the new run is named", |runnable| {
            runnable["status"]["stampedRef"]["name"] != "app-x7k2p"
        })
        .await;
    assert_eq!(stage.tests().await.len(), 2);
}

/// The status changes the version, the version the rendering, and each rendering is a run: without a brake, whatever
/// wakes the Runnable starts another one.
#[tokio::test]
async fn a_template_that_reads_the_version_of_the_runnable_is_slowed_down() {
    let stage = Stage::open(CAST).await;
    let circle = TEMPLATE.replace(
        "runnable.spec.inputs.revision",
        "runnable.metadata.resourceVersion",
    );
    stage.apply(&circle).await;
    let since = Instant::now();
    stage.apply(&runnable("app", "")).await;
    let told = "Warning RenderingUnstable: [run] template [ClusterRunTemplate/tests] renders something else";
    let results = AtomicU32::new(0);
    eventually("somebody is told", PATIENCE, async || {
        let newest = stage.tests().await.pop()?;
        // Another output each time: it changes the status, and the Runnable is woken.
        let result = results.fetch_add(1, Ordering::Relaxed).to_string();
        let name = newest["metadata"]["name"].as_str().unwrap();
        end(&stage, name, "True", &result).await;
        let events = stage.events().await;
        let is_told = events.iter().any(|event| event.starts_with(told));
        is_told.then_some(())
    })
    .await;
    // At once, at once again, then after 2 s, 4 s, 8 s, ...
    let started = stage.tests().await.len();
    let waits = (1..6).map(|turn| Duration::from_secs((2 << turn) - 2));
    let due = waits.filter(|wait| *wait <= since.elapsed());
    assert!(started <= 2 + due.count(), "{started} runs");
}
