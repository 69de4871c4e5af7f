//! Validations of what is deployed, and the lock on the environment.

use realizer::{Outcome, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::scenario::Scenario;

pub(crate) const TEMPLATES: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: src}
spec:
  urlPath: .spec.url
  revisionPath: .spec.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: src}
    spec: {url: u, rev: $(deliverable.spec.source.git.ref.branch)$}
---
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  observedCompletion:
    succeeded: {key: .status.phase, value: Ready}
    failed: {key: .status.phase, value: Failed}
  template:
    apiVersion: test.run/v1alpha1
    kind: App
    metadata: {name: app}
    spec: {revision: $(deployment.revision)$}
---
kind: ClusterDeploymentValidationTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: test}
spec:
  lifecycle: tekton
  timeout: 10m
  template:
    apiVersion: test.run/v1alpha1
    kind: Run
    metadata: {generateName: run-}
    spec: {pipeline: fixed}
---
kind: ClusterDeploymentValidationTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: check}
spec:
  observedMatches: [{input: .spec.revision, output: .status.revision}]
  failed: {key: .status.phase, value: Failed}
  timeout: '0'
  template:
    apiVersion: test.run/v1alpha1
    kind: Check
    metadata: {name: check}
    spec: {revision: $(deployment.revision)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: promote}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: promoted}
    data: {revision: $(source.revision)$}
---
kind: Deliverable
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {app: web}}
spec: {source: {git: {ref: {branch: A}}}}
---
";

const SEQUENCE: &str = "
kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {name: delivery}
spec:
  selector: {app: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - name: deployer
    templateRef: {kind: ClusterDeploymentTemplate, name: deploy}
    deployment: {resource: fetch}
  - name: tester
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: test}
    deployment: {resource: deployer}
  - name: checker
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: check}
    deployment: {resource: tester}
  - name: promoter
    templateRef: {kind: ClusterTemplate, name: promote}
    sources: [{name: source, resource: checker}]
";

pub(crate) fn sequence() -> Scenario {
    Scenario::new(&format!("{TEMPLATES}{SEQUENCE}"))
}

/// One revision is promoted, and the next one is deployed and being validated.
pub(crate) fn second_revision_is_validated() -> Scenario {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    run(&mut scenario, "run-1", "True");
    scenario.advance();
    check(&mut scenario);
    scenario.advance();
    push(&mut scenario, "B");
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    scenario
}

pub(crate) fn push(scenario: &mut Scenario, revision: &str) {
    scenario.owner["spec"]["source"]["git"]["ref"]["branch"] = json!(revision);
}

/// The deployed object says what became of it.
pub(crate) fn deployment(scenario: &mut Scenario, phase: &str) {
    let generation = scenario.cluster.object("app")["metadata"]["generation"].clone();
    scenario.cluster.object("app")["status"] =
        json!({"observedGeneration": generation, "phase": phase});
}

pub(crate) fn run(scenario: &mut Scenario, name: &str, status: &str) {
    scenario.cluster.object(name)["status"] = json!({"conditions": [{"type": "Succeeded", "status": status, "message": "told by the run"}]});
}

pub(crate) fn check(scenario: &mut Scenario) {
    let revision = scenario.cluster.object("check")["spec"]["revision"].clone();
    scenario.cluster.object("check")["status"] = json!({"revision": revision});
}

pub(crate) fn deployed(scenario: &mut Scenario) -> String {
    let revision = &scenario.cluster.object("app")["spec"]["revision"];
    revision.as_str().unwrap().to_owned()
}

/// `<resource>=<verdict>@<arrival>` of all validations.
pub(crate) fn verdicts(scenario: &Scenario) -> Vec<String> {
    let validations = scenario.owner["status"]["environments"][0]["validations"]
        .as_array()
        .expect("no environment in status");
    let text = |told: &Value, field: &str| told[field].as_str().unwrap().to_owned();
    validations
        .iter()
        .map(|told| {
            format!(
                "{}={}@{}",
                text(told, "resource"),
                text(told, "verdict"),
                told["arrival"]
            )
        })
        .collect()
}

pub(crate) fn events(outcome: &Outcome) -> Vec<String> {
    outcome
        .events
        .iter()
        .filter(|event| {
            event.reason.starts_with("Validation") || event.reason == "RevisionDeployed"
        })
        .map(|event| {
            let type_ = if event.warning { "Warning" } else { "Normal" };
            format!("{type_} {} {}", event.reason, event.message)
        })
        .collect()
}

