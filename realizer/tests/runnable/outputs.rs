//! Outputs (docs/behaviour/runnables.md#outputs).

use realizer::runnable::SelectError;
use realizer::{StatusKey, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::stage::{Stage, template};

fn succeeded() -> Stage {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.end("run-1", "True", "first");
    stage.walk();
    assert_eq!(stage.runnable["status"]["outputs"], json!({"out": "first"}));
    stage
}

#[test]
fn outputs_are_those_of_the_newest_run_that_succeeded() {
    let mut stage = succeeded();
    stage.input("b");
    stage.walk();
    assert_eq!(stage.runnable["status"]["outputs"], json!({"out": "first"}));
    stage.end("run-2", "False", "second");
    stage.walk();
    assert_eq!(stage.runnable["status"]["outputs"], json!({"out": "first"}));
    stage.input("c");
    stage.walk();
    stage.end("run-3", "True", "third");
    stage.walk();
    assert_eq!(stage.runnable["status"]["outputs"], json!({"out": "third"}));
}

#[test]
fn the_last_good_outputs_survive_every_error() {
    type Breaking = fn(&mut Stage);
    let cases: [(&str, Breaking); 5] = [
        ("selector", |stage| stage.selected = Err(SelectError::Many)),
        ("stamp", |stage| {
            stage.template["spec"]["template"]["spec"] = json!("$(nothing.there)$");
        }),
        ("rejected", |stage| {
            stage.fails = Some(failure(SubmitFailureKind::Rejected));
        }),
        ("list", |stage| {
            stage.fails = Some(failure(SubmitFailureKind::List));
        }),
        ("path", |stage| {
            stage.template = template(json!({"out": ".status.result", "more": ".status.absent"}));
        }),
    ];
    for (what, break_it) in cases {
        let mut stage = succeeded();
        break_it(&mut stage);
        stage.walk();
        assert_eq!(
            stage.condition("RunTemplateReady").unwrap()[0],
            "False",
            "{what}"
        );
        assert_eq!(
            stage.runnable["status"]["outputs"],
            json!({"out": "first"}),
            "{what}"
        );
    }
}

fn failure(kind: SubmitFailureKind) -> SubmitFailure {
    SubmitFailure {
        kind,
        message: "create: no".to_owned(),
    }
}

#[test]
fn any_json_is_an_output_and_a_template_without_outputs_keeps_them() {
    let mut stage = succeeded();
    stage.cluster.objects[0].object["status"]["result"] = json!({"a": [1, null]});
    stage.walk();
    assert_eq!(
        stage.runnable["status"]["outputs"],
        json!({"out": {"a": [1, null]}})
    );
    stage.template = template(json!({}));
    stage.walk();
    assert_eq!(
        stage.runnable["status"]["outputs"],
        json!({"out": {"a": [1, null]}})
    );
}

#[test]
fn of_several_paths_that_fail_the_last_one_is_told() {
    let mut stage = succeeded();
    stage.template = template(json!({"a": ".status.a", "b": ".status.b", "out": ".status.result"}));
    stage.walk();
    let [status, reason, message] = stage.condition("RunTemplateReady").unwrap();
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "OutputPathNotSatisfied")
    );
    assert_eq!(
        message,
        "waiting to read value from resource [taskruns.tekton.dev/run-1] in namespace [dev]: unable to retrieve \
         outputs from stamped object [dev/run-1] of type [taskruns.tekton.dev] for run template [tests]: failed to \
         evaluate path [.status.b]: jsonpath returned empty list: .status.b"
    );
}

#[test]
fn values_of_a_secret_never_reach_the_status() {
    let mut stage = Stage::new(json!({}));
    stage.template = template(json!({"out": ".data.password"}));
    stage.template["spec"]["healthRule"] = json!({"alwaysHealthy": {}});
    stage.template["spec"]["template"] = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"generateName": "x-"}, "data": {"password": "aHVudGVyMg=="}});
    stage.walk();
    let status = stage.runnable["status"].to_string();
    assert!(!status.contains("aHVudGVyMg=="), "{status}");
    let message = stage.condition("RunTemplateReady").unwrap()[2].clone();
    assert!(
        message.ends_with("the object is a Secret, whose values are not written into a status")
    );
}

