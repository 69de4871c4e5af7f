//! What helm makes of values, and what it says of the charts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use e2e::Helm;
use e2e::helm::{cases, chart};
use serde_json::Value;
use test_support::documents;

use crate::{charts, rewrites};

fn rendered(values: &Path) -> String {
    let helm = Helm::new().unwrap();
    helm.render(&chart("convention-webhook"), "platform", values)
        .unwrap()
}

#[test]
fn values_make_these_manifests() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts/golden");
    let cases = cases().unwrap();
    assert!(cases.len() > 3);
    for case in &cases {
        let file = golden.join(case.file_name().unwrap());
        let made = rendered(case);
        if rewrites() {
            fs::write(&file, made).unwrap();
            continue;
        }
        let expected = fs::read_to_string(&file).unwrap();
        assert_eq!(
            made,
            expected,
            "{}: UPDATE_GOLDEN=1 writes it",
            file.display()
        );
    }
    let files = fs::read_dir(&golden).unwrap();
    assert_eq!(files.count(), cases.len(), "a golden file is left over");
}

#[test]
fn helm_has_nothing_to_say_against_a_chart() {
    let helm = Helm::new().unwrap();
    for chart in charts() {
        for values in cases().unwrap() {
            let lint = ["lint".as_ref(), "--strict".as_ref(), chart.as_os_str()];
            let values = ["--values".as_ref(), values.as_os_str()];
            let told = helm.tell(lint.into_iter().chain(values)).unwrap();
            assert!(!told.contains("[WARNING]"), "{told}");
        }
    }
}

/// Helm takes a key that is there twice for the last one, and an API server does not.
#[test]
fn no_object_is_made_twice_and_no_label_of_the_user_goes_before_ours() {
    for case in cases().unwrap() {
        let mut seen = BTreeSet::new();
        for object in documents(&rendered(&case)).unwrap() {
            let metadata = &object["metadata"];
            let key = format!("{} {}", object["kind"], metadata["name"]);
            assert!(seen.insert(key), "{object}");
            let name = &metadata["labels"]["app.kubernetes.io/name"];
            assert_ne!(name, &Value::from("not-ours"), "{object}");
        }
        assert!(seen.len() > 2, "{seen:?}");
    }
}

/// What `carto convention new` writes says nothing that the chart would have had anyway.
#[test]
fn the_values_of_a_scaffold_are_for_this_chart() {
    let folder = tempfile::tempdir().unwrap();
    let made = cli::scaffold::scaffold("time-zone", folder.path(), None).unwrap();
    let values = made.join("values.yaml");
    let text = fs::read_to_string(&values).unwrap();
    let named = text.replace("REGISTRY", "registry.example.com");
    assert_ne!(named, text);
    fs::write(&values, named).unwrap();
    let defaults = chart("../../e2e/tests/charts/cases/defaults.yaml");
    assert_eq!(rendered(&values), rendered(&defaults));
}

/// A chart that is a part of another one is told `global` besides.
#[test]
fn values_of_a_chart_around_it_are_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let values = folder.path().join("values.yaml");
    let text = "{image: {repository: a, tag: b}, global: {any: thing}}";
    fs::write(&values, text).unwrap();
    assert!(rendered(&values).contains("image: \"a:b\""));
}
