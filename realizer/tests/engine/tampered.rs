//! What the object of an environment says of itself, where that is not what status says: statuses of a former version, lost
//! statuses, and what somebody else wrote.

use serde_json::{Value, json};

use crate::scenario::Scenario;
use crate::validation::{check, deployed, deployment, push, run, sequence, verdicts};

const RECORD: &str = "carto.run/environment";

/// Revision A is being tested.
fn under_test() -> Scenario {
    let mut scenario = sequence();
    scenario.advance_with_arrival();
    deployment(&mut scenario, "Ready");
    scenario.advance();
    assert_eq!(
        verdicts(&scenario),
        ["tester=Running@1", "checker=Pending@1"]
    );
    scenario
}

fn says(scenario: &mut Scenario) -> String {
    let annotation = &scenario.cluster.object("app")["metadata"]["annotations"][RECORD];
    annotation.as_str().unwrap().to_owned()
}

fn forge(scenario: &mut Scenario, field: &str, value: Value) {
    let mut record: Value = serde_json::from_str(&says(scenario)).unwrap();
    record[field] = value;
    // As with any other change, what is there is not as we wrote it.
    let annotations = &mut scenario.cluster.object("app")["metadata"]["annotations"];
    annotations[RECORD] = json!(record.to_string());
    scenario.cluster.tamper("app");
}

fn environment(scenario: &Scenario) -> &Value {
    &scenario.owner["status"]["environments"][0]
}

/// The status as the version before wrote it.
fn former(scenario: &mut Scenario) {
    let deployed = &mut scenario.owner["status"]["environments"][0]["deployed"];
    let deployed = deployed.as_object_mut().unwrap();
    // That version wrote the object first.
    let record = deployed.remove("record").unwrap();
    let record: Value = serde_json::from_str(record.as_str().unwrap()).unwrap();
    deployed.insert("since".to_owned(), record["started"].clone());
}

fn promoted(scenario: &mut Scenario) -> Value {
    if !scenario.cluster.names().contains(&"promoted") {
        return Value::Null;
    }
    scenario.cluster.object("promoted")["data"]["revision"].clone()
}

#[test]
fn a_status_of_a_former_version_goes_on_where_it_was() {
    let mut scenario = under_test();
    former(&mut scenario);
    let record = says(&mut scenario);
    push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "A");
    assert_eq!(
        environment(&scenario)["deployed"]["record"],
        record.as_str()
    );
    assert_eq!(
        verdicts(&scenario),
        ["tester=Running@1", "checker=Pending@1"]
    );
    run(&mut scenario, "run-1", "True");
    scenario.advance();
    check(&mut scenario);
    scenario.advance();
    assert_eq!(promoted(&mut scenario), "A");
    assert!(!scenario.cluster.names().contains(&"run-2"));
}

#[test]
fn what_a_former_status_does_not_bear_out_is_not_believed() {
    let mut scenario = under_test();
    former(&mut scenario);
    forge(&mut scenario, "revision", json!("EVIL"));
    push(&mut scenario, "B");
    let told = scenario.reconcile();
    assert!(
        told.events
            .iter()
            .any(|event| event.reason == "RecordDisregarded" && event.warning)
    );
    for _ in 0..2 {
        assert_eq!(deployed(&mut scenario), "A");
        assert_eq!(environment(&scenario)["deployed"]["revision"], "A");
        scenario.advance();
    }
    // How it was rendered is not known any more, so that it is tested again.
    run(&mut scenario, "run-2", "True");
    scenario.advance();
    check(&mut scenario);
    scenario.advance();
    assert_eq!(promoted(&mut scenario), "A");
}

#[test]
fn a_forged_record_is_told_once_and_put_back() {
    let mut scenario = under_test();
    let before = says(&mut scenario);
    forge(&mut scenario, "revision", json!("EVIL"));
    let told = scenario.reconcile();
    assert_eq!(
        (told.again, told.write_now),
        (Some(std::time::Duration::ZERO), true)
    );
    assert!(environment(&scenario)["disregarded"].is_string());
    let told = scenario.reconcile_at_once();
    assert!(
        !told
            .events
            .iter()
            .any(|event| event.reason == "RecordDisregarded")
    );
    assert_eq!(says(&mut scenario), before);
    assert_eq!(environment(&scenario).get("disregarded"), None);
    assert_eq!(
        verdicts(&scenario),
        ["tester=Running@1", "checker=Pending@1"]
    );
    assert!(!scenario.cluster.names().contains(&"run-2"));
}

#[test]
fn a_lost_status_is_found_again_where_the_same_is_rendered() {
    let mut scenario = under_test();
    scenario.owner["status"] = json!({});
    scenario.advance();
    scenario.advance();
    assert_eq!(
        verdicts(&scenario),
        ["tester=Running@1", "checker=Pending@1"]
    );
    assert!(!scenario.cluster.names().contains(&"run-2"));
    run(&mut scenario, "run-1", "True");
    scenario.advance();
    check(&mut scenario);
    scenario.advance();
    assert_eq!(promoted(&mut scenario), "A");
}

#[test]
fn what_only_the_object_says_is_kept_while_it_is_tested_and_never_promoted() {
    let mut scenario = under_test();
    scenario.owner["status"] = json!({});
    push(&mut scenario, "B");
    for _ in 0..3 {
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "A");
        assert_eq!(environment(&scenario)["deployed"]["unproven"], true);
        assert_eq!(
            verdicts(&scenario),
            ["tester=Running@1", "checker=Skipped@1"]
        );
    }
    run(&mut scenario, "run-1", "True");
    scenario.advance_with_arrival();
    assert_eq!(deployed(&mut scenario), "B");
    assert_eq!(
        verdicts(&scenario),
        ["tester=Pending@2", "checker=Pending@2"]
    );
    assert_eq!(promoted(&mut scenario), Value::Null);
}

#[test]
fn what_only_an_object_says_that_nobody_tests_gives_way_at_once() {
    let mut scenario = under_test();
    scenario.owner["status"] = json!({});
    forge(&mut scenario, "revision", json!("EVIL"));
    push(&mut scenario, "B");
    scenario.advance_with_arrival();
    assert_eq!(deployed(&mut scenario), "B");
    assert_eq!(
        verdicts(&scenario),
        ["tester=Pending@2", "checker=Pending@2"]
    );
}

/// A time limit counts from when status saw the arrival, not from when the object says.
#[test]
fn a_start_long_ago_ends_nothing() {
    let mut scenario = under_test();
    forge(&mut scenario, "started", json!("1970-01-01T00:00:00Z"));
    push(&mut scenario, "B");
    for _ in 0..3 {
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "A");
    }
    assert_eq!(
        verdicts(&scenario),
        ["tester=Running@1", "checker=Pending@1"]
    );
}
