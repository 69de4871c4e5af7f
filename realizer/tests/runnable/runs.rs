//! When a run is started, and what is remembered of it (docs/behaviour/runnables.md#runs).

use serde_json::json;

use crate::golden;
use crate::stage::{Stage, template};

#[test]
fn a_settled_runnable_submits_nothing_and_writes_nothing() {
    let mut stage = Stage::new(json!({}));
    assert!(stage.outcome().changed);
    stage.end("run-1", "True", "x");
    assert!(stage.outcome().changed);
    for _ in 0..3 {
        stage.pass(3600);
        let outcome = stage.outcome();
        assert!(!outcome.changed, "{}", outcome.status);
        assert!(outcome.events.is_empty());
        assert_eq!(outcome.again, None);
    }
    assert_eq!(stage.created, 1);
}

#[test]
fn the_start_and_the_end_of_a_run_are_written_at_once() {
    let mut stage = Stage::new(json!({}));
    for (input, run) in [("a", "run-1"), ("b", "run-2")] {
        stage.input(input);
        // Until status knows it, nobody but this process does.
        assert!(stage.outcome().write_now, "{run} was made");
        assert!(!stage.outcome().write_now, "{run} is known");
        stage.end(run, "True", "x");
        assert!(stage.outcome().write_now, "{run} is over");
        assert!(!stage.outcome().write_now, "{run} has been told of");
        stage.pass(60);
    }
}

#[test]
fn inputs_that_go_and_come_back_start_three_runs() {
    let mut stage = Stage::new(json!({}));
    for revision in ["a", "a", "b", "b", "a", "a"] {
        stage.input(revision);
        stage.walk();
    }
    assert_eq!(stage.created, 3);
}

#[test]
fn a_run_that_the_cluster_changes_starts_no_other() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.cluster.objects[0].object["spec"] =
        json!({"revision": "a", "nodeName": "n", "tolerations": []});
    stage.walk();
    assert_eq!(stage.created, 1);
}

#[test]
fn a_kind_without_spec_starts_one_run() {
    let mut stage = Stage::new(json!({}));
    stage.template["spec"]["template"] = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"generateName": "x-"}, "data": {"a": "$(runnable.spec.inputs.revision)$"}});
    stage.walk();
    stage.walk();
    assert_eq!(stage.created, 1);
}

#[test]
fn a_run_that_was_deleted_before_its_end_is_started_again() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.cluster.objects.clear();
    stage.walk();
    assert_eq!(stage.created, 2);
    let runs = stage.runnable["status"]["runs"].as_array().unwrap();
    let results: Vec<_> = runs
        .iter()
        .map(|run| run["result"].as_str().unwrap())
        .collect();
    assert_eq!(results, ["Running", "Removed"]);
}

#[test]
fn a_request_for_a_rerun_starts_one_run_with_the_same_inputs() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    for (value, created) in [("1", 2), ("1", 2), ("2", 3), ("2", 3)] {
        stage.runnable["metadata"]["annotations"] = json!({"carto.run/rerun-requested-at": value});
        stage.walk();
        assert_eq!(stage.created, created, "{value}");
    }
    let specs: Vec<_> = stage
        .cluster
        .objects
        .iter()
        .map(|run| &run.object["spec"])
        .collect();
    assert!(specs.iter().all(|spec| *spec == specs[0]));
}

#[test]
fn taking_the_request_for_a_rerun_away_starts_nothing() {
    let mut stage = Stage::new(json!({}));
    stage.runnable["metadata"]["annotations"] = json!({"carto.run/rerun-requested-at": "1"});
    stage.walk();
    assert_eq!(stage.runnable["status"]["lastRerunRequestedAt"], "1");
    stage.runnable["metadata"]["annotations"] = json!({});
    stage.walk();
    assert_eq!(stage.created, 1);
    // Asking for the same again is no new request.
    stage.runnable["metadata"]["annotations"] = json!({"carto.run/rerun-requested-at": "1"});
    stage.walk();
    assert_eq!(stage.created, 1);
}

#[test]
fn the_run_that_was_submitted_last_is_named_and_stays_named_when_something_fails() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    let named = json!({"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "namespace": "dev", "name": "run-1",
        "resource": "taskruns.tekton.dev"});
    assert_eq!(stage.runnable["status"]["stampedRef"], named);
    stage.selected = Err(realizer::runnable::SelectError::None);
    stage.walk();
    assert_eq!(stage.runnable["status"]["stampedRef"], named);
}

#[test]
fn the_history_tells_how_each_run_went() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    stage.pass(60);
    stage.end("run-1", "False", "x");
    stage.pass(60);
    stage.input("b");
    stage.walk();
    let runs = &stage.runnable["status"]["runs"];
    assert_eq!(runs[0]["name"], "run-2");
    assert_eq!(runs[0]["result"], "Running");
    assert_eq!(runs[0].get("finished"), None);
    assert_eq!(
        runs[1],
        json!({"name": "run-1", "digest": stage.cluster.objects[0].digest, "started": "2023-11-14T22:13:20Z",
            "finished": "2023-11-14T22:14:20Z", "result": "Failed", "message": "run-1 says False",
            "uid": "uid-1", "sequence": 1})
    );
}

