//! ytt templates are described as data (docs/behaviour/ytt.md#rendering).

use realizer::{Ask, AskFeed, Realization, RenderFailure, Retry};
use serde_json::json;

use crate::scenario::Scenario;

const CHAIN: &str = "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: plain}
spec:
  params: [{name: replicas, default: 3}]
  ytt: |
    #@ load('@ytt:data', 'data')
    kind: ConfigMap
    data: {x: #@ data.values.workload.metadata.name}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources: [{name: one, templateRef: {kind: ClusterTemplate, name: plain}}]
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}, resourceVersion: '7'}
spec: {}
";

fn call(scenario: &Scenario) -> realizer::YttCall {
    let owner = scenario.parsed_owner();
    let blueprints = scenario.compiled_blueprints();
    let mut realization = Realization::new(
        &owner,
        &blueprints[0],
        &scenario.templates,
        scenario.now,
        scenario.key.clone(),
    );
    match realization.next() {
        Ask::Render(call) => call,
        other => panic!("no rendering asked for: {other:?}"),
    }
}

#[test]
fn the_call_carries_text_and_values() {
    let call = call(&Scenario::new(CHAIN));
    assert_eq!(call.resource, "one");
    assert!(call.template.starts_with("#@ load("));
    assert!(call.template_digest.starts_with("sha256:"));
    let keys: Vec<_> = call.values.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        [
            "configs",
            "deliverable",
            "deployment",
            "images",
            "labels",
            "params",
            "sources",
            "workload"
        ]
    );
    assert_eq!(call.values["params"], json!({"replicas": 3}));
    assert_eq!(call.values["workload"]["spec"], json!({"build": {}}));
}

#[test]
fn the_digest_of_values_outlives_our_own_status_write() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.cluster.ytt.insert(
        "one".to_owned(),
        Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"n": 5}})),
    );
    let before = call(&scenario).values_digest;
    scenario.advance();
    scenario.owner["metadata"]["resourceVersion"] = json!("8");
    assert_eq!(call(&scenario).values_digest, before);
    scenario.owner["spec"]["image"] = json!("i");
    assert_ne!(call(&scenario).values_digest, before);
}

#[test]
fn the_rendering_is_decorated_and_submitted_with_its_integers() {
    let mut scenario = Scenario::new(CHAIN);
    let rendering = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": {"replicas": 3}});
    scenario.cluster.ytt.insert("one".to_owned(), Ok(rendering));
    assert_eq!(scenario.reconcile().reason, "Ready");
    let object = scenario.cluster.object("x");
    assert_eq!(object["spec"]["replicas"].to_string(), "3");
    assert_eq!(
        object["metadata"]["labels"]["carto.run/resource-name"],
        "one"
    );
}

#[test]
fn what_ytt_says_is_the_cause_of_the_stamp_error() {
    let mut scenario = Scenario::new(CHAIN);
    let said = "unable to apply ytt template: ytt: Error: \n- struct has no .x field or method";
    scenario
        .cluster
        .ytt
        .insert("one".to_owned(), Err(said.to_owned().into()));
    scenario.advance();
    assert_eq!(
        scenario.step_condition("one", "ResourceSubmitted"),
        format!(
            "False/TemplateStampFailure/unable to stamp object for resource [one] for template [ClusterTemplate/plain] in \
             supply chain [chain]: {said}"
        )
    );
}

#[test]
fn tags_in_a_ytt_rendering_are_not_processed() {
    let mut scenario = Scenario::new(CHAIN);
    let rendering = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"t": "$(params.replicas)$"}});
    scenario.cluster.ytt.insert("one".to_owned(), Ok(rendering));
    scenario.advance();
    assert_eq!(
        scenario.cluster.object("x")["data"]["t"],
        "$(params.replicas)$"
    );
}

/// A full disk or a busy machine is nobody's to mend: nothing would wake the owner when it is over.
#[test]
fn a_rendering_that_the_machine_prevented_is_tried_again_and_one_that_ytt_refused_is_not() {
    for (passes_by_itself, retry) in [(true, Retry::Backoff), (false, Retry::AwaitChange)] {
        let mut scenario = Scenario::new(CHAIN);
        let failure = RenderFailure {
            message: "unable to apply ytt template: no".to_owned(),
            passes_by_itself,
        };
        scenario.cluster.ytt.insert("one".to_owned(), Err(failure));
        assert_eq!(scenario.reconcile().retry, retry);
        assert_eq!(
            scenario.step_condition("one", "ResourceSubmitted"),
            "False/TemplateStampFailure/unable to stamp object for resource [one] for template [ClusterTemplate/plain] in \
             supply chain [chain]: unable to apply ytt template: no"
        );
    }
}
