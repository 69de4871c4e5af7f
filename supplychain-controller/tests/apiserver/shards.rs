//! Several processes that share the owners (docs/behaviour/process.md#shards).

use serde_json::{Value, json};
use test_support::eventually;
use test_support::stage::Another;

use crate::cluster_scoped::{CLASS, class, grant_classes, is_gone};
use crate::stage::{PATIENCE, Stage, condition};
use crate::unchanged::blueprint_of;

const OWN: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: $(workload.metadata.name)$-own}
data: {kind: $(workload.metadata.labels.kind)$}
";

/// Which each owner wants for itself.
const SHARED: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {a: b}
";

/// A process that takes the owners with this label, and is led by a Lease of its own.
fn shard(stage: &mut Stage, name: &str) -> Another {
    process(stage, name, &format!("--watch-label-selector=shard={name}"))
}

fn process(stage: &mut Stage, name: &str, selection: &str) -> Another {
    let namespace = format!("--lease-namespace={}", stage.namespace);
    let identity = format!("--lease-identity=process-{name}");
    let name = format!("--shard={name}");
    stage.another_controller_with(&[
        "--leader-elect=true",
        "--lease-retry-seconds=1",
        // A leader that gets no processor for a while keeps its Lease.
        "--lease-duration-seconds=90",
        "--lease-renew-deadline-seconds=60",
        &namespace,
        &identity,
        &name,
        selection,
    ])
}

/// An owner with a label that says whose it is.
async fn owner(stage: &Stage, name: &str, shard: &str) {
    stage
        .apply(&format!(
            "
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {{name: {name}, labels: {{type: web, kind: first, shard: {shard}}}}}
spec: {{serviceAccountName: sa}}
"
        ))
        .await;
}

async fn move_to(stage: &Stage, name: &str, shard: &str) {
    let labels = json!({"metadata": {"labels": {"shard": shard}}});
    stage.edit_workload(name, labels).await;
}

async fn leads(stage: &Stage, shard: &str) {
    let (lease, identity) = (
        format!("supplychain-controller-{shard}"),
        format!("process-{shard}"),
    );
    eventually(&format!("{lease} is held"), PATIENCE, async || {
        let held = stage.get("coordination.k8s.io/v1", "Lease", &lease).await?;
        (held["spec"]["holderIdentity"] == *identity).then_some(())
    })
    .await;
}

/// Whether a process has worked on an owner, by its log, which at this level has a line for each reconcile.
fn has_reconciled(process: &Another, namespace: &str, name: &str) -> bool {
    let workload = format!("\"workload\":\"{namespace}/{name}\"");
    let log = process.log();
    log.lines()
        .any(|line| line.contains(&workload) && line.contains("\"version\""))
}

async fn own(stage: &Stage, name: &str) -> Value {
    let name = format!("{name}-own");
    stage.get("v1", "ConfigMap", &name).await.unwrap()
}

#[tokio::test]
async fn shards_lead_side_by_side_and_each_takes_only_its_owners() {
    let mut stage = Stage::set().await;
    stage.apply(&blueprint_of(&[("own", OWN)])).await;
    for (name, label) in [("one", "a"), ("two", "b"), ("nobodys", "c")] {
        owner(&stage, name, label).await;
    }
    let (a, b) = (shard(&mut stage, "a"), shard(&mut stage, "b"));
    leads(&stage, "a").await;
    leads(&stage, "b").await;
    stage.ready("one", "True", "Ready").await;
    stage.ready("two", "True", "Ready").await;
    for process in [&a, &b] {
        stage.idle_of(process).await;
    }
    assert_eq!(stage.workload("nobodys").await["status"], Value::Null);
    let namespace = stage.namespace.clone();
    let took = |process: &Another| {
        ["one", "two", "nobodys"].map(|name| has_reconciled(process, &namespace, name))
    };
    assert_eq!(
        (took(&a), took(&b)),
        ([true, false, false], [false, true, false])
    );
    // The API server selects: nobody reads the owners of others.
    let asked = stage.plane.requests_by("carto-supplychain").unwrap();
    let owners = asked.iter().filter(|event| {
        let object = event.object_ref.as_ref();
        object.is_some_and(|object| object.resource == "workloads" && object.name.is_empty())
    });
    let uris: Vec<&str> = owners.map(|event| &*event.request_uri).collect();
    assert!(uris.len() >= 2, "{uris:?}");
    for uri in uris {
        assert!(uri.contains("labelSelector=shard"), "{uri}");
    }
}

#[tokio::test]
async fn an_owner_that_moves_to_another_shard_keeps_what_it_has() {
    let mut stage = Stage::set().await;
    stage.apply(&blueprint_of(&[("own", OWN)])).await;
    owner(&stage, "app", "a").await;
    let (a, b) = (shard(&mut stage, "a"), shard(&mut stage, "b"));
    stage.ready("app", "True", "Ready").await;
    let before = own(&stage, "app").await;
    move_to(&stage, "app", "b").await;
    let namespace = stage.namespace.clone();
    eventually("the other takes it", PATIENCE, async || {
        has_reconciled(&b, &namespace, "app")
    })
    .await;
    for process in [&a, &b] {
        stage.idle_of(process).await;
    }
    let edit = json!({"metadata": {"labels": {"kind": "second"}}});
    stage.edit_workload("app", edit).await;
    eventually("the other goes on with it", PATIENCE, async || {
        own(&stage, "app").await["data"]["kind"] == "second"
    })
    .await;
    let after = own(&stage, "app").await;
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(
        after["metadata"]["ownerReferences"],
        before["metadata"]["ownerReferences"]
    );
}

