//! What is told before the process ends.

use std::collections::BTreeSet;

use test_support::eventually;

use crate::stage::{PATIENCE, Stage};

const OWNERS: usize = 80;
const STEPS: usize = 6;
/// So many objects are there when the signal comes; most are not.
const AT_THE_SIGNAL: usize = 120;

/// A chain whose steps need nothing of each other, and its owners.
fn manifests() -> String {
    let mut yaml = String::new();
    let mut steps = String::new();
    for step in 0..STEPS {
        let template = format!(
            r"
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {{name: object{step}}}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: $(workload.metadata.name)$-{step}}}
---"
        );
        yaml.push_str(&template);
        let entry = format!(
            "\n    - {{name: s{step}, templateRef: {{kind: ClusterTemplate, name: object{step}}}}}"
        );
        steps.push_str(&entry);
    }
    let chain = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:";
    yaml.push_str(chain);
    yaml.push_str(&steps);
    for owner in 0..OWNERS {
        let workload = format!(
            r"
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {{name: app{owner}, labels: {{type: web}}}}
spec: {{serviceAccountName: sa}}"
        );
        yaml.push_str(&workload);
    }
    yaml
}

async fn stamped(stage: &Stage) -> BTreeSet<String> {
    let objects = stage.all("v1", "ConfigMap").await;
    let ours = objects
        .iter()
        .map(|object| object["metadata"]["name"].as_str().unwrap())
        .filter(|name| name.starts_with("app"));
    ours.map(|name| format!("Created object [configmaps/{name}]"))
        .collect()
}

/// What the events of this reason say; while many wait, one tells of several objects.
async fn told(stage: &Stage) -> BTreeSet<String> {
    let events = stage.events().await;
    let applied = events
        .iter()
        .filter_map(|event| event.strip_prefix("Normal StampedObjectApplied: "));
    applied
        .flat_map(|message| message.split("; ").map(str::to_owned))
        .collect()
}

#[tokio::test]
async fn every_object_that_a_process_created_has_its_event_when_the_process_has_ended() {
    let mut stage = Stage::set().await;
    stage.apply(&manifests()).await;
    let mut controller = stage.another_controller();
    eventually("it is in the middle of it", PATIENCE, async || {
        let there = stamped(&stage).await.len();
        if there >= AT_THE_SIGNAL {
            Ok(())
        } else {
            Err(there)
        }
    })
    .await;
    controller.signal("TERM");
    controller.ended().await;
    let created = stamped(&stage).await;
    let told = told(&stage).await;
    let untold: Vec<&String> = created.difference(&told).collect();
    assert!(
        untold.is_empty(),
        "{} of {} are not told: {untold:?}",
        untold.len(),
        created.len()
    );
    assert_eq!(told, created);
}
