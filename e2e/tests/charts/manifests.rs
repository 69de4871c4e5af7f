//! The manifests in deploy for whoever has no helm: rendered from the charts, never written by hand.

use std::path::Path;

use e2e::Helm;
use e2e::binaries::workspace;
use e2e::helm::chart;
use serde_json::{Value, json};

use crate::{hold, values};

/// Which of the documents that a chart makes stand in a file.
enum Part {
    /// All but NetworkPolicies: which port an API server has is not known here.
    Install,
    /// NetworkPolicies alone.
    NetworkPolicies,
    /// What this template makes.
    Template(&'static str),
}

impl Part {
    fn holds(&self, document: &str) -> bool {
        let is_network_policy = document.contains("\nkind: NetworkPolicy\n");
        match self {
            Self::Install => !is_network_policy,
            Self::NetworkPolicies => is_network_policy,
            Self::Template(name) => {
                let source = document.lines().next().unwrap_or_default();
                source.ends_with(&format!("/templates/{name}"))
            }
        }
    }
}

/// What is said of helm in an object that helm does not look after.
const OF_HELM: [&str; 2] = ["helm.sh/chart: ", "app.kubernetes.io/managed-by: Helm"];

/// The controllers that are installed, and what else is said.
fn values_with(controllers: &[&str], more: &Value) -> Value {
    let mut values = json!({"crds": {"enabled": false}, "namespace": {"create": true}});
    for controller in [
        "supplychain-controller",
        "delivery-controller",
        "runnable-controller",
        "conventions-controller",
    ] {
        values[controller] = json!({"enabled": controllers.contains(&controller)});
    }
    for (key, more) in more.as_object().unwrap() {
        for (name, value) in more.as_object().unwrap() {
            values[key][name] = value.clone();
        }
    }
    values
}

fn rendered(values: &Value) -> String {
    values::are_up_to_date();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values.to_string()).unwrap();
    let helm = Helm::new().unwrap();
    helm.render_as("carto", &chart("carto"), "carto-system", &file)
        .unwrap()
}

fn manifest(head: &str, values: &Value, part: &Part) -> String {
    let made = rendered(values);
    let documents = made.strip_prefix("---\n").unwrap_or(&made).split("\n---\n");
    let documents = documents.filter(|document| part.holds(document));
    let documents = documents.map(|document| {
        let lines = document.lines();
        let kept = lines.filter(|line| !OF_HELM.iter().any(|said| line.trim().starts_with(said)));
        kept.collect::<Vec<_>>().join("\n").trim().to_owned()
    });
    let documents: Vec<String> = documents.collect();
    assert!(!documents.is_empty());
    let about = "# Made by `make generate` from deploy/charts: change it there.";
    format!("{head}#\n{about}\n---\n{}\n", documents.join("\n---\n"))
}

/// `file` is below deploy.
fn assert_made(file: &str, values: &Value, part: &Part) {
    let heads = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts/heads");
    let head = heads.join(file.replace('/', "-")).with_extension("txt");
    let shown = head.display().to_string();
    let head = std::fs::read_to_string(&head).unwrap_or_else(|error| panic!("{shown}: {error}"));
    hold(
        &workspace().join("deploy").join(file),
        &manifest(&head, values, part),
    );
}

const STAMPING: [&str; 3] = [
    "supplychain-controller",
    "delivery-controller",
    "runnable-controller",
];
const CONVENTIONS: &str = "conventions-controller";

#[test]
fn the_controllers_that_stamp_are_installed_by_what_the_charts_make() {
    let values = values_with(&STAMPING, &json!({}));
    assert_made("install.yaml", &values, &Part::Install);
}

#[test]
fn the_conventions_controller_is_installed_by_what_the_charts_make() {
    let values = values_with(&[CONVENTIONS], &json!({}));
    assert_made("conventions/install.yaml", &values, &Part::Install);
}

#[test]
fn network_policies_are_what_the_charts_make() {
    let all = [STAMPING.as_slice(), &[CONVENTIONS]].concat();
    let values = values_with(&all, &json!({}));
    assert_made(
        "optional/network-policies.yaml",
        &values,
        &Part::NetworkPolicies,
    );
}

#[test]
fn what_pod_presets_need_besides_is_what_the_charts_make() {
    let presets = json!({"enabled": true, "reportStalePods": true, "restartsPerMinute": 1});
    let values = values_with(
        &[CONVENTIONS],
        &json!({CONVENTIONS: {"podPresets": presets}}),
    );
    for name in ["pod-presets.yaml", "stale-report.yaml", "restart.yaml"] {
        let file = format!("conventions/{name}");
        assert_made(&file, &values, &Part::Template(name));
    }
}