#[test]
fn a_runnable_tells_of_its_runs_and_of_its_outputs() {
    let mut stage = Stage::new(json!({"retry": {"maxAttempts": 2, "backoff": "10s"}}));
    stage.walk();
    stage.pass(60);
    stage.end("run-1", "True", "good");
    stage.walk();
    stage.input("b");
    stage.walk();
    stage.pass(60);
    stage.end("run-2", "False", "bad");
    stage.walk();
    stage.pass(60);
    stage.walk();
    golden::check("runnable.yaml", &stage.runnable);
}

#[test]
fn the_history_is_bounded_and_has_the_newest_first() {
    let mut stage =
        Stage::new(json!({"retentionPolicy": {"maxFailedRuns": 1, "maxSuccessfulRuns": 1}}));
    for index in 1..=25 {
        stage.input(&format!("r{index}"));
        stage.walk();
        stage.end(&format!("run-{index}"), "True", "x");
        stage.pass(1);
        stage.walk();
    }
    let runs = stage.runnable["status"]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), api_types::runnable::MOST_RUNS);
    assert_eq!(runs[0]["name"], "run-25");
    assert_eq!(runs[19]["name"], "run-6");
    assert_eq!(stage.names(), ["run-25"]);
}

#[test]
fn retention_is_about_the_runs_of_the_present_template_and_never_about_going_ones() {
    let mut stage =
        Stage::new(json!({"retentionPolicy": {"maxFailedRuns": 1, "maxSuccessfulRuns": 1}}));
    stage.walk();
    stage.end("run-1", "True", "x");
    stage.runnable["spec"]["runTemplateRef"]["name"] = json!("other");
    stage.template["metadata"]["name"] = json!("other");
    for revision in ["b", "c", "d"] {
        stage.input(revision);
        stage.walk();
    }
    assert_eq!(stage.names(), ["run-1", "run-2", "run-3", "run-4"]);
    for run in ["run-2", "run-3", "run-4"] {
        stage.end(run, "True", "x");
    }
    stage.walk();
    assert_eq!(stage.names(), ["run-1", "run-4"]);
}

#[test]
fn a_run_of_the_go_controller_is_offered_for_adoption_with_the_plain_digest() {
    let mut stage = Stage::new(json!({"concurrency": "Replace", "retry": {"maxAttempts": 3}}));
    stage.walk();
    let digest = stage.cluster.objects[0].digest.take();
    stage.cluster.objects[0].sequence = 0;
    // The controller finds out whether it is the rendering; here it is not, so that another one is created.
    stage.walk();
    assert_eq!(stage.cluster.objects[1].digest, digest);
    assert_eq!(
        stage.names(),
        ["run-1", "run-2"],
        "it is not replaced either"
    );
}

#[test]
fn two_runnables_with_one_template_have_families_of_their_own() {
    let mut stage = Stage::new(json!({}));
    stage.walk();
    let labels = &stage.cluster.objects[0].object["metadata"]["labels"];
    assert_eq!(
        *labels,
        json!({"carto.run/runnable-name": "app", "carto.run/run-template-name": "tests"})
    );
    let owner = &stage.cluster.objects[0].object["metadata"]["ownerReferences"];
    assert_eq!(
        *owner,
        json!([{"apiVersion": "carto.run/v1alpha1", "kind": "Runnable", "name": "app", "uid": "u-1",
            "controller": true, "blockOwnerDeletion": true}])
    );
}

#[test]
fn events_tell_of_runs_and_outputs() {
    let mut stage = Stage::new(json!({}));
    let told = |outcome: realizer::Outcome| -> Vec<String> {
        let events = outcome.events.into_iter();
        events
            .map(|event| format!("{}: {}", event.reason, event.message))
            .collect()
    };
    assert_eq!(
        told(stage.outcome()),
        ["StampedObjectApplied: Created object [taskruns.tekton.dev/run-1]"]
    );
    stage.end("run-1", "True", "x");
    assert_eq!(
        told(stage.outcome()),
        ["ResourceOutputChanged: Runnable [app] found a new output in [taskruns.tekton.dev/run-1]"]
    );
    assert!(told(stage.outcome()).is_empty());
    stage.template = template(json!({}));
    stage.runnable["spec"]["retentionPolicy"]["maxSuccessfulRuns"] = json!(1);
    stage.input("b");
    stage.walk();
    stage.end("run-2", "True", "x");
    assert_eq!(
        told(stage.outcome()),
        ["StampedObjectRemoved: Deleted object [taskruns.tekton.dev/run-1]"]
    );
}
