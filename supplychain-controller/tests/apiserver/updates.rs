//! Updates that wait until the object is good or has failed, on a real API server.

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::Versions;

use crate::attribution::{CHAIN, TESTS, deployed, says, submitted, told};
use crate::stage::{NOTHING, PATIENCE, Stage, condition, step};

/// Revision 1 is under way.
async fn waiting() -> Stage {
    waiting_with("whenReconciling: Wait").await
}

async fn waiting_with(policy: &str) -> Stage {
    let stage = Stage::open().await;
    let path = "  imagePath: .status.latestGoodOutput";
    let with_policy = format!("  updatePolicy: {{{policy}}}\n{path}");
    stage.apply(&CHAIN.replace(path, &with_policy)).await;
    submitted(&stage, "1").await;
    stage.settle("app").await;
    stage
}

/// Asks for a revision, which waits behind what is under way.
async fn push(stage: &Stage, revision: &str, waiting: usize) -> Value {
    let patch = json!({"spec": {"image": revision}});
    stage.edit_workload("app", patch).await;
    let what = format!("{revision} waits with {waiting} in all");
    let owner = stage.until("app", &what, |owner| {
        let waits = &step(owner, "build")["updates"]["waiting"];
        let newest = waits[waiting - 1]["rendering"].as_str();
        waits[waiting].is_null()
            && newest
                .is_some_and(|newest| newest.contains(&format!("{{\"revision\":\"{revision}\"}}")))
    });
    step(&owner.await, "build")
}

fn revisions(seen: &[Value]) -> Vec<&str> {
    let mut revisions: Vec<&str> = seen
        .iter()
        .filter_map(|object| object["spec"]["value"]["revision"].as_str())
        .collect();
    revisions.dedup();
    revisions
}

/// The example of the proposal. The process is killed whenever something waits or is about to be applied.
#[tokio::test]
async fn of_1_running_and_2_good_3_good_4_bad_4_is_applied_and_then_3_and_never_2() {
    let mut stage = waiting().await;
    let versions = Versions::of(&stage, TESTS, "Test").await;
    for (revision, waits) in [("2", 1), ("3", 2), ("4", 3)] {
        push(&stage, revision, waits).await;
    }
    restart(&mut stage);
    says(&stage, "True", Some("image@1")).await;
    submitted(&stage, "4").await;
    deployed(&stage, "image@1").await;
    restart(&mut stage);
    says(&stage, "False", None).await;
    submitted(&stage, "3").await;
    restart(&mut stage);
    says(&stage, "True", Some("image@3")).await;
    deployed(&stage, "image@3").await;
    // The status comes after the next step's object, and until then says that 4 has failed as well.
    let what = "the status has the output of 3";
    let owner = stage.until("app", what, |owner| {
        step(owner, "build")["outputs"][0]["value"] == "image@3"
    });
    let build = step(&owner.await, "build");
    assert_eq!(condition(&build, "OutputsGood")["reason"], "Failed");
    assert_eq!(build["updates"]["waiting"], Value::Null, "{build}");
    assert_eq!(build["outputs"][0]["current"], false);
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    restart(&mut stage);
    stage.settle("app").await;
    let build = stage.get(TESTS, "Test", "app-build").await.unwrap();
    let seen = versions.up_to(&build).await;
    assert_eq!(revisions(&seen), ["1", "4", "3"]);
}

fn restart(stage: &mut Stage) {
    stage.kill_controller();
    stage.start_controller();
}

/// A tenant writes what waits, something else, and the status of the owner.
#[tokio::test]
async fn a_tenant_cannot_have_another_update_applied_than_the_one_whose_turn_it_is() {
    let stage = waiting().await;
    let build = push(&stage, "2", 1).await;
    let tenant = stage.tenant().await;
    let mut forged = build["updates"].clone();
    forged["applied"] = forged["waiting"][0].clone();
    let forged = json!({"status": {"resources": [{"name": "build", "updates": forged}]}});
    let refused = tenant
        .patch_status("carto.run/v1alpha1", "Workload", "app", forged)
        .await;
    assert!(refused.is_err(), "{refused:?}");
    for revision in ["2", "evil"] {
        let evil = json!({"spec": {"value": {"revision": revision}}});
        tenant
            .patch(TESTS, "Test", "app-build", evil)
            .await
            .unwrap();
        submitted(&stage, "1").await;
    }
    says(&stage, "True", Some("image@1")).await;
    submitted(&stage, "2").await;
    deployed(&stage, "image@1").await;
    says(&stage, "True", Some("image@2")).await;
    deployed(&stage, "image@2").await;
    let build = told(&stage, "Good").await;
    assert_eq!(build["outputs"][0]["current"], true);
    stage.settle("app").await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}

/// The controller of the object hangs.
#[tokio::test]
async fn an_update_that_hangs_gives_way_to_a_newer_one_in_time() {
    let stage = waiting_with("whenReconciling: Wait, timeout: 3s").await;
    let patch = json!({"spec": {"image": "2"}});
    stage.edit_workload("app", patch).await;
    submitted(&stage, "2").await;
    eventually("the event is there", PATIENCE, async || {
        let events = stage.events().await;
        let told = |event: &&String| {
            event.starts_with("Warning UpdateTimedOut: [build] update 1 did not end")
        };
        events
            .iter()
            .find(told)
            .map(|_| ())
            .ok_or_else(|| events.clone())
    })
    .await;
    says(&stage, "True", Some("image@2")).await;
    deployed(&stage, "image@2").await;
}

/// Each commit would wait for the one before; the newest one overtakes those between.
#[tokio::test]
async fn a_build_that_is_slower_than_the_commits_delivers_all_the_same() {
    let stage = waiting().await;
    for revision in 2..=30 {
        let patch = json!({"spec": {"image": revision.to_string()}});
        stage.edit_workload("app", patch).await;
    }
    let owner = stage.until("app", "ten updates wait", |owner| {
        let build = step(owner, "build");
        let newest = &build["updates"]["waiting"];
        let newest = newest.as_array().and_then(|all| all.last()).cloned();
        newest.is_some_and(|it| {
            it["rendering"]
                .as_str()
                .is_some_and(|it| it.contains("\"30\""))
        })
    });
    let waiting = step(&owner.await, "build")["updates"]["waiting"].clone();
    assert!(waiting.as_array().unwrap().len() <= 10, "{waiting}");
    says(&stage, "True", Some("image@1")).await;
    deployed(&stage, "image@1").await;
    submitted(&stage, "30").await;
    says(&stage, "True", Some("image@30")).await;
    deployed(&stage, "image@30").await;
}
