//! Outputs (spec 5.4).

use realizer::runnable::SelectError;
use realizer::{SubmitFailure, SubmitFailureKind};
use serde_json::json;

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
    stage.runs[0].object["status"]["result"] = json!({"a": [1, null]});
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