#[test]
fn a_revision_is_promoted_once_all_validations_in_sequence_succeeded() {
    let mut scenario = sequence();
    let announced = scenario.reconcile();
    assert_eq!(
        (announced.again, announced.write_now),
        (Some(std::time::Duration::ZERO), true)
    );
    assert_eq!(
        scenario.cluster.names(),
        ["src"],
        "status does not say yet that it comes"
    );
    let environment = &scenario.owner["status"]["environments"][0];
    assert_eq!(environment["arriving"]["revision"], "A");
    assert_eq!(environment.get("deployed"), None);
    assert_eq!(
        scenario.step_condition("deployer", "ResourceSubmitted"),
        "Unknown/ConditionNotMet/resource [deployer] condition not met: revision [A] is about to be deployed"
    );
    let told = scenario.reconcile_at_once();
    assert_eq!(
        events(&told),
        ["Normal RevisionDeployed [deployer] deployed revision [A], arrival 1"]
    );
    assert_eq!(scenario.cluster.names(), ["src", "app"]);
    assert_eq!(
        verdicts(&scenario),
        ["tester=Pending@1", "checker=Pending@1"]
    );

    deployment(&mut scenario, "Ready");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["src", "app", "run-1"]);
    assert_eq!(
        verdicts(&scenario),
        ["tester=Running@1", "checker=Pending@1"]
    );
    assert_eq!(
        scenario.step_condition("tester", "ResourceSubmitted"),
        "Unknown/ValidationRunning/validation [tester] of revision [A] in environment [deployer] has not ended: \
         condition with type [Succeeded] not found on resource status"
    );

    run(&mut scenario, "run-1", "True");
    let told = scenario.reconcile();
    assert_eq!(
        events(&told),
        [
            "Normal ValidationSucceeded validation [tester] succeeded for revision [A] in environment [deployer]"
        ]
    );
    assert_eq!(scenario.cluster.names(), ["src", "app", "run-1", "check"]);
    assert_eq!(scenario.entry("tester")["outputs"][1]["preview"], "A\n");
    assert_eq!(
        scenario.cluster.object("check")["metadata"]["annotations"]["carto.run/validates"],
        "1"
    );

    check(&mut scenario);
    let told = scenario.reconcile();
    assert_eq!(told.reason, "Ready");
    assert_eq!((told.again, told.write_now), (None, false));
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "A");
    assert_eq!(
        verdicts(&scenario),
        ["tester=Succeeded@1", "checker=Succeeded@1"]
    );

    let told = scenario.reconcile();
    assert!(!told.changed, "{}", told.status);
}

#[test]
fn a_run_is_not_said_to_have_given_another_revision_than_it_validated() {
    let scenario = second_revision_is_validated();
    let runs = &scenario.entry("tester")["runs"];
    assert_eq!([&runs[0]["name"], &runs[1]["name"]], ["run-2", "run-1"]);
    assert_eq!(runs[1].get("outputs"), None, "{runs}");
}

#[test]
fn the_newest_waiting_revision_goes_next_and_older_ones_are_skipped() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    for revision in ["B", "C"] {
        push(&mut scenario, revision);
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "A");
        assert_eq!(
            scenario.step_condition("deployer", "UpdateHeld"),
            format!(
                "True/ValidationRunning/revision [{revision}] waits: revision [A] is in the environment until it is \
                 validated; no verdict yet from [tester, checker]"
            )
        );
    }
    let environment = &scenario.owner["status"]["environments"][0];
    assert_eq!(environment["deployed"]["revision"], "A");
    assert_eq!(environment["waiting"]["revision"], "C");
    assert_eq!(
        scenario.entry("deployer")["outputs"][1]["preview"],
        "A\n",
        "what is deployed, never what waits"
    );
    let types: Vec<_> = scenario.entry("deployer")["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        ["ResourceSubmitted", "Healthy", "Ready", "UpdateHeld"]
    );

    run(&mut scenario, "run-1", "True");
    scenario.advance();
    check(&mut scenario);
    let told = scenario.reconcile();
    assert_eq!(
        (told.again, told.write_now),
        (Some(std::time::Duration::ZERO), true)
    );
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "A");
    assert_eq!(
        deployed(&mut scenario),
        "A",
        "status does not say yet that it is free and what comes"
    );
    let environment = &scenario.owner["status"]["environments"][0];
    assert_eq!(environment["arriving"]["revision"], "C");
    assert_eq!(environment.get("waiting"), None);

    let told = scenario.reconcile();
    assert_eq!(deployed(&mut scenario), "C");
    assert_eq!(
        events(&told),
        ["Normal RevisionDeployed [deployer] deployed revision [C], arrival 2"]
    );
    assert_eq!(
        verdicts(&scenario),
        ["tester=Pending@2", "checker=Pending@2"]
    );
    assert_eq!(scenario.step_condition("deployer", "UpdateHeld"), "absent");
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "A");

    deployment(&mut scenario, "Ready");
    scenario.advance();
    assert!(
        scenario.cluster.names().contains(&"run-2"),
        "a new run, although its template reads nothing of the deployment"
    );
}

