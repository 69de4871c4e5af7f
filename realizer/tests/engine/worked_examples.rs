//! The worked examples of spec appendix A.

use serde_json::{Value, json};

use crate::golden;
use crate::scenario::Scenario;

const SMALLEST: &str = include_str!("smallest.yaml");

fn events(outcome: &realizer::Outcome) -> Vec<String> {
    let event = |event: &realizer::OwnerEvent| format!("{} {}", event.reason, event.message);
    outcome.events.iter().map(event).collect()
}

/// docs/behaviour/examples.md#smallest-chain
#[test]
fn smallest_supply_chain_reaches_its_steady_state() {
    let mut scenario = Scenario::new(SMALLEST);
    let outcome = scenario.reconcile();
    assert_eq!(outcome.reason, "Ready");
    golden::check("smallest-status.yaml", &scenario.owner["status"]);
    golden::check("smallest-objects.yaml", &json!(scenario.cluster.objects()));
    assert_eq!(
        events(&outcome),
        [
            "StampedObjectApplied Created object [tests.test.run/app-src]",
            "ResourceOutputChanged [fetch] found a new output in [tests.test.run/app-src]",
            "ResourceHealthyStatusChanged [fetch] found healthy status in [tests.test.run/app-src] changed to [True]",
            "StampedObjectApplied Created object [configmaps/app-sink]",
            "ResourceHealthyStatusChanged [publish] found healthy status in [configmaps/app-sink] changed to [True]",
        ]
    );
    let immediate: Vec<bool> = outcome.events.iter().map(|event| event.immediate).collect();
    assert_eq!(immediate, [true, false, false, true, false]);
}

#[test]
fn a_second_reconcile_changes_nothing_and_tells_nothing() {
    let mut scenario = Scenario::new(SMALLEST);
    scenario.advance();
    let before = scenario.owner["status"].clone();
    let outcome = scenario.reconcile();
    assert!(!outcome.changed);
    assert_eq!(outcome.status, before);
    assert_eq!(outcome.events, []);
    assert_eq!(
        scenario.cluster.log[2..],
        ["fetch: Unchanged", "publish: Unchanged"]
    );
}

#[test]
fn a_changed_owner_changes_the_object_and_its_outputs() {
    let mut scenario = Scenario::new(SMALLEST);
    scenario.advance();
    scenario.owner["spec"]["params"] = json!([{"name": "rev", "value": "other"}]);
    scenario.owner["metadata"]["generation"] = json!(2);
    let outcome = scenario.reconcile();
    assert_eq!(
        events(&outcome),
        [
            "StampedObjectApplied Patched object [tests.test.run/app-src]",
            "ResourceOutputChanged [fetch] found a new output in [tests.test.run/app-src]",
        ]
    );
    let outputs = &scenario.entry("fetch")["outputs"];
    assert_eq!(
        outputs[0]["lastTransitionTime"], "2024-05-01T10:01:00Z",
        "the url is the same"
    );
    assert_eq!(outputs[1]["lastTransitionTime"], "2024-05-01T10:02:00Z");
    assert_eq!(scenario.owner["status"]["observedGeneration"], 2);
}

/// docs/behaviour/examples.md#late-output: the object does not say its revision yet.
fn without_revision() -> Scenario {
    let mut scenario = Scenario::new(SMALLEST);
    scenario.apply(
        "kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: src}
spec:
  urlPath: .spec.value.url
  revisionPath: .spec.value.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-src}
    spec: {value: {url: $(workload.spec.source.git.url)$}}",
    );
    scenario
}

#[test]
fn an_output_that_is_not_there_yet_holds_what_needs_it() {
    let mut scenario = without_revision();
    let outcome = scenario.reconcile();
    golden::check("waiting-status.yaml", &scenario.owner["status"]);
    assert_eq!(
        scenario.owner_condition("Ready"),
        "Unknown/MissingValueAtPath/waiting to read value [.spec.value.rev] from object [tests.test.run/app-src] in \
         namespace [ns]"
    );
    assert_eq!(
        scenario.step_condition("publish", "ResourceSubmitted"),
        "False/TemplateStampFailure/unable to stamp object for resource [publish] for template [ClusterTemplate/sink] \
         in supply chain [chain]: failed to recursively evaluate template: failed to interpolate template at path \
         [data.url]: evaluate tag $(source.url)$: jsonpath returned empty list: source.url"
    );
    assert_eq!(
        scenario.step_condition("publish", "Healthy"),
        "Unknown/NoStampedObject/"
    );
    assert_eq!(
        events(&outcome),
        ["StampedObjectApplied Created object [tests.test.run/app-src]"]
    );
    assert_eq!(scenario.cluster.names(), ["app-src"]);
    assert!(!scenario.reconcile().changed);
}

