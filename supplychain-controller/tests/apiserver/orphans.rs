//! Objects that no step stands for any more (docs/behaviour/deletion.md#orphans).

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{NOTHING, PATIENCE, Stage, condition, condition_types};
use crate::unchanged::blueprint_of;

fn config(name: &str) -> String {
    format!("\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}}\n")
}

async fn names(stage: &Stage) -> Vec<String> {
    let mut names: Vec<String> = stage
        .all("v1", "ConfigMap")
        .await
        .iter()
        .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    names
}

async fn are(stage: &Stage, expected: &[&str]) {
    eventually(
        &format!("the objects are {expected:?}"),
        PATIENCE,
        async || {
            let seen = names(stage).await;
            if seen == expected { Ok(()) } else { Err(seen) }
        },
    )
    .await;
}

/// Waits until these deletions and no others are told of. A process that dies before it has written the status may tell of
/// one again, so each counts once.
async fn are_told(stage: &Stage, expected: &[&str]) {
    are_told_after(stage, expected, Vec::dedup).await;
}

/// The same while no process has died: each is told once.
async fn are_told_once(stage: &Stage, expected: &[&str]) {
    are_told_after(stage, expected, |_| {}).await;
}

async fn are_told_after(stage: &Stage, expected: &[&str], change: fn(&mut Vec<String>)) {
    let told =
        |name: &&str| format!("Normal StampedObjectRemoved: Deleted object [configmaps/{name}]");
    let expected: Vec<String> = expected.iter().map(told).collect();
    eventually("the deletions are told of", PATIENCE, async || {
        let mut removed = stage.events().await;
        removed.retain(|event| event.contains("StampedObjectRemoved"));
        removed.sort();
        change(&mut removed);
        if removed == expected {
            Ok(())
        } else {
            Err(removed)
        }
    })
    .await;
}

#[tokio::test]
async fn what_no_step_stands_for_is_deleted_and_what_moved_is_kept() {
    let stage = Stage::open().await;
    let (one, two, three) = (config("one"), config("two"), config("three"));
    stage
        .apply(&blueprint_of(&[("a", &one), ("b", &two), ("c", &three)]))
        .await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    are(&stage, &["one", "three", "two"]).await;
    let uid = stage.get("v1", "ConfigMap", "one").await.unwrap()["metadata"]["uid"].clone();

    // Removed.
    stage
        .apply(&blueprint_of(&[("a", &one), ("b", &two)]))
        .await;
    are(&stage, &["one", "two"]).await;
    // Another template with another name.
    stage
        .apply(&blueprint_of(&[("a", &one), ("b", &config("four"))]))
        .await;
    are(&stage, &["four", "one"]).await;
    // The step is renamed: its object is the same.
    stage
        .apply(&blueprint_of(&[("renamed", &one), ("b", &config("four"))]))
        .await;
    stage
        .until("app", "the step is called otherwise", |workload| {
            !crate::stage::step(workload, "renamed").is_null()
                && condition(&workload["status"], "Ready")["status"] == "True"
        })
        .await;
    let kept = stage.get("v1", "ConfigMap", "one").await.unwrap();
    assert_eq!(kept["metadata"]["uid"], uid);
    assert_eq!(
        kept["metadata"]["labels"]["carto.run/resource-name"],
        "renamed"
    );
    // The names swap their steps.
    stage
        .apply(&blueprint_of(&[("renamed", &config("four")), ("b", &one)]))
        .await;
    eventually("the objects follow", PATIENCE, async || {
        let one = stage.get("v1", "ConfigMap", "one").await.ok_or("gone")?;
        let step = one["metadata"]["labels"]["carto.run/resource-name"].clone();
        if step == "b" {
            Ok(())
        } else {
            Err(step.to_string())
        }
    })
    .await;
    stage.ready("app", "True", "Ready").await;
    are(&stage, &["four", "one"]).await;
    assert_eq!(
        stage.get("v1", "ConfigMap", "one").await.unwrap()["metadata"]["uid"],
        uid
    );
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    // The event goes out after the object: a process that dies in between tells of nothing.
    are_told_once(&stage, &["three", "two"]).await;

    // What is removed while nobody looks is found by the status and by the owner reference.
    let mut stage = stage;
    stage.kill_controller();
    stage.apply(&blueprint_of(&[("b", &one)])).await;
    stage.start_controller();
    are(&stage, &["one"]).await;
    are_told(&stage, &["four", "three", "two"]).await;
    stage.kill_controller();
    let forgotten = json!({"status": {"resources": []}});
    let workloads = stage.api("carto.run/v1alpha1", "Workload");
    workloads
        .patch_status(
            "app",
            &kube::api::PatchParams::default(),
            &kube::api::Patch::Merge(forgotten),
        )
        .await
        .unwrap();
    stage.apply(&blueprint_of(&[("b", &config("five"))])).await;
    stage.start_controller();
    are(&stage, &["five"]).await;

    // Another blueprint, for the label that changed.
    let other = blueprint_of(&[("z", &config("six"))])
        .replace("name: chain", "name: other")
        .replace("type: web", "type: other");
    stage.apply(&other).await;
    stage
        .edit_workload("app", json!({"metadata": {"labels": {"type": "other"}}}))
        .await;
    are(&stage, &["six"]).await;
    // No blueprint at all: what is there stays.
    stage
        .edit_workload("app", json!({"metadata": {"labels": {"type": "none"}}}))
        .await;
    stage.ready("app", "False", "SupplyChainNotFound").await;
    are(&stage, &["six"]).await;
    are_told(&stage, &["five", "four", "one", "three", "two"]).await;
}

