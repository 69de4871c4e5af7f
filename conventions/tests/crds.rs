//! The CRDs: the files are what the code says, and what the Go controller's definitions say holds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../api-types/examples/generate-crds/yaml.rs"]
mod yaml;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/conventions/crds")
}

/// The definitions of PodIntent and ClusterPodConvention.
fn definitions() -> [Value; 2] {
    let crds = conventions::crds().into_iter();
    let values: Vec<Value> = crds.map(|crd| serde_json::to_value(crd).unwrap()).collect();
    values.try_into().unwrap()
}

fn schema(definition: &Value, field: &str) -> Value {
    let version = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    field.split('.').fold(version.clone(), |schema, name| {
        match name.strip_suffix("[]") {
            Some(name) => schema["properties"][name]["items"].clone(),
            None => schema["properties"][name].clone(),
        }
    })
}

#[test]
fn files_in_deploy_are_what_the_code_generates() {
    let mut expected = BTreeSet::new();
    for crd in conventions::crds() {
        let file = directory().join(yaml::file_name(&crd));
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            found == yaml::render(&crd).unwrap(),
            "{} is stale: make generate",
            file.display()
        );
        expected.insert(yaml::file_name(&crd));
    }
    let found: BTreeSet<String> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("conventions."))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn names_scope_columns_and_subresources_are_those_of_the_go_controller() {
    let [intent, convention] = definitions();
    assert_eq!(
        intent["spec"]["names"],
        json!({"kind": "PodIntent", "listKind": "PodIntentList", "plural": "podintents", "singular": "podintent",
               "categories": ["conventions"]})
    );
    assert_eq!(intent["spec"]["scope"], "Namespaced");
    assert_eq!(
        intent["metadata"]["labels"]["duck.knative.dev/podspecable"],
        "true"
    );
    let version = &intent["spec"]["versions"][0];
    assert_eq!(
        (&version["name"], &version["served"], &version["storage"]),
        (&json!("v1alpha1"), &json!(true), &json!(true))
    );
    assert_eq!(version["subresources"], json!({"status": {}}));
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([
            {"name": "Ready", "type": "string", "jsonPath": r#".status.conditions[?(@.type=="Ready")].status"#},
            {"name": "Reason", "type": "string", "jsonPath": r#".status.conditions[?(@.type=="Ready")].reason"#},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ])
    );
    assert_eq!(
        convention["spec"]["names"],
        json!({"kind": "ClusterPodConvention", "listKind": "ClusterPodConventionList", "plural": "clusterpodconventions",
               "singular": "clusterpodconvention", "categories": ["conventions"]})
    );
    assert_eq!(convention["spec"]["scope"], "Cluster");
    let version = &convention["spec"]["versions"][0];
    assert_eq!(version.get("subresources"), None);
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}])
    );
    for definition in definitions() {
        assert_eq!(definition["spec"]["group"], "conventions.carto.run");
        assert_eq!(
            definition["metadata"]["labels"]["app.kubernetes.io/component"],
            "conventions"
        );
        let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(root["required"], json!(["spec"]));
    }
}

#[test]
fn defaults_and_enums_are_in_the_schema_and_an_empty_text_is_accepted() {
    let [intent, convention] = definitions();
    let account = schema(&intent, "spec.serviceAccountName");
    assert_eq!(account["default"], "default");
    assert_eq!(
        schema(&intent, "spec.imagePullSecrets[].name")["default"],
        ""
    );
    assert_eq!(schema(&intent, "spec")["required"], json!(["template"]));
    for (field, default, texts) in [
        (
            "spec.priority",
            "Normal",
            json!(["", "Early", "Normal", "Late"]),
        ),
        (
            "spec.selectorTarget",
            "PodTemplateSpec",
            json!(["", "PodTemplateSpec", "PodIntent"]),
        ),
        (
            "spec.webhook.failurePolicy",
            "Fail",
            json!(["", "Fail", "Ignore"]),
        ),
    ] {
        let schema = schema(&convention, field);
        assert_eq!(
            (&schema["default"], &schema["enum"]),
            (&json!(default), &texts),
            "{field}"
        );
    }
    let timeout = schema(&convention, "spec.webhook.timeoutSeconds");
    assert_eq!(
        [&timeout["minimum"], &timeout["maximum"]].map(Value::as_f64),
        [Some(1.0), Some(30.0)]
    );
    assert_eq!(timeout["default"], 30);
    let service = schema(&convention, "spec.webhook.clientConfig.service");
    assert_eq!(service["properties"]["port"]["default"], 443);
    assert_eq!(service["required"], json!(["name", "namespace"]));
    assert_eq!(schema(&convention, "spec").get("required"), None);
    assert_eq!(
        schema(&convention, "spec.webhook")["required"],
        json!(["clientConfig"])
    );
    assert_eq!(
        schema(&convention, "spec.webhook.certificate")["required"],
        json!(["name", "namespace"])
    );
    assert_eq!(
        schema(&convention, "spec.webhook.clientConfig.caBundle")["format"],
        "byte"
    );
    assert_eq!(
        schema(&convention, "spec.selectors[]")["x-kubernetes-map-type"],
        "atomic"
    );
}

#[test]
fn a_template_has_five_keys_of_metadata_and_the_whole_pod_spec_in_spec_and_status() {
    let [intent, _] = definitions();
    let template = schema(&intent, "spec.template");
    let keys: Vec<&String> = template["properties"]["metadata"]["properties"]
        .as_object()
        .unwrap()
        .keys()
        .collect();
    assert_eq!(
        keys,
        ["annotations", "generateName", "labels", "name", "namespace"]
    );
    let pod = &template["properties"]["spec"];
    assert_eq!(pod["required"], json!(["containers"]));
    assert_eq!(
        pod,
        &schema(&intent, "status.template")["properties"]["spec"]
    );
    let containers = &pod["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-map-keys"], json!(["name"]));
    let container = &containers["items"];
    assert_eq!(container["required"], json!(["name"]));
    let ports = &container["properties"]["ports"];
    assert_eq!(
        ports["x-kubernetes-list-map-keys"],
        json!(["containerPort", "protocol"])
    );
    assert_eq!(ports["items"]["properties"]["protocol"]["default"], "TCP");
    let volume = &pod["properties"]["volumes"]["items"]["properties"];
    assert_eq!(volume["scaleIO"]["properties"]["fsType"]["default"], "xfs");
    assert_eq!(pod["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(container["x-kubernetes-preserve-unknown-fields"], true);
}

/// An API server stores no more than 1.5 MiB, and definitions grow with each version of Kubernetes.
#[test]
fn the_definitions_fit_into_an_api_server_with_room_to_spare() {
    for definition in definitions() {
        let size = definition.to_string().len();
        assert!(size < 500_000, "{size} bytes");
    }
}
