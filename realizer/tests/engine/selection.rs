//! From the owner's labels to its status (docs/behaviour/selection.md#blueprint,
//! docs/behaviour/realizing.md#reconcile).

use serde_json::{Value, json};

use crate::scenario::{Scenario, condition};

const CHAIN: &str = "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: plain}
spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}}
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
metadata: {name: app, labels: {type: web}, generation: 5}
spec: {}
";

#[test]
fn an_owner_without_labels_is_told_so_with_its_generation() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.owner["metadata"]["labels"] = json!({});
    scenario.advance();
    assert_eq!(
        scenario.owner_condition("SupplyChainReady"),
        "False/WorkloadLabelsMissing/workload has no labels to match to supply chain"
    );
    assert_eq!(scenario.owner["status"]["observedGeneration"], 5);
    assert_eq!(scenario.owner["status"]["supplyChainRef"], json!({}));
    assert!(!scenario.reconcile().changed);
}

#[test]
fn a_blueprint_that_is_not_ready_is_copied_and_nothing_is_realized() {
    let mut scenario = Scenario::new(CHAIN);
    let templates = std::mem::take(&mut scenario.templates);
    let outcome = scenario.reconcile();
    let text = "False/TemplatesNotFound/did not find the template of the resource(s) [one]";
    assert_eq!(scenario.owner_condition("SupplyChainReady"), text);
    assert_eq!(scenario.owner_condition("Ready"), text);
    assert_eq!(outcome.reason, "TemplatesNotFound");
    assert_eq!(scenario.owner["status"]["supplyChainRef"]["name"], "chain");
    assert_eq!(scenario.owner["status"].get("resources"), None);
    scenario.templates = templates;
    assert_eq!(scenario.reconcile().reason, "Ready");
}

#[test]
fn a_status_of_the_go_controller_is_taken_over_without_a_write() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    // As upstream serialises it, in another order of keys and with a key we do not know.
    let status: Value = serde_json::from_str(&scenario.owner["status"].to_string()).unwrap();
    scenario.owner["status"] = status;
    scenario.owner["status"]["unheardOf"] = json!({"by": "us"});
    assert!(!scenario.reconcile().changed);
}

#[test]
fn the_lists_of_conditions_are_exact() {
    let types = |conditions: &Value| -> Vec<String> {
        conditions
            .as_array()
            .unwrap()
            .iter()
            .map(|condition| condition["type"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    assert_eq!(
        types(&scenario.owner["status"]["conditions"]),
        [
            "SupplyChainReady",
            "ResourcesSubmitted",
            "ResourcesHealthy",
            "Ready"
        ]
    );
    assert_eq!(
        types(&scenario.entry("one")["conditions"]),
        ["ResourceSubmitted", "Healthy", "Ready"]
    );
}

#[test]
fn a_blueprint_without_steps_has_unknown_health() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.blueprints[0]["spec"]["resources"] = json!([]);
    scenario.advance();
    let conditions = &scenario.owner["status"]["conditions"];
    assert_eq!(
        condition(conditions, "ResourcesSubmitted"),
        "True/ResourceSubmissionComplete/"
    );
    assert_eq!(
        condition(conditions, "ResourcesHealthy"),
        "Unknown/HealthyConditionRule/"
    );
    assert_eq!(
        condition(conditions, "Ready"),
        "Unknown/HealthyConditionRule/"
    );
}
