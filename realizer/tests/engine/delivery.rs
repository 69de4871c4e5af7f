//! Deliverable and ClusterDelivery: the same engine with its own words
//! (docs/behaviour/deployments.md#rules, docs/behaviour/deployments.md#reasons).

use serde_json::json;

use crate::scenario::Scenario;

const DELIVERY: &str = "
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
    spec: {url: $(deliverable.spec.source.git.url)$, rev: main}
---
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type==\"Succeeded\")].status', value: 'True'}
    failed: {key: '.status.conditions[?(@.type==\"Failed\")].status', value: 'True'}
  template:
    apiVersion: test.run/v1alpha1
    kind: App
    metadata: {name: app}
    spec: {url: $(deployment.url)$, revision: $(deployment.revision)$, name: 'x$(deployment.name)$'}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: after}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: after}
    data: {url: $(source.url)$, other: $(sources.done.revision)$}
---
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
  - name: publish
    templateRef: {kind: ClusterTemplate, name: after}
    sources: [{name: done, resource: deployer}]
---
kind: Deliverable
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {app: web}}
spec: {source: {git: {url: u}}}
";

fn set_status(scenario: &mut Scenario, observed_generation: i64, type_: &str) {
    scenario.cluster.object("app")["status"] = json!({"observedGeneration": observed_generation, "conditions": [{"type": type_, "status": "True"}]});
}

#[test]
fn a_deployment_is_handed_on_once_it_is_done() {
    let mut scenario = Scenario::new(DELIVERY);
    scenario.advance();
    assert_eq!(
        scenario.cluster.object("app")["spec"],
        json!({"url": "u", "revision": "main", "name": "x"})
    );
    assert_eq!(
        scenario.owner_condition("ResourcesSubmitted"),
        "False/TemplateStampFailure/resource [deployer] cannot satisfy observedCompletion without observedGeneration in \
         object status"
    );
    assert_eq!(scenario.cluster.names(), ["src", "app"]);

    set_status(&mut scenario, 0, "Succeeded");
    scenario.advance();
    let text = "Unknown/ConditionNotMet/resource [deployer] condition not met: status.observedGeneration does not equal \
                metadata.generation: 0 != 1";
    assert_eq!(scenario.owner_condition("ResourcesSubmitted"), text);
    assert_eq!(
        scenario.step_condition("deployer", "ResourceSubmitted"),
        text,
        "the step's own type, unlike upstream"
    );
    assert_eq!(
        scenario.step_condition("deployer", "ResourcesSubmitted"),
        "absent"
    );

    set_status(&mut scenario, 1, "Succeeded");
    assert_eq!(scenario.reconcile().reason, "Ready");
    assert_eq!(scenario.entry("deployer")["outputs"][0]["preview"], "u\n");
    assert_eq!(
        scenario.entry("deployer")["inputs"],
        json!([{"name": "fetch"}])
    );
    assert_eq!(
        scenario.cluster.object("after")["data"],
        json!({"url": "u", "other": "main"})
    );

    set_status(&mut scenario, 1, "Failed");
    scenario.advance();
    assert_eq!(
        scenario.owner_condition("ResourcesSubmitted"),
        "False/FailedConditionMet/resource [deployer] failed condition met: deployment failure condition \
         [.status.conditions[?(@.type==\"Failed\")].status] was: True"
    );
}

/// Every new deployment passes through this: its object is there, and its controller has not come to it.
#[test]
fn nobody_is_warned_before_the_object_of_a_deployment_has_a_status() {
    let warnings = |outcome: &realizer::Outcome| -> Vec<String> {
        let warnings = outcome.events.iter().filter(|event| event.warning);
        warnings.map(|event| event.message.clone()).collect()
    };
    let message = "resource [deployer] cannot satisfy observedCompletion without observedGeneration in object status";
    let why = "the object has a status without observedGeneration, which observedCompletion asks for; use observedMatches \
               instead";
    let mut scenario = Scenario::new(DELIVERY);
    for status in [None, Some(json!({}))] {
        if let Some(status) = status {
            scenario.cluster.object("app")["status"] = status;
        }
        let outcome = scenario.reconcile();
        assert_eq!(warnings(&outcome), [""; 0]);
        assert_eq!(
            scenario.step_condition("deployer", "ResourceSubmitted"),
            format!("False/TemplateStampFailure/{message}")
        );
        assert_eq!(
            scenario.step_condition("deployer", "OutputUnreadable"),
            "absent"
        );
    }
    scenario.cluster.object("app")["status"] = json!({"conditions": []});
    let outcome = scenario.reconcile();
    assert_eq!(
        warnings(&outcome),
        [format!("[deployer] {message}: {why}; correct the template")]
    );
    assert_eq!(
        scenario.step_condition("deployer", "OutputUnreadable"),
        format!("True/OutputUnreadable/{why}")
    );
    let again = scenario.reconcile();
    assert!(!again.changed && warnings(&again).is_empty());

    set_status(&mut scenario, 1, "Succeeded");
    assert_eq!(scenario.reconcile().reason, "Ready");
    assert_eq!(
        scenario.step_condition("deployer", "OutputUnreadable"),
        "absent"
    );
}

#[test]
fn labels_ref_and_conditions_are_those_of_deliveries() {
    let mut scenario = Scenario::new(DELIVERY);
    scenario.advance();
    let labels = scenario.cluster.object("src")["metadata"]["labels"].clone();
    assert_eq!(labels["carto.run/deliverable-name"], "app");
    assert_eq!(labels["carto.run/deliverable-namespace"], "ns");
    assert_eq!(labels["carto.run/delivery-name"], "delivery");
    assert_eq!(labels.get("carto.run/workload-name"), None);
    assert_eq!(
        scenario.cluster.object("src")["metadata"]["ownerReferences"][0]["kind"],
        "Deliverable"
    );
    assert_eq!(
        scenario.owner["status"]["deliveryRef"],
        json!({"kind": "ClusterDelivery", "name": "delivery"})
    );
    assert_eq!(scenario.owner["status"].get("supplyChainRef"), None);
    assert_eq!(scenario.owner_condition("DeliveryReady"), "True/Ready/");
}

#[test]
fn messages_about_steps_say_supply_chain_all_the_same() {
    let mut scenario = Scenario::new(DELIVERY);
    scenario.owner["spec"] = json!({});
    scenario.advance();
    let text = scenario.step_condition("fetch", "ResourceSubmitted");
    assert!(text.contains("in supply chain [delivery]"), "{text}");
}

#[test]
fn a_deployment_without_rules_is_done_at_once() {
    let without_rules = DELIVERY
        .split("  observedCompletion:")
        .next()
        .unwrap()
        .to_owned()
        + DELIVERY
            .split_once("value: 'True'}\n  template:")
            .map(|(_, rest)| rest)
            .map(|rest| format!("  template:{rest}"))
            .unwrap()
            .as_str();
    let mut scenario = Scenario::new(&without_rules);
    assert_eq!(scenario.reconcile().reason, "Ready");
}

#[test]
fn a_plain_template_may_take_a_deployment() {
    let mut scenario = Scenario::new(DELIVERY);
    scenario.apply(
        "kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: after}
spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: after}, data: {url: $(deployment.url)$}}}
---
kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {name: delivery}
spec:
  selector: {app: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - {name: publish, templateRef: {kind: ClusterTemplate, name: after}, deployment: {resource: fetch}}",
    );
    assert_eq!(scenario.reconcile().reason, "Ready");
    assert_eq!(scenario.cluster.object("after")["data"]["url"], "u");
}
