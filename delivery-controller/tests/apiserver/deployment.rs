//! When a deployment is done, and what it hands on then (docs/behaviour/deployments.md#rules).

use serde_json::{Value, json};
use test_support::Stage;

use crate::stage::{
    DELIVERABLE, NOTHING, SOURCE, condition, delivery, open, says, set, sink, step, sunk,
};

const DEPLOYMENT: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterDeploymentTemplate
metadata: {name: deploy}
spec:
  RULES
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(deliverable.metadata.name)$-deployment}
    spec: {value: {url: $(deployment.url)$, rev: $(deployment.revision)$, want: {a: [1, {b: x}]}}}
---
";
const COMPLETION: &str = r#"observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Succeeded")].status', value: "True"}
    failed: {key: '.status.conditions[?(@.type=="Failed")].status', value: "True"}"#;
const MATCHES: &str = "observedMatches:
    - {input: spec.value.want, output: status.have}
    - {input: spec.value.rev, output: status.rev}";
const STEPS: &str = "    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
    - name: deploy
      templateRef: {kind: ClusterDeploymentTemplate, name: deploy}
      deployment: {resource: fetch}
    - name: publish
      templateRef: {kind: ClusterTemplate, name: sink}
      sources: [{resource: deploy, name: deployed}]";

fn deployment(rules: &str) -> String {
    DEPLOYMENT.replace("RULES", rules)
}

fn with_rules(rules: &str) -> String {
    let sink = sink("$(sources.deployed.revision)$");
    [SOURCE, &deployment(rules), &sink, &delivery(STEPS)].concat()
}

/// Source, deployment, and a sink that takes the deployment as its source.
pub(crate) fn with_completion() -> String {
    with_rules(COMPLETION)
}

/// The status of a deployment that was done with this generation.
pub(crate) fn done(generation: i64, succeeded: &str) -> Value {
    json!({"observedGeneration": generation, "conditions": [{"type": "Succeeded", "status": succeeded}]})
}

/// As the owner's condition says it, and the step's with its own type.
async fn deploy_says(stage: &Stage, status: &str, reason: &str, message: &str) -> Value {
    let owner = says(stage, "ResourcesSubmitted", status, reason, message).await;
    let entry = step(&owner, "deploy");
    let submitted = condition(&entry, "ResourceSubmitted");
    assert_eq!(
        (
            &submitted["status"],
            &submitted["reason"],
            &submitted["message"]
        ),
        (&json!(status), &json!(reason), &json!(message))
    );
    assert_eq!(condition(&entry, "ResourcesSubmitted"), Value::Null);
    owner
}

async fn set_revision(stage: &Stage, revision: &str) {
    let params = json!({"spec": {"params": [{"name": "rev", "value": revision}]}});
    stage.edit_owner("app", params).await;
}

#[tokio::test]
async fn a_deployment_hands_its_source_on_when_its_object_says_that_it_is_done() {
    let stage = open().await;
    stage.apply(&with_completion()).await;
    stage.apply(DELIVERABLE).await;
    let submitted = deploy_says(
        &stage,
        "False",
        "TemplateStampFailure",
        "resource [deploy] cannot satisfy observedCompletion without observedGeneration in object status",
    )
    .await;
    let entry = step(&submitted, "deploy");
    assert_eq!(entry["stampedRef"]["name"], "app-deployment");
    assert_eq!(entry["inputs"], json!([{"name": "fetch"}]));
    assert_eq!(entry["outputs"], Value::Null);

    stage.report("app-deployment", done(0, "True")).await;
    let behind = "resource [deploy] condition not met: status.observedGeneration does not equal metadata.generation: 0 != 1";
    deploy_says(&stage, "Unknown", "ConditionNotMet", behind).await;
    stage
        .report("app-deployment", json!({"observedGeneration": 1}))
        .await;
    stage
        .until("app", "the success condition is missing", |owner| {
            let condition = condition(&owner["status"], "ResourcesSubmitted");
            let message = condition["message"].as_str().unwrap_or_default();
            condition["reason"] == "ConditionNotMet"
                && message.contains("failed to evaluate succeededCondition.Key")
        })
        .await;
    stage.report("app-deployment", done(1, "False")).await;
    let path = r#".status.conditions[?(@.type=="Succeeded")].status"#;
    let not_yet = format!(
        "resource [deploy] condition not met: deployment success condition [{path}] was: False, expected: True"
    );
    deploy_says(&stage, "Unknown", "ConditionNotMet", &not_yet).await;
    assert_eq!(stage.get("v1", "ConfigMap", "app-sink").await, None);

    stage.report("app-deployment", done(1, "True")).await;
    let ready = stage.ready("app", "True", "Ready").await;
    let outputs = &step(&ready, "deploy")["outputs"];
    assert_eq!(outputs[0]["name"], "url");
    assert_eq!(outputs[0]["preview"], "https://git.example/app\n");
    assert_eq!(outputs[1]["name"], "revision");
    assert_eq!(outputs[1]["preview"], "main\n");
    sunk(&stage, "app", "main").await;

    // Failed wins over succeeded; what was handed on before stays.
    let both = json!({"observedGeneration": 1, "conditions": [
        {"type": "Succeeded", "status": "True"}, {"type": "Failed", "status": "True"}]});
    stage.report("app-deployment", both).await;
    let path = r#".status.conditions[?(@.type=="Failed")].status"#;
    let failed = format!(
        "resource [deploy] failed condition met: deployment failure condition [{path}] was: True"
    );
    deploy_says(&stage, "False", "FailedConditionMet", &failed).await;
    sunk(&stage, "app", "main").await;
}

