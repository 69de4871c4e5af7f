use serde_json::json;

use super::*;
use crate::Family;
use crate::template::outputs::OutputValues;

const FETCH: usize = 0;
const DEPLOY: usize = 1;
const TEST: usize = 2;
const PROMOTE: usize = 3;

/// What is fetched is deployed, tested there, and promoted.
fn blueprint() -> Blueprint {
    let step = |name: &str, kind: &str, input: serde_json::Value| {
        let mut step = json!({"name": name, "templateRef": {"kind": kind, "name": "t"}});
        step.as_object_mut()
            .unwrap()
            .extend(input.as_object().unwrap().clone());
        step
    };
    let deployment = |provider: &str| json!({"deployment": {"resource": provider}});
    let steps = [
        step("fetch", "ClusterSourceTemplate", json!({})),
        step("deploy", "ClusterDeploymentTemplate", deployment("fetch")),
        step(
            "test",
            "ClusterDeploymentValidationTemplate",
            deployment("deploy"),
        ),
        step("promote", "ClusterDeploymentTemplate", deployment("test")),
    ];
    let object = json!({"metadata": {"name": "chain"}, "spec": {"resources": steps}});
    Blueprint::compile(Family::Delivery, &object).unwrap()
}

fn output(revision: &str) -> Output {
    Output::of(
        OutputValues::Source {
            url: json!("u"),
            revision: json!(revision),
        },
        Taint::NONE,
    )
}

fn failed() -> StepEnd {
    StepEnd::Failed(StepError::NotReached {
        resource: "any".into(),
    })
}

fn ended(end: StepEnd) -> StepResult {
    StepResult::without_object(None, end)
}

#[test]
fn what_a_step_hands_on_goes_into_the_steps_behind_it() {
    let blueprint = blueprint();
    let mut steps = Steps::new(&blueprint);
    assert_eq!(steps.inputs(DEPLOY).deployment(), None);
    steps.settle(FETCH, ended(StepEnd::PassedThrough(output("r1"))));
    assert_eq!(steps.inputs(DEPLOY).deployment(), Some(&output("r1")));
    steps.settle(FETCH, ended(failed()));
    assert_eq!(steps.inputs(DEPLOY).deployment(), None);
}

#[test]
fn what_is_kept_in_an_environment_is_handed_on_though_its_step_failed() {
    let blueprint = blueprint();
    let mut steps = Steps::new(&blueprint);
    let kept = StepResult {
        kept: Some(output("r1")),
        ..ended(failed())
    };
    steps.settle(DEPLOY, kept);
    assert_eq!(steps.inputs(TEST).deployment(), Some(&output("r1")));
    // What would come is what an arrival says, never what is kept.
    assert_eq!(steps.prospective_inputs(TEST).deployment(), None);
}

#[test]
fn a_validation_would_hand_on_what_comes_in_before_it_has_succeeded() {
    let blueprint = blueprint();
    let mut steps = Steps::new(&blueprint);
    steps.settle(DEPLOY, ended(StepEnd::PassedThrough(output("r1"))));
    steps.begin(TEST);
    steps.settle(TEST, ended(failed()));
    assert_eq!(steps.inputs(PROMOTE).deployment(), None);
    assert_eq!(
        steps.prospective_inputs(PROMOTE).deployment(),
        Some(&output("r1"))
    );
}

#[test]
fn a_step_that_was_not_reached_failed() {
    let blueprint = blueprint();
    let mut steps = Steps::new(&blueprint);
    steps.settle(FETCH, ended(StepEnd::PassedThrough(output("r1"))));
    let errors = steps.into_results().into_iter();
    let errors: Vec<Option<String>> = errors
        .map(|result| result.end.into_error().map(|error| error.to_string()))
        .collect();
    let not_reached = |step: &str| Some(format!("resource [{step}] was not reached"));
    assert_eq!(
        errors,
        [
            None,
            not_reached("deploy"),
            not_reached("test"),
            not_reached("promote")
        ]
    );
}