#[test]
fn a_failed_validation_releases_the_environment_and_stops_the_revision() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    run(&mut scenario, "run-1", "False");
    let told = scenario.reconcile();
    assert_eq!(
        events(&told),
        [
            "Warning ValidationFailed validation [tester] failed for revision [A] in environment [deployer]: told by the run"
        ]
    );
    assert_eq!(
        scenario.step_condition("tester", "ResourceSubmitted"),
        "False/ValidationFailed/validation [tester] failed for revision [A] in environment [deployer]: told by the run"
    );
    assert!(
        scenario
            .owner_condition("ResourcesSubmitted")
            .starts_with("False/ValidationFailed/")
    );
    assert_eq!(
        verdicts(&scenario),
        ["tester=Failed@1", "checker=Skipped@1"]
    );
    push(&mut scenario, "B");
    scenario.advance_with_arrival();
    assert_eq!(deployed(&mut scenario), "B");
    assert!(!scenario.cluster.names().contains(&"promoted"));
}

#[test]
fn a_validation_that_does_not_end_is_waited_for_until_its_timeout() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    push(&mut scenario, "B");
    let told = scenario.reconcile();
    assert_eq!(told.again, Some(std::time::Duration::from_mins(9)));
    for _ in 0..8 {
        let told = scenario.reconcile();
        assert_eq!(events(&told), Vec::<String>::new());
    }
    let told = scenario.reconcile();
    assert_eq!(
        events(&told),
        [
            "Warning ValidationTimedOut validation [tester] did not end in time for revision [A] in environment [deployer]: \
          the environment is released"
        ]
    );
    assert_eq!(
        (told.again, told.write_now),
        (Some(std::time::Duration::ZERO), true)
    );
    assert_eq!(
        verdicts(&scenario),
        ["tester=TimedOut@1", "checker=Skipped@1"]
    );
    assert!(
        scenario
            .step_condition("tester", "ResourceSubmitted")
            .starts_with("False/ValidationTimedOut/validation [tester] of revision [A]")
    );
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "B");
}

#[test]
fn a_late_success_promotes_and_locks_again_for_what_comes_behind_it() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    for _ in 0..10 {
        scenario.advance();
    }
    assert_eq!(
        verdicts(&scenario),
        ["tester=TimedOut@1", "checker=Skipped@1"]
    );
    run(&mut scenario, "run-1", "True");
    let told = scenario.reconcile();
    assert_eq!(
        verdicts(&scenario),
        ["tester=Succeeded@1", "checker=Pending@1"]
    );
    assert_eq!(
        (told.again, told.write_now),
        (Some(std::time::Duration::ZERO), true)
    );
    assert!(
        !scenario.cluster.names().contains(&"check"),
        "status said that it is skipped, so it must say otherwise first"
    );
    push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "A");
    assert!(scenario.cluster.names().contains(&"check"));
    assert_eq!(
        verdicts(&scenario),
        ["tester=Succeeded@1", "checker=Running@1"]
    );
}

#[test]
fn a_failed_deployment_lets_the_next_revision_in() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Failed");
    scenario.advance();
    assert_eq!(
        verdicts(&scenario),
        ["tester=Skipped@1", "checker=Skipped@1"]
    );
    push(&mut scenario, "B");
    scenario.advance_with_arrival();
    assert_eq!(deployed(&mut scenario), "B");
}

#[test]
fn a_deployment_that_fails_under_its_validation_stays_until_that_ended() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    // Status was lost: nothing but the run itself tells that it runs, and no other validation begins.
    scenario.owner["status"] = json!({});
    deployment(&mut scenario, "Failed");
    push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(
        verdicts(&scenario),
        ["tester=Running@1", "checker=Skipped@1"]
    );
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "A");
    run(&mut scenario, "run-1", "False");
    scenario.advance();
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "B");
}

#[test]
fn the_same_revision_that_comes_again_is_validated_again() {
    let mut scenario = sequence();
    for revision in ["A", "B", "A"] {
        push(&mut scenario, revision);
        scenario.advance_with_arrival();
        deployment(&mut scenario, "Ready");
        scenario.advance();
        let run_name = scenario
            .cluster
            .names()
            .into_iter()
            .rfind(|name| name.starts_with("run-"))
            .unwrap()
            .to_owned();
        run(&mut scenario, &run_name, "False");
        scenario.advance();
    }
    assert_eq!(
        verdicts(&scenario),
        ["tester=Failed@3", "checker=Skipped@3"]
    );
    assert!(scenario.cluster.names().contains(&"run-3"));
}

