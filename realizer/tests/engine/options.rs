//! Template options and pass-through (docs/behaviour/selection.md#options,
//! docs/behaviour/selection.md#pass-through).

use serde_json::{Value, json};

use crate::scenario::Scenario;

const CHAIN: &str = "
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
    spec: {url: $(workload.spec.source.git.url)$, rev: main}
---
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: test}
spec:
  urlPath: .spec.url
  revisionPath: .spec.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: tested}
    spec: {url: $(source.url)$/tested, rev: $(source.revision)$}
---
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: scan}
spec:
  urlPath: .spec.url
  revisionPath: .spec.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: scanned}
    spec: {url: $(source.url)$/scanned, rev: $(source.revision)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - name: check
    sources: [{name: code, resource: fetch}]
    templateRef:
      kind: ClusterSourceTemplate
      options:
      - {name: test, selector: {matchLabels: {check: test}}}
      - {name: scan, selector: {matchFields: [{key: spec.image, operator: Exists}]}}
      - {passThrough: code, selector: {matchExpressions: [{key: check, operator: DoesNotExist}], matchFields: [{key: spec.image, operator: DoesNotExist}]}}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web, check: test}}
spec: {source: {git: {url: u}}}
";

#[test]
fn the_matching_option_stamps_and_is_named_in_label_and_status() {
    let mut scenario = Scenario::new(CHAIN);
    assert_eq!(scenario.reconcile().reason, "Ready");
    assert_eq!(scenario.entry("check")["templateRef"]["name"], "test");
    let labels = &scenario.cluster.object("tested")["metadata"]["labels"];
    assert_eq!(
        labels["carto.run/cluster-template-name"], "test",
        "upstream leaves it empty"
    );
}

#[test]
fn options_that_match_equally_are_all_named() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.owner["spec"]["image"] = json!("i");
    let outcome = scenario.reconcile();
    assert_eq!(
        scenario.step_condition("check", "ResourceSubmitted"),
        "False/TemplateOptionsMatchError/get template name from resource: find matching template option: \
         expected exactly 1 option to match, found [2] matching options [test, scan] for \
         resource [check] in supply chain [chain]"
    );
    assert_eq!(
        scenario.owner_condition("Ready").split('/').nth(1),
        Some("TemplateOptionsMatchError")
    );
    assert_eq!(outcome.retry, realizer::Retry::AwaitChange);
    assert_eq!(
        scenario.entry("check")["inputs"],
        json!([{"name": "fetch"}])
    );
    assert_eq!(
        scenario.entry("check").get("templateRef"),
        None,
        "no template was found"
    );
    assert_eq!(scenario.step_condition("check", "Healthy"), "absent");
}

#[test]
fn no_matching_option_is_reported_without_a_list() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.owner["metadata"]["labels"]["check"] = json!("other");
    scenario.advance();
    assert_eq!(
        scenario.step_condition("check", "ResourceSubmitted"),
        "False/TemplateOptionsMatchError/get template name from resource: find matching template option: \
         expected exactly 1 option to match, found [0] matching options for resource \
         [check] in supply chain [chain]"
    );
}

/// As the Go controller's: nothing was stamped, and the entry is what it was all the same.
#[test]
fn an_entry_that_names_a_template_keeps_it_when_no_option_matches_any_more() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.owner["metadata"]["labels"]["check"] = json!("test");
    scenario.owner["spec"]["source"] = json!({});
    scenario.advance();
    let before = scenario.entry("check").clone();
    assert_eq!(before["templateRef"]["name"], "test");
    assert_eq!(before.get("stampedRef"), None, "its input is not there");
    scenario.owner["metadata"]["labels"]["check"] = json!("other");
    scenario.advance();
    assert!(
        scenario
            .step_condition("check", "ResourceSubmitted")
            .starts_with("False/TemplateOptionsMatchError/")
    );
    for field in ["templateRef", "inputs"] {
        assert_eq!(scenario.entry("check")[field], before[field], "{field}");
    }
    assert_eq!(
        scenario.step_condition("check", "Healthy"),
        "Unknown/OutputNotAvailable/"
    );
}

