//! No Secret value in a status, event or message.

use realizer::{StatusKey, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::validation::{check, push, run};

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

fn digest_of_make(scenario: &Scenario) -> Value {
    scenario.entry("make")["outputs"][0]["digest"].clone()
}

#[test]
fn the_digest_is_keyed_by_the_installation_and_by_nothing_that_people_can_read() {
    let digest = |uid: &str, key: StatusKey| {
        let mut scenario = Scenario::new(CHAIN);
        scenario.owner["metadata"]["uid"] = json!(uid);
        scenario.key = key;
        scenario.advance();
        digest_of_make(&scenario)
    };
    let key = |text: &str| StatusKey::new(text.as_bytes());
    assert_eq!(digest("one", key("k")), digest("two", key("k")));
    assert_ne!(digest("one", key("k")), digest("one", key("another")));
    assert_eq!(digest("one", StatusKey::NONE), "");
}

#[test]
fn another_key_changes_digests_once() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    let before = digest_of_make(&scenario);
    assert!(!scenario.reconcile().changed);
    scenario.key = StatusKey::new(b"another");
    assert!(scenario.reconcile().changed);
    assert_ne!(digest_of_make(&scenario), before);
    assert!(!scenario.reconcile().changed);
    scenario.key = StatusKey::NONE;
    assert!(scenario.reconcile().changed);
    assert!(!scenario.reconcile().changed, "no time moves without a key");
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

/// Secret -> ConfigMap -> ConfigMap -> ConfigMap; each takes more of the former, or less.
const LAUNDRY: &str = "
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: secret}
spec:
  configPath: .data
  template:
    apiVersion: v1
    kind: Secret
    metadata: {name: token}
    data: {token: $(workload.spec.image)$, pin: MTIz}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: copy}
spec:
  configPath: .data
  healthRule:
    multiMatch:
      healthy: {matchFields: [{key: data.url, operator: Exists, messagePath: .data.url}]}
      unhealthy: {matchConditions: [{type: Broken, status: 'True'}]}
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: copy}
    data: {url: 'https://robot:$(config.token)$@host'}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: again}
spec:
  configPath: .data
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: again}
    data: {all: '<$(config)$>'}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: clean}
spec:
  configPath: .data
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: clean}
    data: {nothing: of it}
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: short}
spec:
  configPath: .data
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: short}
    data: {pin: 'pin: 123'}
---
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: decoded}
spec:
  imagePath: .data.image
  ytt: x
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: make, templateRef: {kind: ClusterConfigTemplate, name: secret}}
  - {name: copy, templateRef: {kind: ClusterConfigTemplate, name: copy}, configs: [{name: c, resource: make}]}
  - {name: again, templateRef: {kind: ClusterConfigTemplate, name: again}, configs: [{name: c, resource: copy}]}
  - {name: clean, templateRef: {kind: ClusterConfigTemplate, name: clean}, configs: [{name: c, resource: again}]}
  - {name: short, templateRef: {kind: ClusterConfigTemplate, name: short}, configs: [{name: c, resource: make}]}
  - {name: decoded, templateRef: {kind: ClusterImageTemplate, name: decoded}, configs: [{name: c, resource: make}]}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: aHVudGVyMi1odW50ZXIy}
";

fn laundry() -> Scenario {
    let mut scenario = Scenario::new(LAUNDRY);
    let rendered = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "decoded"},
        "data": {"image": "registry/hunter2-hunter2"}});
    scenario
        .cluster
        .ytt
        .insert("decoded".to_owned(), Ok(rendered));
    scenario
}

fn previews(scenario: &Scenario) -> Vec<String> {
    let resources = scenario.owner["status"]["resources"].as_array().unwrap();
    let shown = |entry: &Value| format!("{}: {}", entry["name"], entry["outputs"][0]["preview"]);
    resources
        .iter()
        .map(|entry| shown(entry).replace('"', ""))
        .collect()
}

