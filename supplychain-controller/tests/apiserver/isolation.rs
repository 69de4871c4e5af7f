//! One tenant's load does not hold up another tenant.

use serde_json::{Value, json};
use test_support::eventually;

use crate::stage::{PATIENCE, Stage};

const CROWD: usize = 300;

/// The chain, in which the sink has the revision, too, and the revision is this.
fn chain(revision: &str) -> String {
    crate::chain::CHAIN
        .replace("default: main", &format!("default: {revision}"))
        .replace(
            "data: {url: $(source.url)$}",
            "data: {url: $(source.url)$, rev: $(source.revision)$}",
        )
}

/// Counts up with each write to the cluster, whoever sends it.
fn version(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str();
    version.unwrap().parse().unwrap()
}

/// Waits until so many sinks have this revision; the versions of their last writes.
async fn sunk(stage: &Stage, namespace: &str, revision: &str, count: usize) -> Vec<u64> {
    eventually(
        &format!("{count} sinks in {namespace} have {revision}"),
        PATIENCE,
        async || {
            let mut sinks = stage.all_in(namespace, "v1", "ConfigMap").await;
            sinks.retain(|sink| sink["data"]["rev"] == revision);
            if sinks.len() == count {
                Ok(Some(sinks.iter().map(version).collect()))
            } else {
                Err(sinks.len())
            }
        },
    )
    .await
}

/// Wakes the crowd, and then a newcomer comes: how many waited then, and how many of them were served before it. The
/// versions tell, not what is seen in between: a test that is not looked after for a second sees too much at once.
async fn newcomer(stage: &Stage, crowd: &str, round: usize) -> (usize, usize) {
    let revision = format!("r{round}");
    let changed = chain(&revision);
    let (source, _) = changed.split_once("---\n").unwrap();
    let newcomer = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload",
        "metadata": {"name": format!("app{round}"), "labels": {"type": "web"}},
        "spec": {"serviceAccountName": "sa", "source": {"git": {"url": "https://git.example/app"}}}});
    stage.apply(source).await;
    let came = version(&stage.create_as("somebody", newcomer).await);
    let others = sunk(stage, crowd, &revision, CROWD).await;
    sunk(stage, &stage.namespace, &revision, round + 1).await;
    let name = format!("app{round}-sink");
    let served = version(&stage.get("v1", "ConfigMap", &name).await.unwrap());
    let count = |from, to| {
        let others = others.iter();
        others.filter(|other| (from..to).contains(*other)).count()
    };
    (count(came, u64::MAX), count(came, served))
}

/// A ratio, so that it holds on any machine: the newcomer is woken after 300 others and is to be served before most of them.
/// In turn with the others' namespace it takes every second slot; first come, first served would make it the last.
#[tokio::test]
async fn an_owner_in_another_namespace_does_not_wait_for_three_hundred() {
    let mut stage = Stage::open().await;
    let crowd = stage.namespace.clone();
    stage.apply(&chain("main")).await;
    let many: Vec<String> = (0..CROWD)
        .map(|number| crate::chain::WORKLOAD.replace("name: app", &format!("name: app{number}")))
        .collect();
    for part in many.chunks(50) {
        stage.apply(&part.join("---\n")).await;
    }
    sunk(&stage, &crowd, "main", CROWD).await;
    stage.move_to_new_namespace().await;
    let mut round = 0;
    loop {
        stage.idle().await;
        let (waiting, before_it) = newcomer(&stage, &crowd, round).await;
        // On a busy machine it may come when the crowd has been served, which tells nothing.
        if waiting > CROWD / 2 {
            assert!(
                before_it < waiting / 2,
                "{before_it} of {waiting} were served first"
            );
            return;
        }
        round += 1;
        assert!(round < 20, "{waiting} of {CROWD} waited");
    }
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
