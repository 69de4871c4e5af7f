//! Validations of what is deployed, and the lock of the environment, on a real API server (docs/adr/0006, docs/adr/0011).
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::{Value, json};
use test_support::{Stage, eventually};

use crate::stage::{
    DELIVERABLE, NOTHING, PATIENCE, SOURCE, condition, delivery, open, set, sink, step, sunk,
};

/// The environment; what it takes to be done is that somebody reports the revision that was asked for.
pub(crate) const ENVIRONMENT: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterDeploymentTemplate
metadata: {name: environment}
spec:
  observedMatches: [{input: spec.value.rev, output: status.rev}]
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(deliverable.metadata.name)$-environment}
    spec: {value: {url: $(deployment.url)$, rev: $(deployment.revision)$}}
---
";

/// One object for each arrival.
pub(crate) const INTEGRATION: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterDeploymentValidationTemplate
metadata: {name: integration}
spec:
  timeout: 1h
  lifecycle: immutable
  observedCompletion:
    succeeded: {key: '.status.conditions[?(@.type=="Succeeded")].status', value: "True"}
    failed: {key: '.status.conditions[?(@.type=="Succeeded")].status', value: "False"}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {generateName: $(deliverable.metadata.name)$-integration-}
    spec: {value: {rev: $(deployment.revision)$}}
---
"#;

/// One object for all, that says what it has seen.
const PERFORMANCE: &str = r#"
apiVersion: carto.run/v1alpha1
kind: ClusterDeploymentValidationTemplate
metadata: {name: performance}
spec:
  observedMatches: [{input: spec.value.rev, output: status.rev}]
  failed: {key: .status.failed, value: "True"}
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(deliverable.metadata.name)$-performance}
    spec: {value: {rev: $(deployment.revision)$}}
---
"#;

const STEPS: &str = "    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
    - name: deploy
      templateRef: {kind: ClusterDeploymentTemplate, name: environment}
      deployment: {resource: fetch}
    - name: integrate
      templateRef: {kind: ClusterDeploymentValidationTemplate, name: integration}
      deployment: {resource: deploy}
    - name: perform
      templateRef: {kind: ClusterDeploymentValidationTemplate, name: performance}
      deployment: {resource: integrate}
    - name: promote
      templateRef: {kind: ClusterTemplate, name: sink}
      sources: [{resource: perform, name: validated}]";

pub(crate) fn staging(integration: &str) -> String {
    let sink = sink("$(sources.validated.revision)$");
    [
        SOURCE,
        ENVIRONMENT,
        integration,
        PERFORMANCE,
        &sink,
        &delivery(STEPS),
    ]
    .concat()
}

pub(crate) async fn push(stage: &Stage, revision: &str) {
    let params = json!({"spec": {"params": [{"name": "rev", "value": revision}]}});
    stage.edit_owner("app", params).await;
}

pub(crate) async fn test(stage: &Stage, name: &str) -> Option<Value> {
    stage.get("test.run/v1alpha1", "Test", name).await
}

/// Waits until the environment is written with a revision; the object.
pub(crate) async fn written(stage: &Stage, revision: &str) -> Value {
    eventually(
        &format!("{revision} is written into the environment"),
        PATIENCE,
        async || {
            let found = test(stage, "app-environment").await;
            found
                .clone()
                .filter(|found| found["spec"]["value"]["rev"] == revision)
                .map(Some)
                .ok_or_else(|| format!("{found:?}"))
        },
    )
    .await
}

/// Waits until the environment is written with a revision, and has it deployed.
pub(crate) async fn deploy(stage: &Stage, revision: &str) {
    written(stage, revision).await;
    stage
        .report("app-environment", json!({"rev": revision}))
        .await;
}