fn secret(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"password": value}})
}

/// With a Secret selected that is rendered into the run.
fn selecting() -> Stage {
    let mut stage = Stage::new(json!({}));
    stage.selected = Ok(Some(secret("hunter2-hunter2")));
    stage.template["spec"]["template"]["spec"]["password"] =
        json!("$(selected.stringData.password)$");
    stage.walk();
    stage
}

fn assert_nothing_told(stage: &Stage, outcome: &realizer::Outcome) {
    let told = format!("{} {:?}", stage.runnable["status"], outcome.events);
    for secret in ["hunter2", "aHVudGVyMi"] {
        assert!(!told.contains(secret), "{told}");
    }
}

#[test]
fn an_output_with_a_value_of_the_selected_secret_is_not_read() {
    let mut stage = selecting();
    stage.end("run-1", "True", "logged in as robot:aHVudGVyMi1odW50ZXIy");
    let outcome = stage.outcome();
    assert_eq!(stage.runnable["status"].get("outputs"), None);
    let message = stage.condition("RunTemplateReady").unwrap()[2].clone();
    assert!(
        message.ends_with(
            "it holds a value of the selected Secret, which is not written into a status"
        ),
        "{message}"
    );
    assert_nothing_told(&stage, &outcome);

    stage.end("run-1", "True", "harmless");
    stage.walk();
    assert_eq!(
        stage.runnable["status"]["outputs"],
        json!({"out": "harmless"})
    );
}

#[test]
fn an_output_that_was_told_before_it_was_known_to_be_secret_is_taken_away() {
    let mut stage = selecting();
    stage.runnable["status"]["outputs"] = json!({"out": "hunter2-hunter2", "other": "stays"});
    let outcome = stage.outcome();
    assert_eq!(
        stage.runnable["status"]["outputs"],
        json!({"other": "stays"})
    );
    assert_nothing_told(&stage, &outcome);
}

#[test]
fn a_run_of_a_former_value_of_the_secret_gives_no_output() {
    let mut stage = selecting();
    stage.end("run-1", "True", "hunter2-hunter2");
    stage.selected = Ok(Some(secret("another-value")));
    let outcome = stage.outcome();
    assert_eq!(stage.names(), ["run-1", "run-2"]);
    assert_nothing_told(&stage, &outcome);
    // Nor when nothing is selected any more.
    stage.selected = Ok(None);
    stage.template["spec"]["template"]["spec"]["password"] = json!("none");
    let outcome = stage.outcome();
    assert_nothing_told(&stage, &outcome);
    stage.end("run-3", "True", "harmless");
    stage.walk();
    assert_eq!(
        stage.runnable["status"]["outputs"],
        json!({"out": "harmless"})
    );
}

#[test]
fn the_digest_of_a_run_with_a_secret_in_it_is_keyed() {
    let told = |key: StatusKey| {
        let mut stage = Stage::new(json!({}));
        stage.key = key;
        stage.selected = Ok(Some(secret("hunter2-hunter2")));
        stage.walk();
        stage.walk();
        assert_eq!(stage.names(), ["run-1"], "it is known again");
        stage.runnable["status"]["runs"][0].get("digest").cloned()
    };
    let key = |text: &str| StatusKey::new(text.as_bytes());
    let keyed = told(key("one")).unwrap();
    assert!(keyed.as_str().unwrap().starts_with("hmac-sha256:"));
    assert_eq!(told(key("one")), Some(keyed.clone()));
    assert_ne!(told(key("two")), Some(keyed));
    assert_eq!(told(StatusKey::NONE), None);
}

#[test]
fn what_a_run_says_of_itself_is_told_without_the_selected_secret() {
    let mut stage = selecting();
    stage.end("run-1", "False", "x");
    stage.cluster.objects[0].object["status"]["conditions"][0]["message"] =
        json!("login \"hunter2-hunter2\" failed");
    let outcome = stage.outcome();
    assert_nothing_told(&stage, &outcome);
    let message = stage.condition("StampedObjectCondition").unwrap()[2].clone();
    assert_eq!(message, "login \"<redacted>\" failed");
}
