//! No Secret value in a status, event or message.

use realizer::{SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::scenario::Scenario;

const CHAIN: &str = "
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: secret}
spec:
  configPath: .data.token
  healthRule:
    multiMatch:
      healthy: {matchFields: [{key: data.token, operator: Exists, messagePath: .data.token}]}
      unhealthy: {matchFields: [{key: data.broken, operator: Exists}]}
  template:
    apiVersion: v1
    kind: Secret
    metadata: {name: token}
    data: {token: $(workload.spec.image)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: use}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: use}
    data: {token: $(config)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: make, templateRef: {kind: ClusterConfigTemplate, name: secret}}
  - name: pass
    templateRef:
      kind: ClusterConfigTemplate
      options:
      - {passThrough: token, selector: {matchLabels: {type: web}}}
      - {name: secret, selector: {matchLabels: {type: other}}}
    configs: [{name: token, resource: make}]
  - name: use
    templateRef: {kind: ClusterTemplate, name: use}
    configs: [{name: token, resource: pass}]
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: hunter2-hunter2}
";

fn told(scenario: &Scenario, outcome: &realizer::Outcome) -> String {
    format!(
        "{} {:?} {:?}",
        scenario.owner["status"], outcome.events, outcome.reason
    )
}

#[test]
fn the_value_flows_but_is_never_shown() {
    let mut scenario = Scenario::new(CHAIN);
    let outcome = scenario.reconcile();
    assert_eq!(outcome.reason, "Ready");
    assert_eq!(
        scenario.cluster.object("use")["data"]["token"],
        "hunter2-hunter2"
    );
    assert!(
        !told(&scenario, &outcome).contains("hunter2"),
        "{}",
        told(&scenario, &outcome)
    );
    for step in ["make", "pass"] {
        assert_eq!(
            scenario.entry(step)["outputs"][0]["preview"],
            "<redacted>",
            "{step}"
        );
    }
    assert_eq!(
        scenario.step_condition("make", "Healthy"),
        "True/MatchedField/field value: <redacted>, message: <redacted>"
    );
}

#[test]
fn the_digest_is_keyed_by_the_owner() {
    let digest = |uid: &str| {
        let mut scenario = Scenario::new(CHAIN);
        scenario.owner["metadata"]["uid"] = json!(uid);
        scenario.advance();
        scenario.entry("make")["outputs"][0]["digest"].clone()
    };
    assert_eq!(digest("one"), digest("one"));
    assert_ne!(digest("one"), digest("two"));
}

#[test]
fn a_changed_secret_is_told_as_a_new_output() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    scenario.owner["spec"]["image"] = json!("hunter3-hunter3");
    let outcome = scenario.reconcile();
    let messages: Vec<_> = outcome
        .events
        .iter()
        .map(|event| event.message.as_str())
        .collect();
    assert!(
        messages.contains(&"[make] found a new output in [secrets/token]"),
        "{messages:?}"
    );
    assert!(!told(&scenario, &outcome).contains("hunter"));
}

#[test]
fn what_the_api_server_or_ytt_quotes_is_taken_out() {
    let mut scenario = Scenario::new(CHAIN);
    let failure = SubmitFailure {
        kind: SubmitFailureKind::Rejected,
        message: "create: ConfigMap \"use\" is invalid: data: Invalid value: \"hunter2-hunter2\""
            .to_owned(),
    };
    scenario.cluster.failing.insert("use".to_owned(), failure);
    let outcome = scenario.reconcile();
    assert!(!told(&scenario, &outcome).contains("hunter2"));
    assert!(
        scenario
            .step_condition("use", "ResourceSubmitted")
            .ends_with("Invalid value: \"<redacted>\"")
    );

    let mut scenario = Scenario::new(&CHAIN.replace(
        "  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: use}
    data: {token: $(config)$}",
        "  ytt: 'x'",
    ));
    scenario.cluster.ytt.insert(
        "use".to_owned(),
        Err("ytt: Error: | token: hunter2-hunter2".to_owned().into()),
    );
    let outcome = scenario.reconcile();
    assert!(!told(&scenario, &outcome).contains("hunter2"));
    assert!(
        scenario
            .step_condition("use", "ResourceSubmitted")
            .ends_with("ytt: Error: | token: <redacted>")
    );
}

#[test]
fn a_custom_kind_called_secret_is_no_secret() {
    let mut scenario = Scenario::new(&CHAIN.replace(
        "apiVersion: v1\n    kind: Secret",
        "apiVersion: x.io/v1\n    kind: Secret",
    ));
    scenario.advance();
    let preview: &Value = &scenario.entry("make")["outputs"][0]["preview"];
    assert_eq!(preview, "hunter2-hunter2\n");
}
