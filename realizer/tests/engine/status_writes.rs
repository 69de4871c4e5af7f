//! Which renderings come from our own status writes can be told from the submission alone
//! (docs/behaviour/context.md#own-status).

use realizer::offline::Answers;
use realizer::{Ask, AskFeed, Realization, Submission};
use serde_json::json;

use crate::scenario::Scenario;

const CHAIN: &str = "
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: provider}
spec:
  configPath: .data.a
  template: {kind: ConfigMap, apiVersion: v1, metadata: {name: provider}, data: {a: $(params.a)$}}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: circle}
spec:
  template:
    kind: ConfigMap
    apiVersion: v1
    metadata: {name: circle}
    data: {version: $(workload.metadata.resourceVersion)$, in: $(config)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
    - {name: provider, templateRef: {kind: ClusterConfigTemplate, name: provider}}
    - name: circle
      templateRef: {kind: ClusterTemplate, name: circle}
      configs: [{resource: provider, name: in}]
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}, resourceVersion: '7'}
spec: {params: [{name: a, value: first}]}
";

/// What both steps submit.
fn submissions(scenario: &mut Scenario) -> [Submission; 2] {
    let owner = scenario.parsed_owner();
    let blueprints = scenario.compiled_blueprints();
    let mut realization = Realization::new(
        &owner,
        &blueprints[0],
        &scenario.templates,
        scenario.now,
        scenario.key.clone(),
    );
    [(); 2].map(|()| match realization.next() {
        Ask::Submit(submission) => {
            realization.record_observed(scenario.cluster.observed(&submission));
            submission
        }
        other => panic!("nothing submitted: {other:?}"),
    })
}

#[test]
fn a_rendering_that_changed_by_our_status_write_alone_stands_on_the_same_basis() {
    let mut scenario = Scenario::new(CHAIN);
    let [provider, before] = submissions(&mut scenario);
    assert_eq!(provider.basis, None, "it reads nothing of the status");
    assert!(before.basis.is_some());

    scenario.advance();
    scenario.owner["metadata"]["resourceVersion"] = json!("8");
    let [_, after] = submissions(&mut scenario);
    assert_ne!(after.digest, before.digest);
    assert_eq!(after.basis, before.basis);
}

#[test]
fn an_input_a_parameter_or_an_edit_of_the_template_is_another_basis() {
    let mut scenario = Scenario::new(CHAIN);
    let [_, before] = submissions(&mut scenario);
    scenario.owner["spec"]["params"][0]["value"] = json!("second");
    let [_, after] = submissions(&mut scenario);
    assert_ne!(after.basis, before.basis);

    let mut scenario = Scenario::new(CHAIN);
    scenario.apply(&CHAIN.replace("{version:", "{added: x, version:"));
    let [_, edited] = submissions(&mut scenario);
    assert_ne!(edited.basis, before.basis);

    // The input alone: the provider's object is changed by somebody else, and read as it is.
    let mut scenario = Scenario::new(CHAIN);
    submissions(&mut scenario);
    scenario.cluster.object("provider")["data"]["a"] = json!("from elsewhere");
    let [_, fed] = submissions(&mut scenario);
    assert_ne!(fed.basis, before.basis);
}

#[test]
fn a_ytt_template_that_sees_the_status_has_a_basis_too() {
    let ytt = CHAIN.replace(
        "  template:\n    kind: ConfigMap\n    apiVersion: v1\n    metadata: {name: circle}\n    data: {version: $(workload.metadata.resourceVersion)$, in: $(config)$}",
        "  ytt: |\n    version: #@ data.values.workload.metadata.resourceVersion",
    );
    let mut scenario = Scenario::new(&ytt);
    let rendered = |version: &str| {
        Ok(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "circle"}, "data": {"v": version}}),
        )
    };
    let circle = |scenario: &mut Scenario, version: &str| {
        scenario.owner["metadata"]["resourceVersion"] = json!(version);
        let owner = scenario.parsed_owner();
        let blueprints = scenario.compiled_blueprints();
        let mut realization = Realization::new(
            &owner,
            &blueprints[0],
            &scenario.templates,
            scenario.now,
            scenario.key.clone(),
        );
        loop {
            match realization.next() {
                Ask::Render(_) => realization.record_rendered(rendered(version)),
                Ask::Submit(submission) if submission.resource == "circle" => return submission,
                Ask::Submit(submission) => {
                    realization.record_observed(scenario.cluster.observed(&submission));
                }
                Ask::Look(_) | Ask::Read(_) | Ask::Done => panic!("nothing submitted"),
            }
        }
    };
    let before = circle(&mut scenario, "7");
    let after = circle(&mut scenario, "8");
    assert!(before.basis.is_some());
    assert_eq!(after.basis, before.basis);
    assert_ne!(after.digest, before.digest);
}