#[tokio::test]
async fn a_new_revision_is_handed_on_only_when_the_deployment_has_caught_up() {
    let stage = open().await;
    stage.apply(&with_completion()).await;
    stage.apply(DELIVERABLE).await;
    stage
        .until("app", "the deployment is stamped", |owner| {
            !step(owner, "deploy")["stampedRef"].is_null()
        })
        .await;
    stage.report("app-deployment", done(1, "True")).await;
    sunk(&stage, "app", "main").await;

    set_revision(&stage, "v2").await;
    let behind = "resource [deploy] condition not met: status.observedGeneration does not equal metadata.generation: 1 != 2";
    deploy_says(&stage, "Unknown", "ConditionNotMet", behind).await;
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
    sunk(&stage, "app", "main").await;

    stage.report("app-deployment", done(2, "True")).await;
    stage.ready("app", "True", "Ready").await;
    sunk(&stage, "app", "v2").await;
}

/// Comparing two maps killed the Go controller.
#[tokio::test]
async fn maps_that_are_to_match_are_compared_as_a_whole() {
    let stage = open().await;
    stage.apply(&with_rules(MATCHES)).await;
    stage.apply(DELIVERABLE).await;
    let absent = |owner: &Value| {
        let message = condition(&owner["status"], "ResourcesSubmitted")["message"].clone();
        let message = message.as_str().unwrap_or_default();
        message.starts_with(
            "resource [deploy] condition not met: could not find value on output [status.have]: ",
        )
    };
    stage.until("app", "the output is missing", absent).await;
    let nearly = json!({"have": {"a": [1, {"b": "y"}]}, "rev": "main"});
    stage.report("app-deployment", nearly).await;
    let differ = "resource [deploy] condition not met: input [spec.value.want] and output [status.have] do not match: \
        map[a:[1 map[b:x]]] != map[a:[1 map[b:y]]]";
    deploy_says(&stage, "Unknown", "ConditionNotMet", differ).await;
    let stale = json!({"have": {"a": [1, {"b": "x"}]}, "rev": "old"});
    stage.report("app-deployment", stale).await;
    let differ = "resource [deploy] condition not met: input [spec.value.rev] and output [status.rev] do not match: main != old";
    deploy_says(&stage, "Unknown", "ConditionNotMet", differ).await;
    let equal = json!({"have": {"a": [1, {"b": "x"}]}, "rev": "main"});
    stage.report("app-deployment", equal).await;
    stage.ready("app", "True", "Ready").await;
    sunk(&stage, "app", "main").await;
    let panics = stage.metric("carto_reconcile_panics_total", &[]).await;
    assert_eq!(panics, Some(0.0));
}

#[tokio::test]
async fn a_deployment_may_follow_another_and_both_pass_the_source_on() {
    let stage = open().await;
    let second = deployment(COMPLETION)
        .replace("metadata: {name: deploy}", "metadata: {name: second}")
        .replace("$-deployment}", "$-second}");
    let steps = STEPS.replace(
        "    - name: publish",
        "    - name: again
      templateRef: {kind: ClusterDeploymentTemplate, name: second}
      deployment: {resource: deploy}
    - name: publish",
    );
    let steps = steps.replace(
        "{resource: deploy, name: deployed}",
        "{resource: again, name: deployed}",
    );
    stage
        .apply(
            &[
                SOURCE,
                &deployment(COMPLETION),
                &second,
                &sink("$(source.url)$@$(source.revision)$"),
                &delivery(&steps),
            ]
            .concat(),
        )
        .await;
    stage.apply(DELIVERABLE).await;
    stage
        .until("app", "the first is stamped", |owner| {
            !step(owner, "deploy")["stampedRef"].is_null()
        })
        .await;
    assert_eq!(
        stage.get("test.run/v1alpha1", "Test", "app-second").await,
        None
    );
    stage.report("app-deployment", done(1, "True")).await;
    let owner = stage
        .until("app", "the second is stamped", |owner| {
            !step(owner, "again")["stampedRef"].is_null()
        })
        .await;
    assert_eq!(step(&owner, "again")["inputs"], json!([{"name": "deploy"}]));
    let stamped = stage.get("test.run/v1alpha1", "Test", "app-second").await;
    assert_eq!(stamped.unwrap()["spec"]["value"]["rev"], "main");
    stage.report("app-second", done(1, "True")).await;
    stage.ready("app", "True", "Ready").await;
    sunk(&stage, "app", "https://git.example/app@main").await;
}

/// What the webhook refuses and upstream realizes all the same: no rule means done, and any template may take a deployment.
#[tokio::test]
async fn without_a_rule_a_deployment_is_done_at_once_and_a_plain_template_may_take_it() {
    let mut stage = set().await;
    let steps = STEPS.replace(
        "sources: [{resource: deploy, name: deployed}]",
        "deployment: {resource: deploy}",
    );
    stage
        .apply(
            &[
                SOURCE,
                &deployment(""),
                &sink("$(deployment.revision)$"),
                &delivery(&steps),
            ]
            .concat(),
        )
        .await;
    stage.apply(DELIVERABLE).await;
    stage.start_controller();
    let ready = stage.ready("app", "True", "Ready").await;
    sunk(&stage, "app", "main").await;
    assert_eq!(
        step(&ready, "publish")["inputs"],
        json!([{"name": "deploy"}])
    );
}