/// The names of all runs of the immutable validation, oldest first.
pub(crate) async fn runs(stage: &Stage) -> Vec<String> {
    let runs = stage.tests().await;
    let runs = runs
        .iter()
        .filter(|run| run["metadata"]["labels"]["carto.run/resource-name"] == "integrate");
    runs.map(|run| run["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Waits for the n-th run, and that it is the last.
pub(crate) async fn run(stage: &Stage, number: usize) -> String {
    eventually(&format!("there are {number} runs"), PATIENCE, async || {
        let runs = runs(stage).await;
        if runs.len() == number {
            Ok(runs.last().cloned())
        } else {
            Err(runs)
        }
    })
    .await
}

pub(crate) async fn integrated(stage: &Stage, run: &str, succeeded: &str) {
    let conditions = json!({"conditions": [{"type": "Succeeded", "status": succeeded}]});
    stage.report(run, conditions).await;
}

/// Waits until the mutable validation is about a revision, and has it succeed.
pub(crate) async fn performed(stage: &Stage, revision: &str) {
    eventually(
        &format!("{revision} is being validated"),
        PATIENCE,
        async || {
            let found = test(stage, "app-performance").await.unwrap_or_default();
            let seen = found["spec"]["value"]["rev"].clone();
            if seen == revision { Ok(()) } else { Err(seen) }
        },
    )
    .await;
    stage
        .report("app-performance", json!({"rev": revision}))
        .await;
}

/// The only environment in status, as `deployed@arrival <waiting: verdict …`.
fn told(owner: &Value) -> String {
    let environment = &owner["status"]["environments"][0];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let verdicts: Vec<String> = environment["validations"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|told| {
            assert_eq!(told["arrival"], environment["deployed"]["arrival"]);
            text(&told["verdict"])
        })
        .collect();
    format!(
        "{}@{} <{}: {}",
        text(&environment["deployed"]["revision"]),
        environment["deployed"]["arrival"],
        text(&environment["waiting"]["revision"]),
        verdicts.join(" ")
    )
}

pub(crate) async fn until_told(stage: &Stage, expected: &str) -> Value {
    eventually(&format!("status says {expected}"), PATIENCE, async || {
        let owner = stage.owner("app").await;
        let seen = told(&owner);
        if seen == expected {
            Ok(Some(owner))
        } else {
            Err(format!("{seen}; {}", owner["status"]))
        }
    })
    .await
}

/// What changes with each write of what is asked for, and with nothing else.
pub(crate) fn generation(object: &Value) -> i64 {
    object["metadata"]["generation"].as_i64().unwrap()
}

pub(crate) async fn has_event(stage: &Stage, expected: &str) {
    eventually(&format!("event {expected}"), PATIENCE, async || {
        let events = stage.events().await;
        if events.iter().any(|event| event == expected) {
            Ok(())
        } else {
            Err(events)
        }
    })
    .await;
}

#[tokio::test]
async fn an_environment_keeps_a_revision_until_it_is_validated_and_then_takes_the_newest() {
    let stage = open().await;
    stage.apply(&staging(INTEGRATION)).await;
    stage.apply(DELIVERABLE).await;
    deploy(&stage, "main").await;
    let first = run(&stage, 1).await;
    until_told(&stage, "main@1 <-: Running Pending").await;
    let kept = test(&stage, "app-environment").await.unwrap();

    push(&stage, "v2").await;
    let held = until_told(&stage, "main@1 <v2: Running Pending").await;
    let update = condition(&step(&held, "deploy"), "UpdateHeld");
    assert_eq!(
        (&update["status"], &update["reason"], &update["message"]),
        (
            &json!("True"),
            &json!("ValidationRunning"),
            &json!(
                "revision [v2] waits: revision [main] is in the environment until it is validated; no verdict yet from [integrate, perform]"
            )
        )
    );
    push(&stage, "v3").await;
    until_told(&stage, "main@1 <v3: Running Pending").await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    assert_eq!(test(&stage, "app-environment").await.unwrap(), kept);

    integrated(&stage, &first, "True").await;
    until_told(&stage, "main@1 <v3: Succeeded Running").await;
    assert_eq!(test(&stage, "app-environment").await.unwrap(), kept);
    performed(&stage, "main").await;
    let next = written(&stage, "v3").await;
    assert_eq!(generation(&next), 2, "v2 was never deployed");
    sunk(&stage, "app", "main").await;
    let free = until_told(&stage, "v3@2 <-: Pending Pending").await;
    assert_eq!(condition(&step(&free, "deploy"), "UpdateHeld"), Value::Null);

    deploy(&stage, "v3").await;
    let second = run(&stage, 2).await;
    integrated(&stage, &second, "True").await;
    performed(&stage, "v3").await;
    sunk(&stage, "app", "v3").await;
    stage.ready("app", "True", "Ready").await;
    until_told(&stage, "v3@2 <-: Succeeded Succeeded").await;
    assert_eq!(stage.requests_of_reconciles("app", 5).await, NOTHING);
    has_event(
        &stage,
        "Normal RevisionDeployed: [deploy] deployed revision [v3], arrival 2",
    )
    .await;
    let events = stage.events().await;
    assert!(
        !events.iter().any(|event| event.contains("[v2]")),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_failed_validation_stops_promotion_and_frees_the_environment() {
    let stage = open().await;
    stage.apply(&staging(INTEGRATION)).await;
    stage.apply(DELIVERABLE).await;
    deploy(&stage, "main").await;
    integrated(&stage, &run(&stage, 1).await, "True").await;
    performed(&stage, "main").await;
    sunk(&stage, "app", "main").await;

    push(&stage, "v2").await;
    deploy(&stage, "v2").await;
    integrated(&stage, &run(&stage, 2).await, "False").await;
    until_told(&stage, "v2@2 <-: Failed Skipped").await;
    let failed = stage.ready("app", "False", "ValidationFailed").await;
    let why = condition(&step(&failed, "integrate"), "ResourceSubmitted");
    let message = why["message"].as_str().unwrap();
    assert!(
        message.contains("[v2]") && message.contains("[deploy]"),
        "{message}"
    );
    assert_eq!(
        condition(&failed["status"], "ResourcesSubmitted")["message"],
        message
    );
    let warned = eventually("a Warning tells of it", PATIENCE, async || {
        let events = stage.events().await;
        let found = events
            .iter()
            .find(|event| event.starts_with("Warning ValidationFailed: "));
        found.cloned().map(Some).ok_or(events)
    })
    .await;
    assert!(
        warned.contains("[v2]") && warned.contains("[deploy]"),
        "{warned}"
    );
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    sunk(&stage, "app", "main").await;

    // By the mutable one, too.
    push(&stage, "v3").await;
    deploy(&stage, "v3").await;
    integrated(&stage, &run(&stage, 3).await, "True").await;
    until_told(&stage, "v3@3 <-: Succeeded Running").await;
    push(&stage, "v4").await;
    until_told(&stage, "v3@3 <v4: Succeeded Running").await;
    stage
        .report("app-performance", json!({"failed": "True"}))
        .await;
    deploy(&stage, "v4").await;
    sunk(&stage, "app", "main").await;
    integrated(&stage, &run(&stage, 4).await, "True").await;
    performed(&stage, "v4").await;
    sunk(&stage, "app", "v4").await;
    stage.ready("app", "True", "Ready").await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
}

#[tokio::test]
async fn a_validation_that_does_not_end_in_time_frees_the_environment() {
    let stage = open().await;
    stage
        .apply(&staging(&INTEGRATION.replace("timeout: 1h", "timeout: 2s")))
        .await;
    stage.apply(DELIVERABLE).await;
    deploy(&stage, "main").await;
    run(&stage, 1).await;
    push(&stage, "v2").await;
    // Nothing happens any more but that time passes.
    written(&stage, "v2").await;
    has_event(
        &stage,
        "Warning ValidationTimedOut: validation [integrate] did not end in time for revision [main] in environment \
         [deploy]: the environment is released",
    )
    .await;
    assert_eq!(test(&stage, "app-performance").await, None);
    assert_eq!(stage.get("v1", "ConfigMap", "app-sink").await, None);

    // A success that comes late promotes, as long as nothing else is deployed.
    stage.report("app-environment", json!({"rev": "v2"})).await;
    let late = run(&stage, 2).await;
    stage.ready("app", "False", "ValidationTimedOut").await;
    until_told(&stage, "v2@2 <-: TimedOut Skipped").await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);
    integrated(&stage, &late, "True").await;
    performed(&stage, "v2").await;
    sunk(&stage, "app", "v2").await;
    stage.ready("app", "True", "Ready").await;
}

#[tokio::test]
async fn a_controller_that_is_killed_at_seven_points_goes_on_and_runs_nothing_twice() {
    let mut stage = open().await;
    stage.apply(&staging(INTEGRATION)).await;
    stage.apply(DELIVERABLE).await;
    let again = |stage: &mut Stage| {
        stage.kill_controller();
        stage.start_controller();
    };
    written(&stage, "main").await;
    // Right after the environment's apply: status may not say so yet.
    again(&mut stage);
    deploy(&stage, "main").await;
    let first = run(&stage, 1).await;
    // During a validation; the next revision comes while nobody is there.
    stage.kill_controller();
    push(&stage, "v2").await;
    stage.start_controller();
    until_told(&stage, "main@1 <v2: Running Pending").await;
    assert_eq!(runs(&stage).await, [first.as_str()]);
    integrated(&stage, &first, "True").await;
    // Right after a verdict.
    again(&mut stage);
    until_told(&stage, "main@1 <v2: Succeeded Running").await;
    performed(&stage, "main").await;
    again(&mut stage);
    // Right after the next apply.
    written(&stage, "v2").await;
    again(&mut stage);
    deploy(&stage, "v2").await;
    let second = run(&stage, 2).await;
    // The verdict comes while nobody is there, and so does another revision.
    stage.kill_controller();
    integrated(&stage, &second, "False").await;
    push(&stage, "v3").await;
    stage.start_controller();
    deploy(&stage, "v3").await;
    let third = run(&stage, 3).await;
    integrated(&stage, &third, "True").await;
    performed(&stage, "v3").await;
    again(&mut stage);
    sunk(&stage, "app", "v3").await;
    stage.ready("app", "True", "Ready").await;
    until_told(&stage, "v3@3 <-: Succeeded Succeeded").await;
    assert_eq!(stage.requests_of_reconciles("app", 3).await, NOTHING);

    assert_eq!(runs(&stage).await, [first, second, third]);
    let environment = test(&stage, "app-environment").await.unwrap();
    assert_eq!(generation(&environment), 3, "one write for each arrival");
    let performance = test(&stage, "app-performance").await.unwrap();
    assert_eq!(generation(&performance), 2, "main and v3, and each once");
}

#[tokio::test]
async fn an_environment_whose_status_is_wiped_stays_locked_while_its_validations_run() {
    let mut stage = open().await;
    stage.apply(&staging(INTEGRATION)).await;
    stage.apply(DELIVERABLE).await;
    deploy(&stage, "main").await;
    let first = run(&stage, 1).await;
    push(&stage, "v2").await;
    until_told(&stage, "main@1 <v2: Running Pending").await;
    wipe(&stage).await;
    // Only the object says what is in it: what runs is waited for, and nothing else begins.
    until_told(&stage, "main@1 <v2: Running Skipped").await;
    stage.kill_controller();
    wipe(&stage).await;
    stage.start_controller();
    let unproven = until_told(&stage, "main@1 <v2: Running Skipped").await;
    assert_eq!(
        unproven["status"]["environments"][0]["deployed"]["unproven"],
        true
    );
    assert_eq!(generation(&written(&stage, "main").await), 1);
    integrated(&stage, &first, "True").await;
    deploy(&stage, "v2").await;
    let second = run(&stage, 2).await;
    integrated(&stage, &second, "True").await;
    performed(&stage, "v2").await;
    sunk(&stage, "app", "v2").await;

    // With all verdicts there, and nothing that waits: they are found again, and nothing is run again.
    until_told(&stage, "v2@2 <-: Succeeded Succeeded").await;
    stage.kill_controller();
    wipe(&stage).await;
    stage.start_controller();
    until_told(&stage, "v2@2 <-: Succeeded Succeeded").await;
    assert_eq!(runs(&stage).await, [first, second]);
    let environment = test(&stage, "app-environment").await.unwrap();
    assert_eq!(generation(&environment), 2);
}

async fn wipe(stage: &Stage) {
    let api = stage.api("carto.run/v1alpha1", "Deliverable");
    let wiped = kube::api::Patch::Merge(json!({"status": null}));
    let by = kube::api::PatchParams::default();
    api.patch_status("app", &by, &wiped).await.unwrap();
}

/// Two processes without leader election: the later one is refused, looks again, and tells nobody.
#[tokio::test]
async fn of_two_processes_one_writes_the_environment_and_the_other_looks_again() {
    let mut stage = set().await;
    let instant = INTEGRATION.replace("timeout: 1h", "timeout: 1s");
    stage.apply(&staging(&instant)).await;
    stage.start_controller();
    let _another = stage.another_controller();
    stage.apply(DELIVERABLE).await;
    written(&stage, "main").await;
    let refused = |stage: &Stage| {
        let writes = stage.writes();
        writes
            .iter()
            .filter(|write| *write == "patch tests/app-environment 409")
            .count()
    };
    let mut revision = 0;
    eventually("one was refused", PATIENCE, async || {
        revision += 1;
        push(&stage, &format!("r{revision}")).await;
        written(&stage, &format!("r{revision}")).await;
        (refused(&stage) > 0).then_some(())
    })
    .await;
    let last = format!("r{revision}");
    stage.report("app-environment", json!({"rev": last})).await;
    let runs = eventually("it is being validated", PATIENCE, async || {
        let runs = stage.tests().await;
        runs.into_iter().rev().find(|run| {
            run["metadata"]["labels"]["carto.run/resource-name"] == "integrate"
                && run["spec"]["value"]["rev"] == last.as_str()
        })
    })
    .await;
    let run = runs["metadata"]["name"].as_str().unwrap();
    integrated(&stage, run, "True").await;
    performed(&stage, &last).await;
    sunk(&stage, "app", &last).await;
    stage.ready("app", "True", "Ready").await;
    stage.idle().await;
    let environment = test(&stage, "app-environment").await.unwrap();
    assert_eq!(
        generation(&environment),
        revision + 1,
        "one write for each arrival"
    );
    let events = stage.events().await;
    assert!(
        !events
            .iter()
            .any(|event| event.contains("ResourceFailed")
                || event.contains("object has been modified")),
        "{events:?}"
    );
}

/// The watch shows only what has our label: what is there all the same is found by the refusal.
#[tokio::test]
async fn an_object_that_was_there_before_is_looked_at_before_it_becomes_the_environment() {
    let mut stage = set().await;
    stage.apply(&staging(INTEGRATION)).await;
    let adopt = json!({"carto.run/adopt": "true"});
    let before = json!({"apiVersion": "test.run/v1alpha1", "kind": "Test", "metadata": {"name": "app-environment", "annotations": adopt},
        "spec": {"value": {"rev": "older", "kept": true}}});
    stage.create_as("somebody", before).await;
    stage.apply(DELIVERABLE).await;
    stage.start_controller();
    deploy(&stage, "main").await;
    until_told(&stage, "main@1 <-: Running Pending").await;
    let environment = test(&stage, "app-environment").await.unwrap();
    assert_eq!(environment["spec"]["value"]["kept"], true);
    stage.idle().await;
    let mut writes = stage.writes();
    writes.retain(|write| write.contains("app-environment"));
    assert_eq!(
        writes,
        [
            "patch tests/app-environment 409",
            "patch tests/app-environment 200"
        ]
    );
    let events = stage.events().await;
    assert!(
        !events.iter().any(|event| event.starts_with("Warning")),
        "{events:?}"
    );
}