/// Whether configmaps may be deleted; all else may be done with them.
async fn may_delete(stage: &Stage, allowed: bool) {
    let namespace = &stage.namespace;
    let delete = if allowed { ", delete" } else { "" };
    stage
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {{name: stamps, namespace: {namespace}}}\n\
             rules: [{{apiGroups: [''], resources: [configmaps], verbs: [get, list, create, patch{delete}]}}]\n"
        ))
        .await;
    stage.until_may("delete", "", "configmaps", allowed).await;
}

/// Events so far about deletions that failed.
async fn told_of_failures(stage: &Stage) -> usize {
    let events = stage.events().await.into_iter();
    events
        .filter(|event| event.starts_with("Warning DeletionFailed"))
        .count()
}

fn pending(workload: &Value) -> Option<String> {
    let pending = condition(&workload["status"], "DeletionPending");
    pending["message"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn a_forbidden_deletion_is_pending_until_it_is_allowed() {
    let mut stage = Stage::open().await;
    may_delete(&stage, false).await;
    let (one, two) = (config("one"), config("two"));
    stage
        .apply(&blueprint_of(&[("a", &one), ("b", &two)]))
        .await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    stage.apply(&blueprint_of(&[("a", &one)])).await;
    let held = stage
        .until("app", "a deletion is pending", |workload| {
            pending(workload).is_some()
        })
        .await;
    let namespace = stage.namespace.clone();
    assert_eq!(
        pending(&held).unwrap(),
        format!(
            "unable to delete objects that are no longer wanted: [configmaps/two]: configmaps \"two\" is forbidden: User \
             \"system:serviceaccount:{namespace}:sa\" cannot delete resource \"configmaps\" in API group \"\" in the namespace \
             \"{namespace}\""
        )
    );
    assert_eq!(
        condition_types(&held["status"]),
        [
            "SupplyChainReady",
            "ResourcesSubmitted",
            "ResourcesHealthy",
            "Ready",
            "DeletionPending"
        ]
    );
    assert_eq!(
        condition(&held["status"], "Ready")["status"],
        "True",
        "it never feeds Ready"
    );
    are(&stage, &["one", "two"]).await;
    // It goes out after the status: a process that dies in between tells of nothing.
    eventually("the failure is told", PATIENCE, async || {
        told_of_failures(&stage).await > 0
    })
    .await;

    stage.kill_controller();
    stage.start_controller();
    let attempts = |stage: &Stage| {
        stage
            .writes()
            .iter()
            .filter(|write| write.starts_with("delete configmaps/two"))
            .count()
    };
    let before = attempts(&stage);
    eventually(
        "it is tried again after the restart",
        PATIENCE,
        async || attempts(&stage) > before,
    )
    .await;
    assert!(pending(&stage.workload("app").await).is_some());

    may_delete(&stage, true).await;
    are(&stage, &["one"]).await;
    stage
        .until("app", "nothing is pending", |workload| {
            pending(workload).is_none()
        })
        .await;
    let status = stage.workload("app").await["status"].clone();
    assert_eq!(status["pendingRemovals"], Value::Null);
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(
        told_of_failures(&stage).await,
        1,
        "told once, however often it is tried"
    );
}

#[tokio::test]
async fn a_lifecycle_that_changes_replaces_the_object() {
    let stage = Stage::open().await;
    let mutable = crate::immutable::instant(3)
        .replace("  lifecycle: immutable\n", "")
        .replace(
            "generateName: $(workload.metadata.name)$-",
            "name: $(workload.metadata.name)$",
        );
    stage.apply(&mutable).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    assert!(
        stage
            .get("test.run/v1alpha1", "Test", "app")
            .await
            .is_some()
    );
    stage.apply(&crate::immutable::instant(3)).await;
    let alone = |name: fn(&str) -> bool| {
        let stage = &stage;
        async move || {
            let tests = stage.tests().await;
            let names: Vec<String> = tests
                .iter()
                .map(|test| test["metadata"]["name"].as_str().unwrap().to_owned())
                .collect();
            if matches!(&names[..], [one] if name(one)) {
                Ok(())
            } else {
                Err(names)
            }
        }
    };
    eventually(
        "a run has replaced it",
        PATIENCE,
        alone(|name| name.starts_with("app-")),
    )
    .await;
    stage.ready("app", "True", "Ready").await;
    stage.apply(&mutable).await;
    eventually(
        "it has replaced the run",
        PATIENCE,
        alone(|name| name == "app"),
    )
    .await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

/// A chain with this name, whose runs succeed at once and are kept as history.
fn history(chain: &str) -> String {
    crate::immutable::instant(3).replace(
        "metadata: {name: runs}",
        &format!("metadata: {{name: {chain}}}"),
    )
}

#[tokio::test]
async fn the_history_made_under_another_blueprint_goes_with_it() {
    let mut stage = Stage::open().await;
    stage.apply(&history("before")).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    for branch in ["a", "b", "c"] {
        stage
            .edit_owner("app", crate::immutable::branch(branch))
            .await;
        crate::immutable::runs_up_to(&stage, branch).await;
    }
    stage.ready("app", "True", "Ready").await;
    let of_before = stage.tests().await;
    assert_eq!(of_before.len(), 3);
    // Somebody else's object that has the same labels.
    let labels = &of_before[0]["metadata"]["labels"];
    let foreign = json!({"apiVersion": "test.run/v1alpha1", "kind": "Test", "metadata": {"name": "foreign", "labels": labels}});
    stage.create_as("somebody", foreign).await;

    // Nobody looks meanwhile: after the start nothing is known of the runs but what their watch shows.
    stage.kill_controller();
    let of_others = history("before").replace("selector: {type: web}", "selector: {type: others}");
    stage.apply(&of_others).await;
    stage.apply(&history("after")).await;
    stage.start_controller();
    eventually(
        "only the new run and the foreign object are left",
        PATIENCE,
        async || {
            let tests = stage.tests().await;
            let mut left: Vec<_> = tests
                .iter()
                .map(|test| {
                    let labels = &test["metadata"]["labels"];
                    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    (
                        text(&labels["carto.run/supply-chain-name"]),
                        test["metadata"]["name"] == "foreign",
                    )
                })
                .collect();
            left.sort();
            if left == [("after".to_owned(), false), ("before".to_owned(), true)] {
                Ok(())
            } else {
                Err(left)
            }
        },
    )
    .await;
    stage.ready("app", "True", "Ready").await;
    let mut deletions = stage.writes();
    deletions.retain(|write| write.starts_with("delete tests/"));
    assert_eq!(deletions.len(), 3, "{deletions:?}");
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

type Definition =
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// A kind in two versions, of which the older one is served or not.
fn moving(old_is_served: bool) -> String {
    let version = |name: &str, served: bool, storage: bool| {
        format!(
            "    - name: {name}\n      served: {served}\n      storage: {storage}\n      \
             schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}\n"
        )
    };
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: movings.moving.run}}\nspec:\n  \
         group: moving.run\n  scope: Namespaced\n  \
         names: {{kind: Moving, plural: movings, singular: moving, listKind: MovingList}}\n  versions:\n{}{}",
        version("v1alpha1", old_is_served, false),
        version("v1", true, true),
    )
}

fn of_version(version: &str) -> String {
    format!(
        "\napiVersion: moving.run/{version}\nkind: Moving\nmetadata: {{name: moving}}\nspec: {{a: b}}\n"
    )
}

/// Waits until the workload has no other steps than these, and nothing is left to be deleted.
async fn settled(stage: &Stage, steps: &[&str]) {
    stage
        .until("app", &format!("its steps are {steps:?}"), |workload| {
            let status = &workload["status"];
            let entries = status["resources"].as_array().cloned().unwrap_or_default();
            entries.iter().map(|entry| &entry["name"]).eq(steps)
                && condition(status, "Ready")["status"] == "True"
                && status["pendingRemovals"].is_null()
        })
        .await;
}

#[tokio::test]
async fn an_object_outlives_the_version_it_was_made_in_but_not_its_kind() {
    let stage = Stage::open().await;
    stage.grant("moving", "[{apiGroups: [moving.run], resources: [movings], verbs: [get, list, create, patch, delete]}]").await;
    stage.apply(&moving(true)).await;
    let one = config("one");
    let alone = blueprint_of(&[("a", &one)]);
    let with = |version| blueprint_of(&[("a", &one), ("b", &of_version(version))]);
    stage.apply(&with("v1alpha1")).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    settled(&stage, &["a", "b"]).await;

    // The version goes, the object stays until its step goes.
    stage.apply(&moving(false)).await;
    eventually("the old version is not served", PATIENCE, async || {
        let resources = stage.client.list_api_group_resources("moving.run/v1alpha1");
        resources.await.is_err()
    })
    .await;
    assert!(
        stage
            .get("moving.run/v1", "Moving", "moving")
            .await
            .is_some()
    );
    stage.apply(&alone).await;
    eventually("the object is deleted", PATIENCE, async || {
        stage
            .get("moving.run/v1", "Moving", "moving")
            .await
            .is_none()
    })
    .await;
    settled(&stage, &["a"]).await;

    // With the kind, its objects go: nothing is left to be deleted.
    stage.apply(&with("v1")).await;
    settled(&stage, &["a", "b"]).await;
    let definitions: kube::Api<Definition> = kube::Api::all(stage.client.clone());
    let now = kube::api::DeleteParams::default();
    definitions
        .delete("movings.moving.run", &now)
        .await
        .unwrap();
    eventually("the kind is gone", PATIENCE, async || {
        let definition = definitions.get_opt("movings.moving.run").await.unwrap();
        definition.is_none()
    })
    .await;
    stage.apply(&alone).await;
    settled(&stage, &["a"]).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}