#[tokio::test]
async fn an_object_of_an_owner_in_another_shard_is_left_to_it_until_it_is_gone() {
    let mut stage = Stage::set().await;
    // Whatever is nobody's may be taken over.
    let blueprint = blueprint_of(&[("shared", SHARED)]);
    let blueprint = blueprint.replace("spec:\n  template:", "spec:\n  adopt: true\n  template:");
    assert!(blueprint.contains("adopt: true"), "{blueprint}");
    stage.apply(&blueprint).await;
    owner(&stage, "first", "a").await;
    let _a = shard(&mut stage, "a");
    stage.ready("first", "True", "Ready").await;
    let held = stage.get("v1", "ConfigMap", "shared").await.unwrap();
    owner(&stage, "second", "b").await;
    let b = shard(&mut stage, "b");
    let contested = stage.ready("second", "False", "ObjectContested").await;
    let message = condition(&contested["status"], "ObjectContested")["message"].to_string();
    assert!(message.contains("belongs to Workload [first]"), "{message}");
    stage.idle_of(&b).await;
    let still = stage.get("v1", "ConfigMap", "shared").await.unwrap();
    assert_eq!(still["metadata"], held["metadata"]);
    // Nobody collects garbage here: what it stamped stays.
    stage
        .delete("carto.run/v1alpha1", "Workload", "first")
        .await;
    stage.ready("second", "True", "Ready").await;
    let taken = stage.get("v1", "ConfigMap", "shared").await.unwrap();
    assert_eq!(taken["metadata"]["uid"], held["metadata"]["uid"]);
    let references = taken["metadata"]["ownerReferences"].as_array().unwrap();
    let names: Vec<&Value> = references.iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["second"]);
}

/// What a process says when it leaves an object to another shard.
async fn leaves_it(process: &Another, times: usize) {
    eventually("it is left to another shard", PATIENCE, async || {
        let log = process.log();
        let left = log.matches("the owner is in another shard").count();
        if left >= times { Ok(()) } else { Err(left) }
    })
    .await;
}

#[tokio::test]
async fn a_cluster_scoped_object_stays_while_its_owner_is_in_any_shard_or_in_none() {
    let mut stage = Stage::set().await;
    grant_classes(&stage).await;
    stage.apply(&blueprint_of(&[("class", CLASS)])).await;
    owner(&stage, "app", "a").await;
    let a = shard(&mut stage, "a");
    stage.ready("app", "True", "Ready").await;
    let before = class(&stage).await.unwrap();
    // One that finds it when it starts.
    let b = shard(&mut stage, "b");
    leaves_it(&b, 1).await;
    // One from which the owner goes.
    move_to(&stage, "app", "none").await;
    leaves_it(&a, 1).await;
    for process in [&a, &b] {
        stage.idle_of(process).await;
    }
    let after = class(&stage).await.unwrap();
    assert_eq!(after["metadata"], before["metadata"]);
    // Only when the owner is gone, whoever finds that out.
    drop((a, b));
    stage.delete("carto.run/v1alpha1", "Workload", "app").await;
    assert!(class(&stage).await.is_some());
    let _c = shard(&mut stage, "c");
    is_gone(&stage).await;
}

#[tokio::test]
async fn a_process_for_some_namespaces_takes_the_owners_there_and_no_others() {
    let mut stage = Stage::set().await;
    stage.apply(&blueprint_of(&[("own", OWN)])).await;
    let mut namespaces = Vec::new();
    for place in 0..4 {
        if place > 0 {
            stage.move_to_new_namespace().await;
        }
        owner(&stage, "app", "any").await;
        namespaces.push(stage.namespace.clone());
    }
    let several = format!("--watch-namespaces={},{}", namespaces[0], namespaces[1]);
    let several = process(&mut stage, "several", &several);
    let single = format!("--watch-namespaces={}", namespaces[2]);
    let single = process(&mut stage, "single", &single);
    let ready = async |namespace: &str| {
        let all = stage.all_in(namespace, "carto.run/v1alpha1", "Workload");
        condition(&all.await[0]["status"], "Ready")["status"] == "True"
    };
    for namespace in &namespaces[..3] {
        eventually("its owner is ready", PATIENCE, async || {
            ready(namespace).await
        })
        .await;
    }
    for process in [&several, &single] {
        stage.idle_of(process).await;
    }
    let took = |process: &Another| {
        let took = namespaces.iter();
        took.map(|namespace| has_reconciled(process, namespace, "app"))
            .collect::<Vec<_>>()
    };
    assert_eq!(took(&several), [true, true, false, false]);
    assert_eq!(took(&single), [false, false, true, false]);
    assert_eq!(stage.workload("app").await["status"], Value::Null);
}
