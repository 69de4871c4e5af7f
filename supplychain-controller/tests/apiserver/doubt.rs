//! A rule that compares fields, and somebody who changes another field, on a real API server
//! (docs/behaviour/attribution.md#doubtful).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::Versions;

use crate::attribution::{CHAIN, TESTS, deployed, push, start_without_status, submitted};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

const RULES: [&str; 2] = [
    "observedMatches: [{input: .spec.value.revision, output: .status.revision}]",
    "inputsOnStatus: [{templatingContextPath: source.revision, objectPath: .status.revision}]",
];

/// The good builder has built revision 1, and that is deployed.
async fn built(rule: &str) -> Stage {
    let rules = CHAIN.find("  observedCompletion:").unwrap();
    let template = CHAIN[rules..].find("  template:").unwrap();
    let chain = CHAIN
        .replace(&CHAIN[rules..rules + template], &format!("  {rule}\n"))
        .replace("{value: {revision: $(source.revision)$}}", SPEC);
    let stage = Stage::open().await;
    stage.apply(&chain).await;
    submitted(&stage, "1").await;
    builds(&stage, "good@1", "1").await;
    deployed(&stage, "good@1").await;
    // Status is written after what it tells of.
    stage.settle("app").await;
    stage
}

const SPEC: &str = "{value: {revision: $(source.revision)$, builder: good}}";

/// The controller of the build, which counts no generations, says what it has made.
async fn builds(stage: &Stage, image: &str, revision: &str) {
    let status = json!({"latestGoodOutput": image, "revision": revision});
    stage.report("app-build", status).await;
}

/// Somebody asks for another builder, and gets what that makes.
async fn builds_evil(stage: &Stage) {
    builds_by(stage, json!({"spec": {"value": {"builder": "evil"}}})).await;
}

/// The same, and he takes away the labels by which the object is watched.
async fn builds_evil_unseen(stage: &Stage) {
    let spec = json!({"value": {"builder": "evil"}});
    builds_by(stage, json!({"metadata": {"labels": null}, "spec": spec})).await;
}

async fn builds_by(stage: &Stage, patch: Value) {
    let tenant = stage.tenant().await;
    tenant
        .patch(TESTS, "Test", "app-build", patch)
        .await
        .unwrap();
    builds(stage, "evil@1", "1").await;
}

async fn builder(stage: &Stage) -> Value {
    let build = stage.get(TESTS, "Test", "app-build").await.unwrap();
    build["spec"]["value"]["builder"].clone()
}

async fn is_changed_back(stage: &Stage) {
    eventually("the builder is changed back", PATIENCE, async || {
        builder(stage).await == "good"
    })
    .await;
}

async fn is_doubted(stage: &Stage) {
    stage
        .until("app", "what was built is doubted", |owner| {
            let told = condition(&step(owner, "build"), "OutputsGood");
            let message = told["message"].as_str().unwrap_or_default();
            message.contains("somebody else changed object")
        })
        .await;
}

async fn nothing_evil_was_deployed(stage: &Stage, versions: &Versions) {
    let last = stage.get("v1", "ConfigMap", "app-deployed").await.unwrap();
    let seen = versions.up_to(&last).await;
    assert!(!format!("{seen:?}").contains("evil"), "{seen:?}");
}

#[tokio::test]
async fn what_was_built_while_others_had_changed_the_object_goes_nowhere() {
    for rule in RULES {
        let mut stage = built(rule).await;
        let versions = Versions::of(&stage, "v1", "ConfigMap").await;
        builds_evil(&stage).await;
        is_changed_back(&stage).await;
        is_doubted(&stage).await;
        // The controller of the build comes to it late.
        builds(&stage, "evil-late@1", "1").await;
        stage.settle("app").await;
        assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
        stage.kill_controller();
        stage.start_controller();
        stage.settle("app").await;
        is_doubted(&stage).await;
        push(&stage, "2").await;
        builds(&stage, "good@2", "2").await;
        deployed(&stage, "good@2").await;
        nothing_evil_was_deployed(&stage, &versions).await;
        stage
            .until("app", "nothing is doubted any more", |owner| {
                step(owner, "build")["applied"]["doubtful"].is_null()
            })
            .await;
    }
}

#[tokio::test]
async fn what_was_changed_is_changed_back_only_once_status_says_so() {
    let mut stage = built(RULES[1]).await;
    let versions = Versions::of(&stage, "v1", "ConfigMap").await;
    stage.kill_controller();
    builds_evil(&stage).await;
    let network = start_without_status(&mut stage).await;
    eventually("status could not be written", PATIENCE, async || {
        network.lost().len() >= 3
    })
    .await;
    assert_eq!(builder(&stage).await, "evil");
    stage.kill_controller();
    stage.start_controller();
    is_changed_back(&stage).await;
    is_doubted(&stage).await;
    nothing_evil_was_deployed(&stage, &versions).await;
}

/// The write went through, and neither its reply nor the status came to be.
#[tokio::test]
async fn an_update_of_ours_of_which_status_does_not_know_raises_no_doubt() {
    let mut stage = built(RULES[0]).await;
    stage.kill_controller();
    let _network = start_without_status(&mut stage).await;
    push(&stage, "2").await;
    stage.kill_controller();
    stage.start_controller();
    builds(&stage, "good@2", "2").await;
    deployed(&stage, "good@2").await;
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    let build = step(&stage.workload("app").await, "build");
    assert_eq!(build["applied"]["doubtful"], Value::Null);
}

/// Statuses are held back for a moment, so one tells of several updates.
#[tokio::test]
async fn updates_that_follow_each_other_at_once_raise_no_doubt() {
    for rule in RULES {
        let stage = built(rule).await;
        let owners = Versions::of(&stage, "carto.run/v1alpha1", "Workload").await;
        // On a slow machine each update may be told of before the next one comes, but not for ever.
        let mut is_several_at_once = false;
        for last in (7..=61).step_by(6) {
            for revision in last - 5..=last {
                push(&stage, &revision.to_string()).await;
            }
            let image = format!("good@{last}");
            builds(&stage, &image, &last.to_string()).await;
            deployed(&stage, &image).await;
            stage.settle("app").await;
            let seen = owners.up_to(&stage.workload("app").await).await;
            let told = told_without_doubt(&seen);
            is_several_at_once = told.len() < last;
            if is_several_at_once {
                break;
            }
        }
        assert!(is_several_at_once, "one status told of several updates");
    }
}

/// What these versions of the owner tell of the values of the build, none of which is doubted.
fn told_without_doubt(owners: &[Value]) -> BTreeSet<String> {
    let told = owners.iter().map(|owner| {
        let applied = step(owner, "build")["applied"].clone();
        assert!(applied["doubtful"].is_null(), "{applied}");
        applied["values"].to_string()
    });
    told.collect()
}

/// Objects are watched by their labels, and whoever may edit one may take them away.
#[tokio::test]
async fn what_was_built_of_an_object_that_was_hidden_meanwhile_goes_nowhere() {
    for rule in RULES {
        let mut stage = built(rule).await;
        let versions = Versions::of(&stage, "v1", "ConfigMap").await;
        builds_evil_unseen(&stage).await;
        is_changed_back(&stage).await;
        is_doubted(&stage).await;
        // The process that comes next does not see it either.
        stage.kill_controller();
        builds_evil_unseen(&stage).await;
        stage.start_controller();
        is_changed_back(&stage).await;
        is_doubted(&stage).await;
        push(&stage, "2").await;
        builds(&stage, "good@2", "2").await;
        deployed(&stage, "good@2").await;
        nothing_evil_was_deployed(&stage, &versions).await;
    }
}
