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

/// How often workloads were reconciled while the sink of `app` came to hold `value`.
async fn reconciles_until_sink_has(stage: &Stage, manifest: &str, value: &str) -> f64 {
    let of_kind = ["kind=\"Workload\""];
    let before = stage.metric("carto_reconcile_total", &of_kind).await;
    stage.apply(manifest).await;
    eventually(&format!("the sink has {value}"), PATIENCE, async || {
        let sink = stage.get("v1", "ConfigMap", "app-sink").await?;
        let mut values = sink["data"].as_object()?.values();
        values.any(|one| one == value).then_some(())
    })
    .await;
    stage.idle().await;
    let after = stage.metric("carto_reconcile_total", &of_kind).await;
    after.unwrap() - before.unwrap()
}

#[tokio::test]
async fn blueprints_and_templates_wake_only_the_owners_that_they_can_concern() {
    const STRANGERS: u8 = 50;
    let stage = Stage::open().await;
    let strangers: Vec<String> = (0..STRANGERS)
        .map(|number| {
            crate::immutable::WORKLOAD
                .replace("name: app", &format!("name: stranger{number}"))
                .replace("type: web", "type: other")
        })
        .collect();
    stage.apply(&strangers.join("---\n")).await;
    stage.apply(crate::immutable::WORKLOAD).await;
    for number in 0..STRANGERS {
        let stranger = format!("stranger{number}");
        stage.ready(&stranger, "False", "SupplyChainNotFound").await;
    }
    stage.ready("app", "False", "SupplyChainNotFound").await;
    stage.idle().await;
    let chain = crate::immutable::instant(3)
        .replace(
            "metadata: {name: sink}\nspec:\n",
            "metadata: {name: sink}\nspec:\n  params: [{name: more, default: none}]\n",
        )
        .replace("data: {url:", "data: {more: $(params.more)$, url:");
    let changed_template = chain.replace("data: {more:", "data: {added: x, more:");
    let changed_blueprint = changed_template.replace(
        "  selector: {type: web}\n",
        "  selector: {type: web}\n  params: [{name: more, value: other}]\n",
    );
    for (manifest, value) in [
        (&chain, "none"),
        (&changed_template, "x"),
        (&changed_blueprint, "other"),
    ] {
        let reconciles = reconciles_until_sink_has(&stage, manifest, value).await;
        assert!(
            reconciles < f64::from(STRANGERS),
            "{value}: {reconciles} reconciles for one owner"
        );
    }
}
