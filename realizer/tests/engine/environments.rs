//! Several environments behind one another.

use serde_json::json;

use crate::scenario::Scenario;
use crate::validation::{TEMPLATES, check, events, push, run};

/// A revision goes to production once it is validated in staging.
const STAGES: &str = "
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: produce}
spec:
  observedCompletion: {succeeded: {key: .status.phase, value: Ready}, failed: {key: .status.phase, value: Failed}}
  template:
    apiVersion: test.run/v1alpha1
    kind: App
    metadata: {name: production}
    spec: {revision: $(deployment.revision)$}
---
kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {name: delivery}
spec:
  selector: {app: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - name: staging
    templateRef: {kind: ClusterDeploymentTemplate, name: deploy}
    deployment: {resource: fetch}
  - name: tester
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: test}
    deployment: {resource: staging}
  - name: production
    templateRef: {kind: ClusterDeploymentTemplate, name: produce}
    deployment: {resource: tester}
  - name: checker
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: check}
    deployment: {resource: production}
  - name: promoter
    templateRef: {kind: ClusterTemplate, name: promote}
    sources: [{name: source, resource: checker}]
";

fn stages() -> Scenario {
    Scenario::new(&format!("{TEMPLATES}{STAGES}"))
}

fn phase(scenario: &mut Scenario, app: &str, phase: &str) {
    let object = scenario.cluster.object(app);
    let generation = object["metadata"]["generation"].clone();
    object["status"] = json!({"observedGeneration": generation, "phase": phase});
}

fn deployed(scenario: &mut Scenario, app: &str) -> String {
    let revision = &scenario.cluster.object(app)["spec"]["revision"];
    revision.as_str().unwrap().to_owned()
}

/// `<environment>: <validation>=<verdict>@<arrival>` of all.
fn verdicts(scenario: &Scenario) -> Vec<String> {
    let environments = scenario.owner["status"]["environments"].as_array().unwrap();
    environments
        .iter()
        .flat_map(|environment| {
            let validations = environment["validations"].as_array().unwrap();
            validations.iter().map(|told| {
                format!(
                    "{}: {}={}@{}",
                    environment["resource"], told["resource"], told["verdict"], told["arrival"]
                )
                .replace('"', "")
            })
        })
        .collect()
}

/// Revision A is in both environments and its check runs.
fn in_production() -> Scenario {
    let mut scenario = stages();
    scenario.advance_with_arrival();
    phase(&mut scenario, "app", "Ready");
    scenario.advance();
    run(&mut scenario, "run-1", "True");
    scenario.advance_with_arrival();
    phase(&mut scenario, "production", "Ready");
    scenario.advance();
    scenario
}

#[test]
fn an_environment_is_kept_for_validations_behind_the_next_one_too() {
    let mut scenario = in_production();
    assert_eq!(
        verdicts(&scenario),
        [
            "staging: tester=Succeeded@1",
            "staging: checker=Running@1",
            "production: checker=Running@1"
        ]
    );
    push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(deployed(&mut scenario, "app"), "A");
    check(&mut scenario);
    let told = scenario.reconcile();
    assert_eq!(
        events(&told),
        [
            "Normal ValidationSucceeded validation [checker] succeeded for revision [A] in environment [production]"
        ],
        "told once, of the environment it is about"
    );
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "A");
    scenario.advance();
    assert_eq!(deployed(&mut scenario, "app"), "B");
    assert_eq!(deployed(&mut scenario, "production"), "A");
}

#[test]
fn a_revision_that_fails_in_staging_frees_it_and_leaves_production_alone() {
    let mut scenario = in_production();
    check(&mut scenario);
    scenario.advance();
    push(&mut scenario, "B");
    scenario.advance_with_arrival();
    phase(&mut scenario, "app", "Ready");
    scenario.advance();
    run(&mut scenario, "run-2", "False");
    scenario.advance();
    assert_eq!(
        verdicts(&scenario),
        [
            "staging: tester=Failed@2",
            "staging: checker=Skipped@2",
            "production: checker=Succeeded@1"
        ]
    );
    push(&mut scenario, "C");
    scenario.advance_with_arrival();
    assert_eq!(deployed(&mut scenario, "app"), "C");
    assert_eq!(deployed(&mut scenario, "production"), "A");
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "A");
}

#[test]
fn production_is_validated_while_staging_goes_on() {
    let mut scenario = in_production();
    // Staging is waited for no longer, production has no limit.
    for _ in 0..10 {
        scenario.advance();
    }
    push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(
        deployed(&mut scenario, "app"),
        "A",
        "the check has no timeout"
    );
    phase(&mut scenario, "production", "Failed");
    scenario.advance();
    assert_eq!(deployed(&mut scenario, "app"), "A", "the check still runs");
    check(&mut scenario);
    scenario.advance();
    scenario.advance();
    assert_eq!(deployed(&mut scenario, "app"), "B");
    assert_eq!(deployed(&mut scenario, "production"), "A");
}