#[test]
fn a_value_stays_secret_through_every_step_that_embeds_it() {
    let mut scenario = laundry();
    let outcome = scenario.reconcile();
    assert_eq!(outcome.reason, "Ready");
    assert_eq!(
        previews(&scenario),
        [
            "make: <redacted>",
            "copy: <redacted>",
            "again: <redacted>",
            "clean: nothing: of it\\n",
            "short: <redacted>",
            "decoded: <redacted>",
        ]
    );
    let url = "https://robot:aHVudGVyMi1odW50ZXIy@host";
    assert_eq!(scenario.cluster.object("copy")["data"]["url"], url);
    let told = told(&scenario, &outcome);
    for secret in ["hunter2", "aHVudGVyMi"] {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
    assert_eq!(
        scenario.step_condition("copy", "Healthy"),
        "True/MatchedField/field value: https://robot:<redacted>@host, message: https://robot:<redacted>@host"
    );
}

#[test]
fn what_an_object_says_of_itself_is_told_without_the_secret_of_its_inputs() {
    let mut scenario = laundry();
    scenario.advance();
    scenario.cluster.object("copy")["status"] = json!({"conditions": [
        {"type": "Broken", "status": "True", "message": "cannot log in with \"hunter2-hunter2\""}]});
    let outcome = scenario.reconcile();
    assert_eq!(
        scenario.step_condition("copy", "Healthy"),
        "False/MatchedCondition/condition status: True, message: cannot log in with \"<redacted>\""
    );
    assert!(!told(&scenario, &outcome).contains("hunter2"));
}

#[test]
fn an_object_that_lags_behind_a_changed_secret_shows_neither_value() {
    let mut scenario = Scenario::new(&LAUNDRY.replace(
        "configPath: .data\n  healthRule",
        "configPath: .status.copied\n  healthRule",
    ));
    scenario.advance();
    scenario.cluster.object("copy")["status"] = json!({"copied": "aHVudGVyMi1odW50ZXIy"});
    scenario.advance();
    assert_eq!(
        scenario.entry("copy")["outputs"][0]["preview"],
        "<redacted>"
    );
    scenario.owner["spec"]["image"] = json!("b3RoZXItdmFsdWU=");
    let outcome = scenario.reconcile();
    assert_eq!(
        scenario.entry("copy")["outputs"][0]["preview"],
        "<redacted>"
    );
    assert!(!told(&scenario, &outcome).contains("aHVudGVyMi"));
}

#[test]
fn names_of_runs_confirm_no_guess() {
    let immutable = LAUNDRY.replace(
        "metadata: {name: copy}\nspec:\n  configPath",
        "metadata: {name: copy}\nspec:\n  lifecycle: immutable\n  configPath",
    );
    let seed = |key: StatusKey| {
        let mut scenario = Scenario::new(&immutable);
        scenario.key = key;
        scenario.advance();
        scenario.cluster.seeds["copy"].clone()
    };
    let key = |text: &str| StatusKey::new(text.as_bytes());
    assert_eq!(seed(key("one")), seed(key("one")));
    assert_ne!(seed(key("one")), seed(key("two")));
    assert_eq!(seed(StatusKey::NONE).as_deref(), Some(""));
    let mut scenario = Scenario::new(&immutable);
    scenario.advance();
    assert!(scenario.cluster.seeds["make"].is_some(), "a Secret");
    assert!(
        scenario.cluster.seeds["clean"].is_some(),
        "what goes in is secret"
    );
}

/// A delivery whose revision is read from a Secret.
const DELIVERY: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: src}
spec:
  urlPath: .data.url
  revisionPath: .data.rev
  template:
    apiVersion: v1
    kind: Secret
    metadata: {name: src}
    data: {url: canary-url, rev: $(deliverable.spec.source.git.ref.branch)$}
---
kind: ClusterDeploymentTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: deploy}
spec:
  observedMatches: [{input: .spec.revision, output: .status.revision}]
  template:
    apiVersion: test.run/v1alpha1
    kind: App
    metadata: {name: app}
    spec: {revision: $(deployment.revision)$}