/// The steady state of docs/behaviour/examples.md#smallest-chain, and then the object does not say
/// its revision any more.
fn revision_vanishes(scenario: &mut Scenario) {
    scenario.apply(
        "kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: src}
spec:
  urlPath: .spec.value.url
  revisionPath: .status.revision
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(workload.metadata.name)$-src}
    spec: {value: {url: $(workload.spec.source.git.url)$}}",
    );
}

/// docs/behaviour/outputs.md#status.
#[test]
fn outputs_that_disappear_are_told_as_changed() {
    let mut scenario = Scenario::new(SMALLEST);
    scenario.advance();
    revision_vanishes(&mut scenario);
    let outcome = scenario.reconcile();
    assert_eq!(scenario.entry("fetch").get("outputs"), None);
    let told = events(&outcome);
    let of_fetch: Vec<&String> = told
        .iter()
        .filter(|event| event.contains("output"))
        .collect();
    assert_eq!(
        of_fetch,
        ["ResourceOutputChanged [fetch] found a new output in [tests.test.run/app-src]"]
    );
    let again = events(&scenario.reconcile());
    assert_eq!(again, [""; 0], "told once");
}

#[test]
fn what_was_stamped_before_an_output_vanished_is_left_as_it_is() {
    let mut scenario = Scenario::new(SMALLEST);
    scenario.advance();
    let sink = scenario.entry("publish").clone();
    revision_vanishes(&mut scenario);
    scenario.advance();
    assert_eq!(
        scenario.entry("fetch").get("outputs"),
        None,
        "old outputs vanish"
    );
    for field in ["stampedRef", "templateRef", "inputs"] {
        assert_eq!(
            scenario.entry("publish")[field],
            sink[field],
            "{field} is copied"
        );
    }
    assert_eq!(
        scenario.step_condition("publish", "Healthy"),
        "True/AlwaysHealthy/"
    );
    assert!(
        scenario
            .step_condition("publish", "Ready")
            .starts_with("False/TemplateStampFailure/")
    );
    assert_eq!(scenario.cluster.names(), ["app-src", "app-sink"]);
}

pub(crate) const IMMUTABLE: &str = "
apiVersion: carto.run/v1alpha1
kind: ClusterImageTemplate
metadata: {name: build}
spec:
  imagePath: .status.image
  lifecycle: tekton
  retentionPolicy: {maxFailedRuns: 1, maxSuccessfulRuns: 1}
  template:
    apiVersion: tekton.dev/v1
    kind: TaskRun
    metadata: {generateName: $(workload.metadata.name)$-}
    spec: {revision: $(workload.spec.source.git.ref.tag)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: deploy}
    data: {image: $(image)$}
---
apiVersion: carto.run/v1alpha1
kind: ClusterSupplyChain
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: build, templateRef: {kind: ClusterImageTemplate, name: build}}
    - name: deploy
      templateRef: {kind: ClusterTemplate, name: deploy}
      images: [{resource: build, name: built}]
---
apiVersion: carto.run/v1alpha1
kind: Workload
metadata: {name: app, labels: {type: web}}
spec: {source: {git: {ref: {tag: A}}}}
";

pub(crate) fn finish_run(scenario: &mut Scenario, run: &str, succeeded: &str, image: Option<&str>) {
    scenario.cluster.object(run)["status"] = json!({
        "conditions": [{"type": "Succeeded", "status": succeeded, "message": format!("{run} ended")}],
        "image": image,
    });
    if image.is_none() {
        scenario.cluster.object(run)["status"]
            .as_object_mut()
            .unwrap()
            .remove("image");
    }
}

pub(crate) fn set_tag(scenario: &mut Scenario, tag: &str) {
    scenario.owner["spec"]["source"]["git"]["ref"]["tag"] = json!(tag);
}

