//! What holds whatever happens, in whatever order.

use proptest::prelude::*;
use serde_json::json;

use crate::stage::{Stage, name};

#[derive(Clone, Debug)]
enum Happening {
    Input(u8),
    Rerun(u8),
    End { failed: bool },
    Pass(u16),
    DeleteNewest,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (0..3_u8).prop_map(Happening::Input),
        (0..2_u8).prop_map(Happening::Rerun),
        any::<bool>().prop_map(|failed| Happening::End { failed }),
        any::<u16>().prop_map(Happening::Pass),
        Just(Happening::DeleteNewest),
    ]
}

fn apply(stage: &mut Stage, what: &Happening) {
    match what {
        Happening::Input(revision) => stage.input(&format!("r{revision}")),
        Happening::Rerun(value) => {
            stage.runnable["metadata"]["annotations"] =
                json!({"carto.run/rerun-requested-at": value.to_string()});
        }
        Happening::End { failed } => {
            let going = stage
                .cluster
                .objects
                .iter()
                .find(|run| run.object.get("status").is_none());
            if let Some(run) = going.map(name) {
                stage.end(&run, if *failed { "False" } else { "True" }, &run);
            }
        }
        Happening::Pass(seconds) => stage.pass(i64::from(*seconds)),
        Happening::DeleteNewest => drop(stage.cluster.objects.pop()),
    }
}

fn stage(concurrency: &str, attempts: u32) -> Stage {
    Stage::new(
        json!({"concurrency": concurrency, "retry": {"maxAttempts": attempts, "backoff": "10s"},
        "retentionPolicy": {"maxFailedRuns": 2, "maxSuccessfulRuns": 2}}),
    )
}

proptest! {
    #[test]
    fn a_second_walk_at_the_same_moment_changes_nothing(
        concurrency in prop_oneof![Just("Allow"), Just("Queue")],
        attempts in 1..4_u32,
        happenings in prop::collection::vec(happening(), 0..20),
    ) {
        let mut stage = stage(concurrency, attempts);
        for what in &happenings {
            apply(&mut stage, what);
            stage.walk();
            // What the first walk deleted, and what it said, the second one sees.
            stage.walk();
            let (created, runs) = (stage.created, stage.names());
            let outcome = stage.outcome();
            prop_assert_eq!(stage.created, created);
            prop_assert_eq!(stage.names(), runs);
            prop_assert!(!outcome.changed, "{}", outcome.status);
            prop_assert!(outcome.removals.is_empty());
            prop_assert!(outcome.events.is_empty());
        }
    }

    #[test]
    fn two_runs_never_go_at_once_unless_allowed(
        concurrency in prop_oneof![Just("Queue"), Just("Replace")],
        has_finalizers: bool,
        happenings in prop::collection::vec(happening(), 0..30),
    ) {
        let mut stage = stage(concurrency, 3);
        stage.has_finalizers = has_finalizers;
        for what in &happenings {
            apply(&mut stage, what);
            stage.walk();
        }
        prop_assert!(stage.most_going <= 1);
    }

    #[test]
    fn attempts_never_exceed_what_is_allowed(attempts in 1..6_u32, waits in prop::collection::vec(0..5000_i64, 12)) {
        let mut stage = stage("Allow", attempts);
        stage.walk();
        for wait in waits {
            let newest = format!("run-{}", stage.created);
            if stage.cluster.objects.iter().any(|run| name(run) == newest && run.object.get("status").is_none()) {
                stage.end(&newest, "False", "x");
            }
            stage.pass(wait);
            stage.walk();
        }
        prop_assert!(stage.created <= usize::try_from(attempts).unwrap());
    }

    #[test]
    fn outputs_never_vanish(happenings in prop::collection::vec(happening(), 0..20)) {
        let mut stage = stage("Allow", 2);
        stage.walk();
        stage.end("run-1", "True", "good");
        stage.walk();
        for what in &happenings {
            apply(&mut stage, what);
            stage.walk();
            prop_assert!(stage.runnable["status"]["outputs"]["out"].is_string());
        }
    }

    #[test]
    fn no_template_and_no_runnable_breaks_the_walk(text in "\\PC*", attempts: u32, backoff in "\\PC*", rerun in "\\PC*") {
        let mut stage = Stage::new(json!({"retry": {"maxAttempts": attempts, "backoff": backoff}, "inputs": {"revision": text}}));
        stage.runnable["metadata"]["annotations"] = json!({"carto.run/rerun-requested-at": rerun});
        stage.template["spec"]["template"]["metadata"] = json!({"generateName": text});
        stage.template["spec"]["template"]["spec"] = json!(format!("$({text})$"));
        stage.template["spec"]["outputs"] = json!({"out": text});
        stage.walk();
        stage.pass(1);
        stage.walk();
    }
}