---
kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {name: delivery}
spec:
  selector: {app: web}
  resources:
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - name: deployer
    templateRef: {kind: ClusterDeploymentTemplate, name: deploy}
    deployment: {resource: fetch}
  - name: tester
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: test}
    deployment: {resource: deployer}
  - name: checker
    templateRef: {kind: ClusterDeploymentValidationTemplate, name: check}
    deployment: {resource: tester}
  - name: promoter
    templateRef: {kind: ClusterTemplate, name: promote}
    sources: [{name: source, resource: checker}]
";

fn delivery() -> Scenario {
    let mut scenario = Scenario::new(&format!("{}{DELIVERY}", crate::validation::TEMPLATES));
    push(&mut scenario, "canary-A");
    scenario
}

fn deployed(scenario: &mut Scenario) {
    let revision = scenario.cluster.object("app")["spec"]["revision"].clone();
    scenario.cluster.object("app")["status"] = json!({"revision": revision});
}

fn walk(scenario: &mut Scenario) {
    let outcome = scenario.reconcile();
    let told = told(scenario, &outcome);
    assert!(!told.contains("canary"), "{told}");
    for object in scenario.cluster.objects() {
        let annotations = object["metadata"]["annotations"].to_string();
        assert!(!annotations.contains("canary"), "{annotations}");
    }
}

/// It is announced first.
fn arrive(scenario: &mut Scenario) {
    walk(scenario);
    walk(scenario);
}

#[test]
fn a_secret_revision_is_deployed_validated_and_promoted_without_being_told() {
    let mut scenario = delivery();
    arrive(&mut scenario);
    scenario.cluster.object("app")["status"] = json!({"revision": "older"});
    walk(&mut scenario);
    assert_eq!(
        scenario.step_condition("deployer", "ResourceSubmitted"),
        "Unknown/ConditionNotMet/resource [deployer] condition not met: input [.spec.revision] and output \
         [.status.revision] do not match: <redacted> != <redacted>"
    );
    deployed(&mut scenario);
    walk(&mut scenario);
    assert!(scenario.cluster.names().contains(&"run-1"));

    push(&mut scenario, "canary-B");
    walk(&mut scenario);
    let environment = scenario.owner["status"]["environments"][0].clone();
    assert_eq!(environment["deployed"]["revision"], "<redacted>");
    assert_eq!(environment["waiting"]["revision"], "<redacted>");
    assert_eq!(
        scenario.cluster.object("app")["spec"]["revision"],
        "canary-A",
        "it is locked"
    );
    scenario.cluster.object("run-1")["status"] = json!({"conditions": [
        {"type": "Succeeded", "status": "Unknown", "message": "testing \"canary-A\" (Y2FuYXJ5LUE=)"}]});
    walk(&mut scenario);
    assert!(
        scenario
            .step_condition("tester", "Healthy")
            .ends_with("testing \"<redacted>\" (<redacted>)"),
        "what is in the environment is known while something else waits"
    );

    run(&mut scenario, "run-1", "True");
    walk(&mut scenario);
    check(&mut scenario);
    walk(&mut scenario);
    assert_eq!(
        scenario.cluster.object("promoted")["data"]["revision"],
        "canary-A"
    );
    walk(&mut scenario);
    assert_eq!(
        scenario.cluster.object("app")["spec"]["revision"],
        "canary-B"
    );
}

#[test]
fn without_a_key_a_secret_revision_waits_for_one() {
    let mut scenario = delivery();
    scenario.key = StatusKey::NONE;
    walk(&mut scenario);
    assert!(!scenario.cluster.names().contains(&"app"));
    let told = scenario.step_condition("deployer", "ResourceSubmitted");
    assert!(told.contains("the revision comes from a Secret"), "{told}");
    scenario.key = StatusKey::new(b"key");
    arrive(&mut scenario);
    assert!(scenario.cluster.names().contains(&"app"));
}
