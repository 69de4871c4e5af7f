//! One tenant's load does not hold up another tenant.

use test_support::eventually;

use crate::stage::{PATIENCE, Stage, condition};

const CROWD: usize = 300;

async fn ready_count(stage: &Stage, namespace: &str) -> usize {
    let workloads = stage
        .all_in(namespace, "carto.run/v1alpha1", "Workload")
        .await;
    workloads
        .iter()
        .filter(|one| condition(&one["status"], "Ready")["status"] == "True")
        .count()
}

/// A ratio, so that it holds on any machine: the newcomer is woken after 300 others and is to be ready while most of them
/// are not. In turn with the others' namespace it takes every second slot; first come, first served would make it the last.
#[tokio::test]
async fn an_owner_in_another_namespace_does_not_wait_for_three_hundred() {
    let mut stage = Stage::open().await;
    let crowd = stage.namespace.clone();
    let many: Vec<String> = (0..CROWD)
        .map(|number| crate::chain::WORKLOAD.replace("name: app", &format!("name: app{number}")))
        .collect();
    for part in many.chunks(50) {
        stage.apply(&part.join("---\n")).await;
    }
    stage
        .ready(&format!("app{}", CROWD - 1), "False", "SupplyChainNotFound")
        .await;
    stage.idle().await;
    stage.move_to_new_namespace().await;
    // The blueprint wakes all of them at once.
    stage.apply(crate::chain::CHAIN).await;
    stage.apply(crate::chain::WORKLOAD).await;
    stage.ready("app", "True", "Ready").await;
    let before_it = ready_count(&stage, &crowd).await;
    assert!(
        before_it < CROWD / 2,
        "{before_it} of {CROWD} were served first"
    );
    eventually("the others are served, too", PATIENCE, async || {
        ready_count(&stage, &crowd).await == CROWD
    })
    .await;
}
