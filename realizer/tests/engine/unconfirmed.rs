//! A process that dies between what it hands on and the status that tells of it: what was handed on is not taken back.

use serde_json::{Value, json};

use crate::attribution::{built, deployed, output, push, says, settles};
use crate::scenario::Scenario;

/// Image 2 is deployed, and status knows of image 1 only.
fn died() -> Scenario {
    let mut scenario = built();
    push(&mut scenario, "2");
    says(&mut scenario, "True", Some("image@2"));
    scenario.advance_and_die();
    assert_eq!(deployed(&mut scenario), "image@2");
    assert_eq!(output(&scenario)["value"], "image@1");
    scenario
}

fn relabel(scenario: &mut Scenario) {
    scenario.apply(
        "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: application}
    data: {image: $(image)$, edited: 'yes'}
",
    );
}

fn is_edited(scenario: &mut Scenario) -> bool {
    scenario.cluster.object("application")["data"]["edited"] == "yes"
}

#[test]
fn what_was_handed_on_before_a_kill_is_not_taken_back_while_the_step_is_not_good() {
    let mut scenario = died();
    says(&mut scenario, "Unknown", None);
    for _ in 0..3 {
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "image@2");
    }
    assert_eq!(
        scenario.step_condition("deploy", "ResourceSubmitted"),
        "Unknown/InputsNotReady/object [ns/application] of resource [deploy] is left as it is: resource(s) [build] hand on what \
         status knows as good last, and the object holds something else, which may be newer; waiting for resource(s) [build] \
         to be good. To have it made anew at once, delete it"
    );
    settles(&mut scenario);
    says(&mut scenario, "True", None);
    scenario.cluster.log.clear();
    scenario.advance();
    assert!(
        !scenario
            .cluster
            .log
            .iter()
            .any(|line| line.ends_with("Patched"))
    );
    assert_eq!(deployed(&mut scenario), "image@2");
    assert_eq!(output(&scenario)["value"], "image@2");
    assert_eq!(output(&scenario)["current"], true);
}

#[test]
fn a_newer_output_takes_the_place_of_one_that_status_never_told_of() {
    let mut scenario = died();
    push(&mut scenario, "3");
    says(&mut scenario, "False", None);
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@2");
    says(&mut scenario, "True", Some("image@3"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@3");
}

#[test]
fn what_is_deleted_by_hand_is_made_anew_from_what_is_known() {
    let mut scenario = died();
    says(&mut scenario, "Unknown", None);
    scenario.advance();
    scenario
        .cluster
        .held
        .objects
        .retain(|it| it.object["metadata"]["name"] != "application");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@1");
    settles(&mut scenario);
}

/// Nothing newer can be there where the object, as we made it, reports what status knows.
#[test]
fn an_output_that_is_reported_still_goes_in_after_a_restart_although_the_step_is_not_good() {
    let mut scenario = built();
    push(&mut scenario, "2");
    says(&mut scenario, "False", None);
    scenario.advance();
    scenario.is_told = false;
    relabel(&mut scenario);
    scenario.advance();
    assert!(is_edited(&mut scenario));
    assert_eq!(deployed(&mut scenario), "image@1");
}

/// Nor where all that takes the output holds what is made of it.
#[test]
fn an_object_that_was_found_as_rendered_after_a_restart_follows_its_template_from_then_on() {
    let mut scenario = built();
    push(&mut scenario, "2");
    says(&mut scenario, "Unknown", Some("image@missed"));
    scenario.is_told = false;
    scenario.advance();
    assert!(scenario.is_told);
    relabel(&mut scenario);
    scenario.advance();
    assert!(is_edited(&mut scenario));
    assert_eq!(deployed(&mut scenario), "image@1");
}

/// What a tenant writes into it in this time stays until the step is good, and nothing is read of it.
#[test]
fn what_somebody_writes_meanwhile_goes_nowhere() {
    let mut scenario = died();
    says(&mut scenario, "Unknown", None);
    scenario.cluster.object("application")["data"]["image"] = json!("evil");
    scenario.cluster.tamper("application");
    scenario.advance();
    let status = scenario.owner["status"].to_string();
    assert!(!status.contains("evil"), "{status}");
    says(&mut scenario, "True", None);
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@2");
}

const RUNS: &str = "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  lifecycle: immutable
  observedCompletion:
    succeeded: {key: .status.phase, value: Done}
  template:
    apiVersion: test.run/v1
    kind: Run
    metadata: {generateName: run-}
    spec: {image: $(image)$}
";

fn runs(scenario: &Scenario) -> Vec<Value> {
    let objects = scenario.cluster.held.objects.iter();
    let runs = objects.filter(|it| it.object["kind"] == "Run");
    runs.map(|it| it.object["spec"]["image"].clone()).collect()
}

#[test]
fn no_run_of_an_older_output_is_made_after_that_of_a_newer_one() {
    let mut scenario = Scenario::new(crate::attribution::DOCUMENTS);
    scenario.apply(RUNS);
    scenario.advance();
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_eq!(runs(&scenario), ["image@1"]);
    // Whoever prunes runs has come by.
    let name = scenario.cluster.held.objects.last().unwrap().object["metadata"]["name"].clone();
    push(&mut scenario, "2");
    says(&mut scenario, "True", Some("image@2"));
    scenario.advance_and_die();
    assert_eq!(runs(&scenario), ["image@1", "image@2"]);
    scenario.cluster.held.depart(name.as_str().unwrap());
    says(&mut scenario, "Unknown", None);
    scenario.advance();
    assert_eq!(runs(&scenario), ["image@1", "image@2"]);
    says(&mut scenario, "True", None);
    scenario.advance();
    assert_eq!(runs(&scenario), ["image@1", "image@2"]);
}

/// A test that fails is nothing unusual, and nor is an upgrade of templates and controller at once.
#[test]
fn after_a_run_that_status_knows_to_have_failed_nothing_newer_can_be_there() {
    let mut scenario = crate::attribution::ran();
    push(&mut scenario, "2");
    scenario.cluster.object("run-2")["status"] = json!({"failed": 1});
    scenario.advance();
    scenario.is_told = false;
    relabel(&mut scenario);
    scenario.advance();
    assert!(is_edited(&mut scenario));
    assert_eq!(deployed(&mut scenario), "image@1");

    push(&mut scenario, "3");
    scenario.cluster.object("run-3")["status"] = json!({"succeeded": 1, "image": "image@3"});
    scenario.advance_and_die();
    assert_eq!(deployed(&mut scenario), "image@3");
    // How it ended is in no status.
    scenario.cluster.tamper("run-3");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@3");
}