#[test]
fn an_option_that_cannot_be_evaluated_is_named() {
    let mut scenario = Scenario::new(&CHAIN.replace(
        "key: spec.image, operator: Exists",
        "key: 'spec.env[3]', operator: Exists",
    ));
    scenario.advance();
    let condition = scenario.step_condition("check", "ResourceSubmitted");
    assert!(
        condition.starts_with(
            "False/ResolveTemplateOptionsError/get template name from resource: find matching template option: \
             error matching against template option [scan] for resource [check] in \
             supply chain [chain]: failed to evaluate selector matchFields: unable to match field requirement with key \
             [spec.env[3]] operator [Exists] values [[]]: "
        ),
        "{condition}"
    );
}

fn passing_through() -> Scenario {
    let mut scenario = Scenario::new(CHAIN);
    scenario.owner["metadata"]["labels"] = json!({"type": "web"});
    scenario
}

#[test]
fn pass_through_hands_the_input_on_and_stamps_nothing() {
    let mut scenario = passing_through();
    let outcome = scenario.reconcile();
    let entry = scenario.entry("check");
    assert_eq!(entry.get("stampedRef"), None);
    assert_eq!(entry.get("templateRef"), None);
    assert_eq!(entry["outputs"][0]["preview"], "u\n");
    assert_eq!(
        scenario.step_condition("check", "ResourceSubmitted"),
        "True/PassThrough/"
    );
    assert_eq!(scenario.step_condition("check", "Healthy"), "absent");
    assert_eq!(scenario.step_condition("check", "Ready"), "True/Ready/");
    assert_eq!(
        scenario.owner_condition("ResourcesHealthy"),
        "True/HealthyConditionRule/"
    );
    assert_eq!(scenario.cluster.names(), ["src"]);
    let told: Vec<_> = outcome
        .events
        .iter()
        .map(|event| event.message.as_str())
        .collect();
    assert!(
        told.contains(&"[check] passed through a new output"),
        "{told:?}"
    );
}

#[test]
fn passed_through_outputs_follow_the_input() {
    let mut scenario = passing_through();
    scenario.advance();
    scenario.owner["spec"]["source"]["git"]["url"] = json!("other");
    scenario.advance();
    assert_eq!(
        scenario.entry("check")["outputs"][0]["preview"],
        "other\n",
        "upstream keeps the first one for ever"
    );
    assert!(!scenario.reconcile().changed);
}

#[test]
fn a_step_that_passes_through_now_gives_up_its_object() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["src", "tested"]);
    scenario.owner["metadata"]["labels"] = json!({"type": "web"});
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["src"]);
    assert_eq!(scenario.entry("check").get("stampedRef"), None);
}

#[test]
fn a_pass_through_whose_input_is_not_there_waits() {
    let mut scenario = passing_through();
    scenario.owner["spec"] = json!({});
    let outcome = scenario.reconcile();
    assert_eq!(
        scenario.step_condition("check", "ResourceSubmitted"),
        "Unknown/PassThrough/unable to find passthrough [code] in []"
    );
    assert_eq!(
        scenario.entry("check")["inputs"],
        json!([{"name": "fetch"}])
    );
    assert_eq!(
        scenario.owner_condition("SupplyChainReady"),
        "True/Ready/",
        "one condition of a type"
    );
    assert_eq!(outcome.retry, realizer::Retry::AwaitChange);
}

#[test]
fn a_pass_through_of_something_undeclared_has_to_be_fixed() {
    let mut scenario = Scenario::new(&CHAIN.replace("passThrough: code", "passThrough: image"));
    scenario.owner["metadata"]["labels"] = json!({"type": "web"});
    scenario.advance();
    assert_eq!(
        scenario.step_condition("check", "ResourceSubmitted"),
        "False/PassThrough/unable to find passthrough [image] in []"
    );
}

#[test]
fn switching_options_replaces_the_object() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    scenario.owner["metadata"]["labels"]["check"] = json!("none");
    scenario.owner["spec"]["image"] = json!("i");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["src", "scanned"]);
    let stamped: &Value = &scenario.entry("check")["stampedRef"]["name"];
    assert_eq!(stamped, "scanned");
}