#[test]
fn a_template_that_renders_another_name_for_each_revision_is_locked_too() {
    let mut scenario = sequence();
    scenario.apply(
        "kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  observedCompletion: {succeeded: {key: .status.phase, value: Ready}}
  template:
    apiVersion: test.run/v1alpha1
    kind: App
    metadata: {name: app-$(deployment.revision)$}
    spec: {revision: $(deployment.revision)$}",
    );
    scenario.advance_with_arrival();
    push(&mut scenario, "B");
    let held = |scenario: &mut Scenario| {
        scenario.advance();
        assert_eq!(scenario.cluster.names(), ["src", "app-A"]);
        assert_eq!(scenario.entry("deployer")["stampedRef"]["name"], "app-A");
    };
    held(&mut scenario);
    // Whatever the object says of itself.
    scenario.cluster.object("app-A")["metadata"]["annotations"]
        .as_object_mut()
        .unwrap()
        .remove("carto.run/environment");
    held(&mut scenario);
    for _ in 0..8 {
        held(&mut scenario);
    }
    assert_eq!(verdicts(&scenario)[0], "tester=TimedOut@1");
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["src", "app-A", "app-B"],
        "released: the new one is made; what steps behind it stand for is not known yet"
    );
    scenario.cluster.object("app-B")["status"] = json!({"observedGeneration": 1, "phase": "Ready"});
    scenario.advance();
    let runs: Vec<String> = scenario
        .cluster
        .names()
        .iter()
        .map(ToString::to_string)
        .collect();
    for name in runs.iter().filter(|name| name.starts_with("run-")) {
        run(&mut scenario, name, "True");
    }
    scenario.advance();
    check(&mut scenario);
    scenario.advance();
    assert!(scenario.cluster.names().contains(&"promoted"));
    assert!(
        !scenario.cluster.names().contains(&"app-A"),
        "every step has its object: the old one goes"
    );
}

#[test]
fn what_is_deployed_is_promoted_even_while_nothing_can_be_deployed() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    scenario.cluster.failing.insert(
        "fetch".to_owned(),
        SubmitFailure {
            kind: SubmitFailureKind::Rejected,
            message: "no".to_owned(),
        },
    );
    run(&mut scenario, "run-1", "True");
    scenario.advance();
    assert!(
        scenario
            .step_condition("deployer", "ResourceSubmitted")
            .starts_with("False/TemplateStampFailure/")
    );
    assert_eq!(
        verdicts(&scenario),
        ["tester=Succeeded@1", "checker=Running@1"]
    );
    check(&mut scenario);
    scenario.advance();
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "A");
    assert_eq!(deployed(&mut scenario), "A");
}

/// Another process wrote it meanwhile; but whoever writes all the time must not keep the walk from its end.
#[test]
fn an_environment_that_changes_between_look_and_write_is_looked_at_again_and_not_for_ever() {
    let mut scenario = sequence();
    scenario.cluster.failing.insert(
        "deployer".to_owned(),
        SubmitFailure {
            kind: SubmitFailureKind::Stale,
            message: "patch: the object has been modified".to_owned(),
        },
    );
    scenario.advance_with_arrival();
    assert_eq!(
        scenario.step_condition("deployer", "ResourceSubmitted"),
        "False/TemplateRejectedByAPIServer/unable to apply object [ns/app] for resource [deployer] in supply chain \
         [delivery]: patch: the object has been modified"
    );
    scenario.cluster.failing.clear();
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "A");
}

#[test]
fn a_deployment_without_validations_is_written_without_looking() {
    let mut scenario = sequence();
    scenario.apply(
        "kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {name: delivery}
spec:
  selector: {app: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - name: deployer
    templateRef: {kind: ClusterDeploymentTemplate, name: deploy}
    deployment: {resource: fetch}
  - name: promoter
    templateRef: {kind: ClusterTemplate, name: promote}
    sources: [{name: source, resource: deployer}]",
    );
    scenario.advance();
    push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "B");
    assert!(
        !scenario
            .cluster
            .log
            .iter()
            .any(|entry| entry.ends_with("look"))
    );
    assert_eq!(
        scenario.cluster.object("app")["metadata"]["annotations"].get("carto.run/environment"),
        None
    );
    assert_eq!(scenario.owner["status"].get("environments"), None);
}

#[test]
fn an_environment_made_before_there_were_validations_is_free() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    let annotations = &mut scenario.cluster.object("app")["metadata"]["annotations"];
    annotations
        .as_object_mut()
        .unwrap()
        .remove("carto.run/environment");
    scenario.owner["status"] = json!({});
    push(&mut scenario, "B");
    scenario.advance_with_arrival();
    assert_eq!(deployed(&mut scenario), "B");
}

#[test]
fn a_drifted_environment_is_put_back_to_what_is_being_validated() {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    scenario.cluster.tamper("app");
    scenario.cluster.object("app")["spec"]["revision"] = json!("X");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "A");
    assert_eq!(verdicts(&scenario)[0], "tester=Running@1");
}
