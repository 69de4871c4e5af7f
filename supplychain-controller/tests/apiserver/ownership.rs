//! Whose field, whose object: what is rendered is ours, everything else is left alone
//! (docs/behaviour/objects.md#contested).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::Run;

use crate::stage::{NOTHING, PATIENCE, Stage, condition, condition_types, step};
use crate::unchanged::blueprint_of;

const SHARED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: shared, labels: {team: a}, annotations: {note: b}}
data: {a: rendered, b: rendered}
";

async fn shared(stage: &Stage) -> Option<Value> {
    stage.get("v1", "ConfigMap", "shared").await
}

async fn shared_is(stage: &Stage, what: &str, probe: impl Fn(&Value) -> bool) -> Value {
    eventually(what, PATIENCE, async || {
        let object = shared(stage).await.ok_or("no object")?;
        if probe(&object) {
            Ok(Some(object))
        } else {
            Err(object.to_string())
        }
    })
    .await
}

#[tokio::test]
async fn what_is_rendered_is_kept_and_what_is_not_is_left_alone() {
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("shared", SHARED)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;

    let foreign = json!({
        "data": {"mine": "1"},
        "metadata": {"annotations": {"mine": "1"}, "labels": {"mine": "1"}, "finalizers": ["example.com/hold"]},
    });
    stage.edit("v1", "ConfigMap", "shared", foreign).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);

    stage
        .edit(
            "v1",
            "ConfigMap",
            "shared",
            json!({"data": {"a": "edited", "b": null}}),
        )
        .await;
    shared_is(&stage, "the edit is reverted", |object| {
        object["data"] == json!({"a": "rendered", "b": "rendered", "mine": "1"})
    })
    .await;

    // Without its label the object is hidden from the watch; without the other it is not known whose step it is.
    for label in ["carto.run/workload-name", "carto.run/resource-name", "team"] {
        stage
            .edit(
                "v1",
                "ConfigMap",
                "shared",
                json!({"metadata": {"labels": {label: null}}}),
            )
            .await;
        shared_is(&stage, &format!("{label} is back"), |object| {
            object["metadata"]["labels"][label].is_string()
        })
        .await;
    }
    stage
        .edit(
            "v1",
            "ConfigMap",
            "shared",
            json!({"metadata": {"ownerReferences": null}}),
        )
        .await;
    shared_is(&stage, "the owner is back", |object| {
        object["metadata"]["ownerReferences"][0]["name"] == "app"
    })
    .await;

    stage
        .apply(&blueprint_of(&[(
            "shared",
            &SHARED
                .replace(", b: rendered", "")
                .replace(", annotations: {note: b}", ""),
        )]))
        .await;
    let left = shared_is(&stage, "the dropped field is gone", |object| {
        object["data"]["b"].is_null()
    })
    .await;
    assert_eq!(left["data"], json!({"a": "rendered", "mine": "1"}));
    let metadata = &left["metadata"];
    assert_eq!(metadata["annotations"]["note"], Value::Null);
    assert_eq!(
        (
            &metadata["annotations"]["mine"],
            &metadata["labels"]["mine"]
        ),
        (&json!("1"), &json!("1"))
    );
    assert_eq!(metadata["finalizers"], json!(["example.com/hold"]));

    stage
        .edit(
            "v1",
            "ConfigMap",
            "shared",
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    stage.delete("v1", "ConfigMap", "shared").await;
    let again = shared_is(&stage, "the object is made again", |object| {
        object["metadata"]["uid"] != metadata["uid"]
    })
    .await;
    assert_eq!(again["data"], json!({"a": "rendered"}));
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

#[tokio::test]
async fn of_two_owners_of_one_name_the_first_keeps_the_object() {
    let stage = Stage::open().await;
    stage
        .apply(&blueprint_of(&[
            ("shared", SHARED),
            (
                "own",
                "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$-own}
",
            ),
        ]))
        .await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let uid = shared(&stage).await.unwrap()["metadata"]["uid"].clone();
    let namespace = &stage.namespace;

    stage
        .apply(&crate::chain::WORKLOAD.replace("name: app", "name: late"))
        .await;
    let contested = stage.ready("late", "False", "ObjectContested").await;
    let message = format!(
        "unable to apply object [{namespace}/shared] for resource [shared] in supply chain [chain]: object [{namespace}/shared] \
         belongs to Workload [app]; rename it in the template or remove the other owner"
    );
    assert_eq!(condition(&contested["status"], "Ready")["message"], message);
    assert_eq!(
        condition_types(&contested["status"]),
        [
            "SupplyChainReady",
            "ResourcesSubmitted",
            "ResourcesHealthy",
            "Ready",
            "ObjectContested",
            "Stalled"
        ]
    );
    assert!(
        stage.get("v1", "ConfigMap", "late-own").await.is_some(),
        "the other steps go on"
    );
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(stage.requests_of_reconciles("late", 2).await, NOTHING);
    let summary = &contested["status"]["summary"];
    assert_eq!(
        (&summary["state"], &summary["step"], &summary["reason"]),
        (
            &json!("Failing"),
            &json!("shared"),
            &json!("ObjectContested")
        )
    );
    assert_eq!(summary["message"], message);
    assert_eq!(shared(&stage).await.unwrap()["metadata"]["uid"], uid);

    // The first one lets go, and the garbage collector (which does not run here) takes its object.
    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    let before = stage.place_in_the_log();
    stage.delete("v1", "ConfigMap", "shared").await;
    let healed = stage.ready("late", "True", "Ready").await;
    // The deletion wakes whoever waits for the object; without that it would be looked at again after half a minute.
    stage.was_woken_since(before, "late").await;
    assert_eq!(condition(&healed["status"], "ObjectContested"), Value::Null);
    assert_eq!(
        shared(&stage).await.unwrap()["metadata"]["ownerReferences"][0]["name"],
        "late"
    );
}

#[tokio::test]
async fn of_two_steps_of_one_name_the_first_keeps_the_object() {
    let stage = Stage::open().await;
    let other = SHARED.replace("a: rendered", "a: other");
    stage
        .apply(&blueprint_of(&[("first", SHARED), ("second", &other)]))
        .await;
    stage.apply(crate::chain::WORKLOAD).await;
    let contested = stage.ready("app", "False", "ObjectContested").await;
    let namespace = &stage.namespace;
    assert_eq!(
        condition(&step(&contested, "second"), "ResourceSubmitted")["message"],
        format!(
            "unable to apply object [{namespace}/shared] for resource [second] in supply chain [chain]: object \
             [{namespace}/shared] belongs to resource [first] of the same workload; give the two templates different names"
        )
    );
    assert_eq!(
        condition(&step(&contested, "first"), "Ready")["status"],
        "True"
    );
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(shared(&stage).await.unwrap()["data"]["a"], "rendered");

    // The first step is removed: its object is not an orphan, it now belongs to the second.
    let uid = shared(&stage).await.unwrap()["metadata"]["uid"].clone();
    stage.apply(&blueprint_of(&[("second", &other)])).await;
    stage.ready("app", "True", "Ready").await;
    shared_is(&stage, "the second step owns it", |object| {
        object["data"]["a"] == "other"
    })
    .await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(shared(&stage).await.unwrap()["metadata"]["uid"], uid);
}

#[tokio::test]
async fn an_object_of_a_stranger_is_not_taken() {
    let stage = Stage::open().await;
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "theirs"},
        "metadata": {"name": "shared", "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": "5d2a8c9e-0000-4000-8000-000000000001", "controller": true}]},
    });
    stage.create_as("deployment-controller", theirs).await;
    stage.apply(&blueprint_of(&[("shared", SHARED)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    let contested = stage.ready("app", "False", "ObjectContested").await;
    let message = condition(&contested["status"], "Ready")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains("belongs to Deployment [other]"),
        "{message}"
    );
    let object = shared(&stage).await.unwrap();
    assert_eq!(
        (&object["data"], &object["metadata"]["labels"]),
        (&json!({"a": "theirs"}), &Value::Null)
    );
}

#[tokio::test]
async fn a_workload_of_another_group_is_a_stranger_too() {
    let stage = Stage::open().await;
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "theirs"},
        "metadata": {"name": "shared", "labels": {"carto.run/workload-name": "other"}, "ownerReferences": [{
            "apiVersion": "jobs.example.com/v1", "kind": "Workload", "name": "other", "uid": "5d2a8c9e-0000-4000-8000-000000000001", "controller": true}]},
    });
    stage.create_as("somebody", theirs).await;
    stage.apply(&blueprint_of(&[("shared", SHARED)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "False", "ObjectContested").await;
    // It is not one of ours that is gone: nothing is tried.
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    assert_eq!(
        shared(&stage).await.unwrap()["data"],
        json!({"a": "theirs"})
    );
}

/// How often a rendering may be written in this time: soon a few times, then every 1.6 s.
fn most_answers(elapsed: Duration) -> usize {
    let seconds = usize::try_from(elapsed.as_secs()).unwrap();
    12 + seconds * 10 / 16
}

#[tokio::test]
async fn a_writer_that_keeps_undoing_the_rendering_is_answered_ever_less_often() {
    let stage = Stage::open().await;
    stage.apply(&blueprint_of(&[("shared", SHARED)])).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let (before, place) = (stage.writes().len(), stage.place_in_the_log());
    let started = Instant::now();
    let told = async || {
        let events = stage.events().await;
        events
            .into_iter()
            .find(|event| event.starts_with("Warning ObjectContested"))
    };
    let mut undone = 0_u32;
    // On a slow machine it takes longer until it was undone so often that somebody is told.
    while started.elapsed() < Duration::from_secs(4) || told().await.is_none() {
        assert!(started.elapsed() < PATIENCE, "nobody is told");
        // The label, too: without it the object is out of the watch's sight, which must not reset the count.
        let label = if undone.is_multiple_of(2) {
            json!("app")
        } else {
            Value::Null
        };
        let undo = json!({"data": {"a": format!("{undone}")}, "metadata": {"labels": {"carto.run/workload-name": label}}});
        stage.edit("v1", "ConfigMap", "shared", undo).await;
        undone += 1;
    }
    // Nobody could say that it holds what was asked for.
    let fought_over = stage.ready("app", "False", "ObjectUndone").await;
    let message = format!(
        "object [{0}/shared] of resource [shared] in supply chain [chain] does not stay as rendered: another writer keeps \
         undoing it; stop that writer, or take the fields that it sets out of the template",
        stage.namespace
    );
    for condition_type in ["Ready", "ObjectContested"] {
        assert_eq!(
            condition(&fought_over["status"], condition_type)["message"],
            message
        );
    }
    eventually("the object is as rendered", PATIENCE, async || {
        shared(&stage).await.unwrap()["data"]["a"] == "rendered"
    })
    .await;
    let answers = stage.writes().len() - before;
    let most = most_answers(started.elapsed());
    assert!(
        answers <= most,
        "{answers} answers to {undone} writes, and not {most}"
    );
    let warned = told().await.unwrap();
    assert!(warned.contains("configmaps"), "{warned}");
    let healed = stage.ready("app", "True", "Ready").await;
    assert_eq!(condition(&healed["status"], "ObjectContested"), Value::Null);
    // Nobody had to wait for a back-off: a fight is over when the object has stayed as rendered for ten seconds.
    let late = |run: &Run| run.pause > Duration::from_secs(10);
    let runs = stage.runs_since(place, "app");
    assert!(!runs.is_empty() && !runs.iter().any(late), "{runs:?}");
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}
