//! Runs that somebody else deletes: a pruner, `ttlSecondsAfterFinished`, a person.

use realizer::Observed;
use serde_json::{Value, json};

use crate::scenario::Scenario;

const DOCUMENTS: &str = "
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: build}
spec:
  imagePath: .status.image
  lifecycle: tekton
  template:
    apiVersion: test.run/v1
    kind: Run
    metadata: {generateName: run-}
    spec: {source: $(workload.spec.image)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: application}
    data: {image: $(image)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: kept}
spec:
  lifecycle: immutable
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {generateName: run-}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: build, templateRef: {kind: ClusterImageTemplate, name: build}}
  - {name: deploy, templateRef: {kind: ClusterTemplate, name: deploy}, images: [{name: image, resource: build}]}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: a}
";

fn ends(scenario: &mut Scenario, name: &str, status: &str, image: &str) {
    scenario.cluster.object(name)["status"] = json!({
        "image": image, "conditions": [{"type": "Succeeded", "status": status}],
    });
}

/// A run that is over, and what was made of it.
fn built() -> Scenario {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.advance();
    ends(&mut scenario, "run-1", "True", "registry/app@1");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["run-1", "application"]);
    scenario
}

fn image(scenario: &mut Scenario) -> Value {
    scenario.cluster.object("application")["data"]["image"].clone()
}

#[test]
fn a_run_that_succeeded_is_not_run_again_because_somebody_deleted_it() {
    let mut scenario = built();
    let status = scenario.owner["status"].clone();
    scenario.cluster.prune("run-1");
    for _ in 0..3 {
        let outcome = scenario.reconcile();
        assert!(!outcome.changed, "{}", outcome.status);
        assert!(outcome.events.is_empty());
    }
    assert_eq!(scenario.owner["status"], status);
    assert_eq!(scenario.cluster.names(), ["application"]);
    assert_eq!(scenario.owner_condition("Ready"), "True/Ready/");
}

#[test]
fn what_a_deleted_run_came_to_goes_on_being_handed_on() {
    let mut scenario = built();
    scenario.cluster.prune("run-1");
    scenario.cluster.prune("application");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["application"]);
    assert_eq!(image(&mut scenario), "registry/app@1");
}

#[test]
fn a_run_that_failed_is_not_run_again_because_somebody_deleted_it() {
    let mut scenario = built();
    scenario.owner["spec"]["image"] = json!("b");
    scenario.advance();
    ends(&mut scenario, "run-2", "False", "");
    scenario.advance();
    let ready = scenario.owner_condition("Ready");
    scenario.cluster.prune("run-1");
    scenario.cluster.prune("run-2");
    assert!(!scenario.reconcile().changed);
    assert_eq!(scenario.cluster.names(), ["application"]);
    assert_eq!(scenario.owner_condition("Ready"), ready);
    assert_eq!(
        image(&mut scenario),
        "registry/app@1",
        "of the last success"
    );
}

#[test]
fn only_new_inputs_start_another_run() {
    let mut scenario = built();
    scenario.cluster.prune("run-1");
    scenario.owner["spec"]["image"] = json!("b");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["application", "run-2"]);
    assert_eq!(image(&mut scenario), "registry/app@1", "until it has ended");
    ends(&mut scenario, "run-2", "True", "registry/app@2");
    scenario.advance();
    assert_eq!(image(&mut scenario), "registry/app@2");
    scenario.owner["spec"]["image"] = json!("a");
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["application", "run-2", "run-3"],
        "inputs that come back are run again, as ever"
    );
}

#[test]
fn a_run_that_is_deleted_before_its_end_is_run_again() {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.advance();
    scenario.cluster.prune("run-1");
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["run-1"],
        "at the same position: had it only lost its labels, it would be found by its name"
    );
}

#[test]
fn the_end_of_a_run_counts_though_it_was_deleted_before_anybody_looked() {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.advance();
    ends(&mut scenario, "run-1", "True", "registry/app@1");
    scenario.cluster.held.depart("run-1");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["application"]);
    assert_eq!(image(&mut scenario), "registry/app@1");
    // Another process knows only what status says.
    scenario.cluster.prune("run-1");
    scenario.advance();
    assert!(!scenario.reconcile().changed);
    assert_eq!(scenario.cluster.names(), ["application"]);
}

#[test]
fn an_object_of_which_nothing_says_that_it_has_ended_is_made_again() {
    let mut scenario = Scenario::new(DOCUMENTS);
    scenario.blueprints[0]["spec"]["resources"] =
        json!([{"name": "kept", "templateRef": {"kind": "ClusterTemplate", "name": "kept"}}]);
    scenario.advance();
    scenario.cluster.prune("run-1");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["run-1"]);
}

#[test]
fn an_object_that_only_says_that_it_is_of_the_family_yields_nothing() {
    let mut scenario = built();
    let mut forged = scenario.cluster.object("run-1").clone();
    forged["metadata"]["name"] = json!("forged");
    forged["metadata"]["uid"] = json!("uid-forged");
    forged["metadata"]["annotations"]["carto.run/submission"] = json!("999999");
    forged["status"]["image"] = json!("registry/evil");
    scenario.cluster.held.objects.push(Observed {
        is_known: false,
        ..Observed::of(forged)
    });
    assert!(!scenario.reconcile().changed);
    scenario.owner["spec"]["image"] = json!("b");
    scenario.advance();
    assert!(
        scenario.cluster.names().contains(&"run-2"),
        "what is due is run"
    );
    assert_eq!(image(&mut scenario), "registry/app@1");
    assert!(
        !scenario.owner["status"].to_string().contains("forged"),
        "status does not come to know it"
    );
}

#[test]
fn outputs_that_are_too_large_to_keep_are_built_again() {
    let mut scenario = built();
    ends(&mut scenario, "run-1", "True", &"x".repeat(20_000));
    scenario.advance();
    assert!(scenario.owner["status"].to_string().len() < 10_000);
    scenario.cluster.prune("run-1");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["application", "run-2"]);
}
