//! The CRDs: the files are what the code says, and what they hold of pods is what a PodIntent holds.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../api-types/examples/generate-crds/yaml.rs"]
mod yaml;

use std::collections::BTreeSet;
use std::path::Path;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

fn definitions() -> Vec<Value> {
    let crds = pod_presets::crds().into_iter();
    let crds = crds.chain(pod_presets::optional_crds());
    crds.map(|crd| serde_json::to_value(crd).unwrap()).collect()
}

fn spec(definition: &Value) -> Value {
    let root = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["properties"]["spec"].clone()
}

fn files_are_generated(folder: &str, crds: &[CustomResourceDefinition]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut expected = BTreeSet::new();
    for crd in crds {
        let file = folder.join(yaml::file_name(crd));
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        let is_current = found == yaml::render(crd).unwrap();
        assert!(is_current, "{} is stale: make generate", file.display());
        expected.insert(yaml::file_name(crd));
    }
    let found: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("settings."))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn files_in_deploy_are_what_the_code_generates() {
    files_are_generated("../deploy/conventions/crds", &pod_presets::crds());
    let optional = pod_presets::optional_crds();
    files_are_generated("../deploy/conventions/optional-crds", &optional);
}

#[test]
fn both_groups_have_the_same_kind_and_the_old_one_says_that_it_is_unapproved() {
    let [new, cluster, old] = definitions().try_into().unwrap();
    assert_eq!(new["spec"]["names"], old["spec"]["names"]);
    assert_eq!(new["spec"]["versions"], old["spec"]["versions"]);
    assert_eq!(
        (&new["spec"]["group"], &old["spec"]["group"]),
        (&json!("settings.carto.run"), &json!("settings.k8s.io"))
    );
    let approval = &old["metadata"]["annotations"]["api-approved.kubernetes.io"];
    assert!(approval.as_str().unwrap().starts_with("unapproved, "));
    assert_eq!(new["metadata"].get("annotations"), None);
    assert_eq!(cluster["spec"]["scope"], "Cluster");
    assert_eq!(new["spec"]["scope"], "Namespaced");
    assert_eq!(spec(&cluster)["required"], json!(["namespaceSelector"]));
    assert_eq!(spec(&new).get("required"), None);
}

/// What a schema says, but for what presets say beyond it.
fn plain(mut schema: Value) -> Value {
    for key in [
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "description",
        "maxItems",
    ] {
        schema.as_object_mut().unwrap().remove(key);
    }
    let name = schema["items"]["properties"]["name"].as_object_mut();
    name.map(|name| name.remove("maxLength"));
    schema
}

#[test]
fn parts_of_pods_have_the_schema_that_they_have_in_a_podintent() {
    let intent = serde_json::to_value(&conventions::crds()[0]).unwrap();
    let pod = &spec(&intent)["properties"]["template"]["properties"]["spec"];
    let container = &pod["properties"]["containers"]["items"]["properties"];
    for definition in definitions() {
        let fields = &spec(&definition)["properties"];
        for (list, theirs) in [
            ("volumes", &pod["properties"]["volumes"]),
            ("env", &container["env"]),
            ("envFrom", &container["envFrom"]),
            ("volumeMounts", &container["volumeMounts"]),
        ] {
            assert_eq!(plain(fields[list].clone()), plain(theirs.clone()), "{list}");
        }
    }
}

#[test]
fn the_definitions_fit_into_an_api_server_with_room_to_spare() {
    for definition in definitions() {
        let size = definition.to_string().len();
        assert!(size < 500_000, "{size} bytes");
    }
}
