//! Failed runs that are tried again.

use std::time::Duration;

use serde_json::json;

use crate::stage::Stage;

fn retrying(attempts: u32) -> Stage {
    Stage::new(json!({"retry": {"maxAttempts": attempts, "backoff": "30s"}}))
}

#[test]
fn a_failed_run_is_tried_again_after_a_time_that_doubles() {
    let mut stage = retrying(4);
    stage.walk();
    for (attempt, wait) in [(1, 30), (2, 60), (3, 120)] {
        stage.end(&format!("run-{attempt}"), "False", "x");
        assert_eq!(stage.outcome().again, Some(Duration::from_secs(wait)));
        stage.pass(i64::try_from(wait).unwrap() - 1);
        assert_eq!(stage.outcome().again, Some(Duration::from_secs(1)));
        assert_eq!(stage.created, attempt);
        stage.pass(1);
        assert_eq!(stage.outcome().again, None);
        assert_eq!(stage.created, attempt + 1);
    }
    stage.end("run-4", "False", "x");
    stage.pass(10_000);
    assert_eq!(stage.outcome().again, None);
    assert_eq!(stage.created, 4);
    let ready = stage.condition("Ready").unwrap();
    assert_eq!(ready, ["False", "SucceededCondition", "run-4 says False"]);
}

#[test]
fn a_controller_that_was_away_tries_at_once_what_is_due() {
    let mut stage = retrying(2);
    stage.walk();
    stage.end("run-1", "False", "x");
    stage.pass(3600);
    stage.walk();
    assert_eq!(stage.created, 2);
}

#[test]
fn changed_inputs_have_all_attempts_before_them() {
    let mut stage = retrying(2);
    stage.walk();
    stage.end("run-1", "False", "x");
    stage.pass(30);
    stage.walk();
    stage.end("run-2", "False", "x");
    stage.input("b");
    stage.walk();
    stage.end("run-3", "False", "x");
    stage.pass(30);
    stage.walk();
    assert_eq!(stage.created, 4);
}

#[test]
fn a_rerun_has_all_attempts_before_it() {
    let mut stage = retrying(2);
    stage.walk();
    stage.end("run-1", "False", "x");
    stage.runnable["metadata"]["annotations"] = json!({"carto.run/rerun-requested-at": "now"});
    stage.walk();
    assert_eq!(stage.created, 2);
    stage.end("run-2", "False", "x");
    stage.pass(30);
    stage.walk();
    stage.end("run-3", "False", "x");
    stage.pass(3600);
    stage.walk();
    assert_eq!(stage.created, 3);
}

#[test]
fn lowering_or_taking_away_the_attempts_starts_nothing() {
    let mut stage = retrying(5);
    stage.walk();
    for attempt in 1..=3 {
        stage.end(&format!("run-{attempt}"), "False", "x");
        stage.pass(3600);
        stage.walk();
    }
    assert_eq!(stage.created, 4);
    for retry in [json!({"maxAttempts": 2}), json!(null)] {
        stage.runnable["spec"]["retry"] = retry;
        stage.walk();
        stage.end("run-4", "False", "x");
        stage.pass(3600);
        stage.walk();
        assert_eq!(stage.created, 4);
    }
}

#[test]
fn a_run_that_succeeds_is_not_tried_again() {
    let mut stage = retrying(5);
    stage.walk();
    stage.end("run-1", "True", "x");
    stage.pass(3600);
    assert_eq!(stage.outcome().again, None);
    assert_eq!(stage.created, 1);
}

#[test]
fn the_end_of_a_run_that_does_not_say_when_is_when_it_was_seen() {
    let mut stage = retrying(2);
    stage.template["spec"]["healthRule"] = json!({"multiMatch": {
        "healthy": {"matchFields": [{"key": "status.phase", "operator": "In", "values": ["Done"]}]},
        "unhealthy": {"matchFields": [{"key": "status.phase", "operator": "In", "values": ["Error"]}]}}});
    stage.walk();
    stage.cluster.objects[0].object["status"] = json!({"phase": "Error"});
    assert_eq!(stage.outcome().again, Some(Duration::from_secs(30)));
    stage.pass(20);
    assert_eq!(stage.outcome().again, Some(Duration::from_secs(10)));
    stage.pass(10);
    stage.walk();
    assert_eq!(stage.created, 2);
}

#[test]
fn without_a_time_it_is_ten_seconds_and_never_more_than_an_hour() {
    let mut stage = Stage::new(json!({"retry": {"maxAttempts": 20}}));
    stage.walk();
    let mut waits = Vec::new();
    for attempt in 1..20 {
        stage.end(&format!("run-{attempt}"), "False", "x");
        let wait = stage.outcome().again.unwrap();
        waits.push(wait.as_secs());
        stage.pass(i64::try_from(wait.as_secs()).unwrap());
        stage.walk();
    }
    assert_eq!(waits[..4], [10, 20, 40, 80]);
    assert_eq!(waits[18], 3600);
}

#[test]
fn another_attempt_is_not_taken_for_a_rendering_that_our_status_changed() {
    let mut stage = retrying(2);
    stage.template["spec"]["template"]["spec"] =
        json!({"before": "$(runnable.status.observedGeneration)$"});
    stage.walk();
    stage.walk();
    assert_eq!(
        stage.bases[0], stage.bases[1],
        "the rendering differs by our status only"
    );
    stage.end("run-2", "False", "x");
    stage.walk();
    stage.pass(30);
    stage.walk();
    assert_eq!(stage.created, 3);
    assert_ne!(stage.bases.last(), stage.bases.first());
}
