//! The CRDs: the files are what the code says, all of the Go controller's schemas fit into ours, and the Rust types
//! hold exactly what the schemas allow.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod contract;
mod facts;
mod sample;
mod types;
mod upstream;
#[path = "../../examples/generate-crds/yaml.rs"]
mod yaml;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/crds")
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the switch that rewrites golden files is an environment variable everywhere"
)]
fn files_in_deploy_are_what_the_code_generates() {
    let mut expected = BTreeSet::new();
    for crd in api_types::crds() {
        let file = directory().join(yaml::file_name(&crd));
        let text = yaml::render(&crd).unwrap();
        if std::env::var("UPDATE_GOLDEN").is_ok_and(|update| update == "1") {
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            text,
            "{} is stale: UPDATE_GOLDEN=1",
            file.display()
        );
        expected.insert(yaml::file_name(&crd));
    }
    let found: BTreeSet<String> = std::fs::read_dir(directory())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("carto.run_"))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn files_read_back_as_the_same_definitions() {
    for crd in api_types::crds() {
        let text = std::fs::read_to_string(directory().join(yaml::file_name(&crd))).unwrap();
        let read: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
        let written: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition =
            serde_json::from_value(read).unwrap();
        assert_eq!(written, crd);
    }
}
