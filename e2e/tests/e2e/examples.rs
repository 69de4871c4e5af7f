//! What the examples promise besides what they do.

use std::collections::BTreeSet;

use e2e::manifests::documents;
use serde_json::Value;

const EXAMPLES: [&str; 5] = [
    "examples/attributed/platform",
    "examples/web-app/platform",
    "examples/deliver-app/platform",
    "examples/full-path/platform",
    "examples/staging-delivery/platform",
];

/// What a run is made of: the image that runs it, and where it writes. The rest of its inputs are outputs of steps, and texts.
const GATING_INPUTS: [&str; 3] = ["image", "repository", "branch"];

/// A param with a `default` in a template can be set by the developer's object. If it names the image of a test, the developer
/// decides what a passed test is.
#[test]
fn no_param_of_a_developer_replaces_what_runs_a_gate_or_where_it_writes() {
    let objects: Vec<Value> = EXAMPLES
        .iter()
        .flat_map(|folder| documents(folder).unwrap())
        .collect();
    let steps: Vec<(&str, &Value)> = objects.iter().flat_map(steps).collect();
    let mut checked = 0;
    for template in objects.iter().filter(|object| stamps_a_run(object)) {
        let gating = gating_params(template);
        let uses: Vec<_> = steps
            .iter()
            .filter(|(_, step)| step["templateRef"]["name"] == template["metadata"]["name"])
            .collect();
        assert!(!uses.is_empty(), "{} is not used", template["metadata"]);
        for (blueprint, step) in uses {
            let fixed = fixed_params(step);
            for param in &gating {
                assert!(
                    fixed.contains(param),
                    "{blueprint}, step {}: a developer may set {param}",
                    step["name"]
                );
                checked += 1;
            }
        }
    }
    // Two Runnables of full-path with an image each and a place to write to, three of staging-delivery, and a Job.
    assert_eq!(checked, 9);
}

fn steps(blueprint: &Value) -> impl Iterator<Item = (&str, &Value)> {
    let name = blueprint["metadata"]["name"].as_str().unwrap_or_default();
    let steps = blueprint["spec"]["resources"].as_array();
    steps.into_iter().flatten().map(move |step| (name, step))
}

fn stamps_a_run(template: &Value) -> bool {
    let kind = &template["spec"]["template"]["kind"];
    // The image of a ClusterRunTemplate's Job is an input of its Runnable.
    kind == "Runnable" || kind == "Job" && template["kind"] != "ClusterRunTemplate"
}

/// The params whose values become gating inputs of the Runnable, or the image of the Job.
fn gating_params(template: &Value) -> BTreeSet<String> {
    let spec = &template["spec"]["template"]["spec"];
    let image = spec.pointer("/template/spec/containers/0/image");
    let inputs = GATING_INPUTS.iter().map(|name| &spec["inputs"][name]);
    let values = inputs.chain(image).filter_map(Value::as_str);
    let params = values.filter_map(|value| value.strip_prefix("$(params.")?.strip_suffix(")$"));
    params.map(str::to_owned).collect()
}

fn fixed_params(step: &Value) -> BTreeSet<String> {
    let params = step["params"].as_array().into_iter().flatten();
    let fixed = params.filter(|param| !param["value"].is_null());
    fixed
        .map(|param| param["name"].as_str().unwrap().to_owned())
        .collect()
}

/// A binding names the namespace of its service account. Applied elsewhere it would grant nothing, and nobody would be told.
#[test]
fn a_role_binding_is_applied_only_to_the_namespace_it_is_for() {
    let mut checked = 0;
    for folder in EXAMPLES.map(|folder| folder.replace("platform", "developer")) {
        for object in documents(&folder).unwrap() {
            if object["kind"] == "RoleBinding" {
                let subjects = object["subjects"].as_array().unwrap();
                for subject in subjects {
                    let namespace = &subject["namespace"];
                    assert_eq!(namespace, &object["metadata"]["namespace"], "{folder}");
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, EXAMPLES.len());
}
