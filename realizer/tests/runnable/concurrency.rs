//! Inputs that change while a run is going.

use std::time::Duration;

use realizer::RemovalReason;
use serde_json::json;

use crate::stage::Stage;

#[test]
fn without_a_choice_a_run_starts_beside_the_going_one() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.input("b");
    stage.walk();
    assert_eq!(stage.names(), ["run-1", "run-2"]);
}

#[test]
fn queued_inputs_wait_and_the_newest_win() {
    let mut stage = Stage::new(json!({"concurrency": "Queue"}));
    stage.walk();
    for revision in ["b", "c", "d"] {
        stage.input(revision);
        let outcome = stage.outcome();
        assert_eq!(outcome.again, Some(Duration::from_secs(30)));
        assert!(outcome.removals.is_empty());
    }
    assert_eq!(stage.names(), ["run-1"]);
    let message = "the run for the present inputs waits until [run-1] is over, because spec.concurrency is Queue";
    assert_eq!(
        stage.condition("RunTemplateReady").unwrap(),
        ["Unknown", "WaitingForRun", message]
    );
    assert_eq!(stage.condition("Ready").unwrap()[1], "WaitingForRun");
    let mirrored = stage.condition("StampedObjectCondition").unwrap();
    assert_eq!(mirrored, ["Unknown", "Unknown", ""]);
    stage.end("run-1", "True", "x");
    stage.walk();
    assert_eq!(stage.names(), ["run-1", "run-2"]);
    assert_eq!(stage.cluster.objects[1].object["spec"]["revision"], "d");
    assert_eq!(stage.most_going, 1);
    assert_eq!(stage.condition("RunTemplateReady").unwrap()[0], "True");
}

#[test]
fn queued_inputs_that_are_taken_back_start_nothing() {
    let mut stage = Stage::new(json!({"concurrency": "Queue"}));
    stage.walk();
    stage.input("b");
    stage.walk();
    stage.input("a");
    let outcome = stage.outcome();
    assert_eq!(outcome.again, None);
    assert_eq!(stage.names(), ["run-1"]);
}

#[test]
fn outputs_of_a_run_are_read_while_others_wait() {
    let mut stage = Stage::new(json!({"concurrency": "Queue"}));
    stage.walk();
    stage.end("run-1", "True", "first");
    stage.walk();
    stage.input("b");
    stage.walk();
    stage.input("c");
    stage.walk();
    assert_eq!(stage.runnable["status"]["outputs"], json!({"out": "first"}));
    assert_eq!(stage.most_going, 1);
}

#[test]
fn a_replaced_run_is_gone_before_the_new_one_starts() {
    let mut stage = Stage::new(json!({"concurrency": "Replace"}));
    stage.has_finalizers = true;
    stage.walk();
    stage.input("b");
    let outcome = stage.outcome();
    assert_eq!(outcome.removals.len(), 1);
    assert_eq!(outcome.removals[0].reason, RemovalReason::Replaced);
    assert_eq!(outcome.removals[0].object.uid.as_deref(), Some("uid-1"));
    assert_eq!(stage.names(), ["run-1"]);
    // On its way out, it is waited for, and not deleted again.
    assert!(stage.outcome().removals.is_empty());
    assert_eq!(stage.created, 1);
    stage.cluster.objects.clear();
    stage.walk();
    assert_eq!(stage.names(), ["run-2"]);
    assert_eq!(stage.most_going, 1);
}

#[test]
fn a_run_that_has_ended_is_not_replaced() {
    let mut stage = Stage::new(json!({"concurrency": "Replace"}));
    stage.walk();
    stage.end("run-1", "False", "x");
    stage.input("b");
    assert!(stage.outcome().removals.is_empty());
    assert_eq!(stage.names(), ["run-1", "run-2"]);
}

#[test]
fn a_rerun_waits_and_replaces_like_other_inputs() {
    for (concurrency, names) in [("Queue", vec!["run-1"]), ("Replace", vec!["run-2"])] {
        let mut stage = Stage::new(json!({"concurrency": concurrency}));
        stage.walk();
        stage.runnable["metadata"]["annotations"] = json!({"carto.run/rerun-requested-at": "now"});
        stage.walk();
        stage.walk();
        assert_eq!(stage.names(), names);
        assert_eq!(stage.most_going, 1);
    }
}
