//! The Rust types hold exactly what the schemas allow.

use std::fmt::Debug;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::sample::{self, schema_of};

fn full_object(crd: &CustomResourceDefinition) -> Value {
    let mut object = sample::full(schema_of(crd));
    object["apiVersion"] = json!("carto.run/v1alpha1");
    object["kind"] = json!(crd.spec.names.kind);
    object["metadata"] = json!({"name": "sample"});
    object
}

/// What the types have beyond the schemas, on purpose.
const BEYOND_THE_SCHEMA: [&str; 10] = [
    // core/v1 has grown since the Go controller's schema was made.
    "file_key_ref: None",
    "request: None",
    // A condition that has no others in it.
    ", all_of: [], any_of: [], not: None",
    // A validation has no such rules.
    ", always_successful: false, inputs_on_status: []",
    ", update_policy: None",
    ", foreign_fields: None",
    ", object: None",
    // One type serves both blueprints.
    "images: []",
    "deployment: None",
    // One type serves an object that is there and one that is to be deleted.
    "uid: Some(\"text\"), message: None",
];

/// Every field of the schema survives the type, and every field of the type is filled from the schema's sample.
fn check<K: DeserializeOwned + Serialize + Debug + PartialEq>(kind: &str) {
    let crd = api_types::crds()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap();
    let object = full_object(&crd);
    let typed: K = serde_json::from_value(object.clone()).unwrap();
    assert_eq!(serde_json::to_value(&typed).unwrap(), object, "{kind}");

    let mut text = format!("{typed:?}");
    let spec = text.find("spec: ").expect("every kind has a spec");
    text.drain(..spec);
    for beyond in BEYOND_THE_SCHEMA {
        text = text.replace(beyond, "");
    }
    for empty in [": None", ": []", ": {}", ": \"\""] {
        let at = text
            .find(empty)
            .map(|at| &text[at.saturating_sub(60)..at + empty.len()]);
        assert_eq!(at, None, "{kind} has a field its schema does not have");
    }
}

#[test]
fn types_and_schemas_have_the_same_fields() {
    check::<api_types::Workload>("Workload");
    check::<api_types::Deliverable>("Deliverable");
    check::<api_types::ClusterSupplyChain>("ClusterSupplyChain");
    check::<api_types::ClusterDelivery>("ClusterDelivery");
    check::<api_types::ClusterSourceTemplate>("ClusterSourceTemplate");
    check::<api_types::ClusterImageTemplate>("ClusterImageTemplate");
    check::<api_types::ClusterConfigTemplate>("ClusterConfigTemplate");
    check::<api_types::ClusterTemplate>("ClusterTemplate");
    check::<api_types::ClusterDeploymentTemplate>("ClusterDeploymentTemplate");
    check::<api_types::ClusterDeploymentValidationTemplate>("ClusterDeploymentValidationTemplate");
    check::<api_types::Runnable>("Runnable");
    check::<api_types::ClusterRunTemplate>("ClusterRunTemplate");
    check::<api_types::Artifact>("Artifact");
}

fn round_trip<K: DeserializeOwned + Serialize>(object: &Value) -> Value {
    serde_json::to_value(serde_json::from_value::<K>(object.clone()).unwrap()).unwrap()
}

#[test]
fn the_smallest_objects_parse_and_gain_no_fields_but_defaults() {
    let head = |kind: &str, spec: Value| json!({"apiVersion": "carto.run/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec});
    let workload = head("Workload", json!({}));
    assert_eq!(round_trip::<api_types::Workload>(&workload), workload);
    let chain = head("ClusterSupplyChain", json!({"resources": []}));
    assert_eq!(round_trip::<api_types::ClusterSupplyChain>(&chain), chain);
    let run_template = head("ClusterRunTemplate", json!({"template": {}}));
    assert_eq!(
        round_trip::<api_types::ClusterRunTemplate>(&run_template),
        run_template
    );
    // What the API server would have filled in, for objects that never met one.
    let template = head("ClusterTemplate", json!({}));
    assert_eq!(
        round_trip::<api_types::ClusterTemplate>(&template)["spec"],
        json!({"lifecycle": "mutable"})
    );
    let runnable = head("Runnable", json!({"runTemplateRef": {"name": "t"}}));
    assert_eq!(
        round_trip::<api_types::Runnable>(&runnable)["spec"]["retentionPolicy"],
        json!({"maxFailedRuns": 10, "maxSuccessfulRuns": 10})
    );
}

#[test]
fn unknown_fields_are_ignored() {
    let object = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "x"},
        "spec": {"future": {"a": 1}, "healthRule": {"future": true}}, "extra": 1});
    let typed: api_types::ClusterTemplate = serde_json::from_value(object).unwrap();
    assert_eq!(
        typed.spec.template_spec.health_rule,
        Some(api_types::HealthRule::default())
    );
}

#[test]
fn null_stays_a_value_where_any_json_is() {
    let workload = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Workload", "metadata": {},
        "spec": {"params": [{"name": "a", "value": null}]}});
    assert_eq!(round_trip::<api_types::Workload>(&workload), workload);
    let runnable = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Runnable", "metadata": {},
        "spec": {"runTemplateRef": {"name": "t"}, "inputs": {"a": null},
                 "retentionPolicy": {"maxFailedRuns": 1, "maxSuccessfulRuns": 1}}});
    assert_eq!(round_trip::<api_types::Runnable>(&runnable), runnable);
    let chain = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterSupplyChain", "metadata": {},
        "spec": {"resources": [], "params": [{"name": "a", "value": null}, {"name": "b", "default": null}]}});
    assert_eq!(round_trip::<api_types::ClusterSupplyChain>(&chain), chain);
}

#[test]
fn owners_that_were_never_matched_have_an_empty_blueprint_reference() {
    let status = api_types::WorkloadStatus {
        observed_generation: Some(1),
        ..Default::default()
    };
    assert_eq!(
        serde_json::to_value(status).unwrap(),
        json!({"observedGeneration": 1, "supplyChainRef": {}})
    );
    let status = api_types::DeliverableStatus::default();
    assert_eq!(
        serde_json::to_value(status).unwrap(),
        json!({"deliveryRef": {}})
    );
}