/// `<stamped> <healthy> <image> <deployed>`, the columns of
/// docs/behaviour/examples.md#immutable-life.
fn moment(scenario: &mut Scenario) -> String {
    let stamped = scenario.entry("build")["stampedRef"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    let healthy = scenario.step_condition("build", "Healthy");
    let healthy = healthy.split('/').next().unwrap().to_owned();
    let image = scenario
        .entry("build")
        .pointer("/outputs/0/preview")
        .and_then(Value::as_str)
        .unwrap_or("-")
        .trim()
        .to_owned();
    let deployed = scenario.cluster.held.object("deploy");
    let deployed = deployed.map_or("-", |object| object["data"]["image"].as_str().unwrap());
    format!("{stamped} {healthy} {image} {deployed}")
}

/// docs/behaviour/examples.md#immutable-life
#[test]
fn an_immutable_step_lives_by_its_newest_healthy_object() {
    let mut scenario = Scenario::new(IMMUTABLE);
    scenario.advance();
    assert_eq!(moment(&mut scenario), "app-1 Unknown - -");
    assert_eq!(
        scenario.step_condition("build", "ResourceSubmitted"),
        "Unknown/MissingValueAtPath/waiting to read value [.status.image] from object [taskruns.tekton.dev/app-1] in \
         namespace [ns]"
    );

    finish_run(&mut scenario, "app-1", "True", Some("image-a"));
    scenario.advance();
    assert_eq!(moment(&mut scenario), "app-1 True image-a image-a");

    set_tag(&mut scenario, "B");
    scenario.advance();
    assert_eq!(moment(&mut scenario), "app-2 Unknown image-a image-a");
    assert_eq!(
        scenario.owner_condition("Ready").split('/').next(),
        Some("Unknown")
    );

    finish_run(&mut scenario, "app-2", "False", None);
    let outcome = scenario.reconcile();
    assert_eq!(moment(&mut scenario), "app-2 False image-a image-a");
    assert_eq!(
        scenario.owner_condition("Ready"),
        "False/HealthyConditionRule/app-2 ended"
    );
    assert_eq!(
        events(&outcome),
        [
            "ResourceHealthyStatusChanged [build] found healthy status in [taskruns.tekton.dev/app-2] changed to [False]"
        ]
    );

    finish_run(&mut scenario, "app-2", "True", Some("image-b"));
    let outcome = scenario.reconcile();
    assert_eq!(moment(&mut scenario), "app-2 True image-b image-b");
    assert!(
        events(&outcome).contains(
            &"StampedObjectRemoved Deleted object [taskruns.tekton.dev/app-1]".to_owned()
        )
    );
    assert_eq!(scenario.cluster.names(), ["deploy", "app-2"]);

    scenario.advance();
    assert_eq!(moment(&mut scenario), "app-2 True image-b image-b");
    assert!(!scenario.reconcile().changed);
}

#[test]
fn nothing_runs_again_after_a_restart() {
    let mut scenario = Scenario::new(IMMUTABLE);
    scenario.advance();
    finish_run(&mut scenario, "app-1", "True", Some("image-a"));
    scenario.advance();
    // All the engine remembers is in the documents, so a restart is one more reconcile.
    let before = scenario.cluster.names().len();
    assert!(!scenario.reconcile().changed);
    assert_eq!(scenario.cluster.names().len(), before);
}

#[test]
fn when_the_only_run_turns_unhealthy_its_consumers_stay_as_they_are() {
    let mut scenario = Scenario::new(IMMUTABLE);
    scenario.advance();
    finish_run(&mut scenario, "app-1", "True", Some("image-a"));
    scenario.advance();
    finish_run(&mut scenario, "app-1", "False", Some("image-a"));
    scenario.advance();
    assert_eq!(moment(&mut scenario), "app-1 False - image-a");
    assert_eq!(
        scenario.step_condition("build", "ResourceSubmitted"),
        "Unknown/MissingValueAtPath/cannot read value [.status.image] from unhealthy object [taskruns.tekton.dev/app-1] \
         in namespace [ns], examine object, particularly whether it is receiving proper inputs"
    );
}

#[test]
fn going_back_to_an_earlier_rendering_runs_again() {
    let mut scenario = Scenario::new(IMMUTABLE);
    for tag in ["A", "B", "A"] {
        set_tag(&mut scenario, tag);
        scenario.advance();
    }
    assert_eq!(scenario.cluster.names(), ["app-1", "app-2", "app-3"]);
}
