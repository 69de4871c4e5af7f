//! What helm makes of values, and what it says of the charts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use e2e::Helm;
use e2e::helm::{cases, chart, charts};
use serde_json::Value;
use test_support::documents;

use crate::{hold, rewrites, values};

const KIND: &str = "\nkind: CustomResourceDefinition\n";

fn rendered(chart: &Path, values: &Path) -> String {
    values::are_up_to_date();
    Helm::new()
        .unwrap()
        .render(chart, "platform", values)
        .unwrap()
}

/// Without what CRDs say of their kinds: that is in the files that the chart takes.
fn shortened(manifests: &str) -> String {
    let documents = manifests.split("\n---\n").map(|document| {
        let end = document
            .find("\nspec:\n")
            .filter(|_| document.contains(KIND));
        end.map_or(document, |end| &document[..end])
    });
    documents.collect::<Vec<_>>().join("\n---\n")
}

#[test]
fn values_make_these_manifests() {
    for chart in charts().unwrap() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts/golden");
        let golden = golden.join(chart.file_name().unwrap());
        if rewrites() {
            fs::create_dir_all(&golden).unwrap();
        }
        let cases = cases(&chart).unwrap();
        assert!(cases.len() > 1, "{}", chart.display());
        for case in &cases {
            let file = golden.join(case.file_name().unwrap());
            hold(&file, &shortened(&rendered(&chart, case)));
        }
        let files = fs::read_dir(&golden).unwrap();
        assert_eq!(files.count(), cases.len(), "a golden file is left over");
    }
}

#[test]
fn helm_has_nothing_to_say_against_a_chart() {
    values::are_up_to_date();
    let helm = Helm::new().unwrap();
    for chart in charts().unwrap() {
        for values in cases(&chart).unwrap() {
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
    for chart in charts().unwrap() {
        for case in cases(&chart).unwrap() {
            let mut seen = BTreeSet::new();
            for object in documents(&rendered(&chart, &case)).unwrap() {
                let metadata = &object["metadata"];
                let key = format!("{} {}", object["kind"], metadata["name"]);
                assert!(seen.insert(key), "{object}");
                let name = &metadata["labels"]["app.kubernetes.io/name"];
                assert_ne!(name, &Value::from("not-ours"), "{object}");
            }
            assert!(seen.len() > 2, "{seen:?}");
        }
    }
}

/// `helm uninstall` takes no owner with it, unless somebody says so.
#[test]
fn crds_outlive_the_release() {
    let chart = chart("crds");
    for (case, kept) in [("defaults", true), ("everything", false)] {
        let case = chart.join(format!("../../../e2e/tests/charts/cases/crds/{case}.yaml"));
        let crds = documents(&rendered(&chart, &case)).unwrap();
        assert!(crds.len() > 4);
        for crd in crds {
            assert_eq!(crd["kind"], "CustomResourceDefinition");
            let policy = &crd["metadata"]["annotations"]["helm.sh/resource-policy"];
            assert_eq!(policy == "keep", kept, "{}", crd["metadata"]);
        }
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
    let chart = chart("convention-webhook");
    let defaults = &cases(&chart).unwrap()[0];
    assert!(defaults.ends_with("defaults.yaml"));
    assert_eq!(rendered(&chart, &values), rendered(&chart, defaults));
}

/// A chart that is a part of another one is told `global` besides.
#[test]
fn values_of_a_chart_around_it_are_let_through() {
    let folder = tempfile::tempdir().unwrap();
    let values = folder.path().join("values.yaml");
    let text = "{image: {repository: a, tag: b}, global: {any: thing}}";
    fs::write(&values, text).unwrap();
    let made = rendered(&chart("convention-webhook"), &values);
    assert!(made.contains("image: \"a:b\""));
    let made = rendered(&chart("runnable-controller"), &values);
    assert!(made.contains("image: \"registry.example.com/carto/a:b\""));
}
