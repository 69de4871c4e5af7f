//! Runs that somebody else deletes: a pruner, `ttlSecondsAfterFinished`, a person.

use realizer::Observed;
use serde_json::json;

use crate::stage::{Stage, name};

/// A run that is over and was looked at.
fn ended(status: &str) -> Stage {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.end("run-1", status, "one");
    stage.walk();
    stage
}

#[test]
fn a_run_that_has_ended_is_not_started_again_because_somebody_deleted_it() {
    for status in ["True", "False"] {
        let mut stage = ended(status);
        let before = stage.runnable["status"].clone();
        stage.cluster.objects.clear();
        for _ in 0..3 {
            let outcome = stage.outcome();
            assert!(!outcome.changed, "{status}: {}", outcome.status);
            assert!(outcome.events.is_empty());
            stage.pass(3600);
        }
        assert_eq!(stage.runnable["status"], before);
        assert_eq!(stage.created, 1, "{status}");
    }
}

#[test]
fn new_inputs_and_requests_for_a_rerun_start_another() {
    let mut stage = ended("True");
    stage.cluster.objects.clear();
    stage.input("b");
    stage.walk();
    assert_eq!(stage.names(), ["run-2"]);
    assert_eq!(
        stage.runnable["status"]["outputs"],
        json!({"out": "one"}),
        "until it has ended"
    );
    stage.end("run-2", "True", "two");
    stage.walk();
    assert_eq!(stage.runnable["status"]["outputs"], json!({"out": "two"}));
    stage.cluster.objects.clear();
    stage.runnable["metadata"]["annotations"] = json!({"carto.run/rerun-requested-at": "now"});
    stage.walk();
    stage.walk();
    assert_eq!(stage.names(), ["run-3"]);
}

#[test]
fn a_retry_goes_on_from_a_failed_run_that_is_gone() {
    let mut stage = Stage::new(json!({"retry": {"maxAttempts": 2, "backoff": "10s"}}));
    stage.walk();
    stage.end("run-1", "False", "x");
    stage.walk();
    stage.cluster.objects.clear();
    let outcome = stage.outcome();
    assert_eq!(stage.created, 1, "too early");
    assert!(outcome.again.is_some(), "it is looked at again");
    stage.pass(11);
    stage.walk();
    assert_eq!(stage.names(), ["run-2"]);
    stage.end("run-2", "False", "x");
    stage.walk();
    stage.cluster.objects.clear();
    stage.pass(3600);
    stage.walk();
    assert_eq!(stage.created, 2, "that was the last attempt");
}

#[test]
fn the_end_of_a_run_counts_though_it_was_deleted_before_anybody_looked() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.end("run-1", "True", "one");
    let gone = Observed {
        terminating: true,
        is_gone: true,
        ..stage.cluster.objects[0].clone()
    };
    stage.cluster.objects = vec![gone];
    stage.walk();
    assert_eq!(stage.created, 1);
    let status = &stage.runnable["status"];
    assert_eq!(status["outputs"], json!({"out": "one"}));
    assert_eq!(status["runs"][0]["result"], "Succeeded");
    assert_eq!(stage.condition("Ready").unwrap()[0], "True");
    // Another process knows only what status says.
    stage.cluster.objects.clear();
    assert!(!stage.outcome().changed);
    assert_eq!(stage.created, 1);
}

#[test]
fn a_run_that_only_says_that_it_is_one_is_not_believed() {
    let mut stage = ended("True");
    let mut forged = stage.cluster.objects[0].clone();
    forged.object["metadata"]["name"] = json!("forged");
    forged.object["metadata"]["uid"] = json!("uid-forged");
    forged.object["status"]["result"] = json!("forged");
    forged.is_known = false;
    forged.sequence = 0;
    forged.digest = None;
    stage.cluster.objects.push(forged);
    assert!(!stage.outcome().changed);
    stage.input("b");
    stage.walk();
    assert_eq!(stage.created, 2, "what is due is started");
    assert!(!stage.runnable["status"].to_string().contains("forged"));
    assert!(
        stage
            .cluster
            .objects
            .iter()
            .any(|run| name(run) == "forged")
    );
}
