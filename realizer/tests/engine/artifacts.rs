//! Outputs that are kept as Artifacts: those that are too large for status, and those of the past.

use serde_json::{Value, json};

use crate::attribution::{DOCUMENTS, built, deployed, output, push, says, settles, started};
use crate::scenario::Scenario;

/// More than status keeps.
fn large(revision: &str) -> String {
    format!("image@{revision}-{}", "x".repeat(20 * 1024))
}

/// The build has made a large output of the revision that it is to build.
fn builds(scenario: &mut Scenario, revision: &str, output: &str) {
    push(scenario, revision);
    says(scenario, "True", Some(output));
    scenario.advance();
    assert_eq!(deployed(scenario), *output);
}

/// A large output is deployed, and the build of the next revision is under way.
fn waiting() -> Scenario {
    let mut scenario = built();
    builds(&mut scenario, "2", &large("2"));
    push(&mut scenario, "3");
    scenario
}

/// With this many outputs kept of each step.
fn retaining(most: u32) -> Scenario {
    let spec = format!("spec:\n  artifacts: {{retain: {most}}}\n  selector:");
    let mut scenario = Scenario::new(&DOCUMENTS.replace("spec:\n  selector:", &spec));
    scenario.advance();
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    scenario
}

fn only(scenario: &Scenario) -> &str {
    let mut names = scenario.artifacts.held.keys();
    let name = names.next().unwrap();
    assert_eq!(names.next(), None);
    name
}

fn value(scenario: &mut Scenario) -> &mut Value {
    let name = only(scenario).to_owned();
    let artifact = scenario.artifacts.held.get_mut(&name).unwrap();
    &mut artifact["spec"]["outputs"][0]["value"]
}

fn named(scenario: &Scenario, step: &str) -> Vec<String> {
    let named = scenario.entry(step)["artifacts"].as_array();
    let named = named.into_iter().flatten();
    named
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_large_output_is_kept_in_one_artifact_and_outlives_the_state_of_its_object() {
    let mut scenario = waiting();
    assert_eq!(scenario.artifacts.log.len(), 1);
    assert_eq!(named(&scenario, "build"), [only(&scenario)]);
    assert_eq!(output(&scenario)["value"], Value::Null);
    let artifact = &scenario.artifacts.held[only(&scenario)];
    assert_eq!(
        artifact["metadata"]["ownerReferences"][0]["uid"],
        "owner-uid"
    );
    assert_eq!(artifact["spec"]["step"], "build");

    scenario.cluster.prune("application");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), large("2"), "it is handed on");
    says(&mut scenario, "False", None);
    scenario.advance();
    assert!(
        scenario
            .step_condition("build", "OutputsGood")
            .ends_with("the last good outputs are handed on meanwhile")
    );
    settles(&mut scenario);
    assert_eq!(scenario.artifacts.log.len(), 1, "nothing more is written");
}

#[test]
fn an_artifact_goes_after_the_status_names_another_one_or_none() {
    let mut scenario = waiting();
    let first = only(&scenario).to_owned();
    says(&mut scenario, "True", Some(&large("3")));
    scenario.advance();
    let second = only(&scenario).to_owned();
    assert_eq!(named(&scenario, "build"), [&*second]);
    builds(&mut scenario, "4", "image@4");
    assert_eq!(
        scenario.artifacts.log,
        [
            format!("+{first}"),
            format!("+{second}"),
            format!("-{first}"),
            format!("-{second}")
        ]
    );
    settles(&mut scenario);
}

#[test]
fn what_is_small_is_kept_in_status_and_nowhere_else() {
    let scenario = built();
    assert_eq!(scenario.artifacts.log, [""; 0]);
    assert_eq!(scenario.entry("build").get("artifacts"), None);
}

/// The values of a step count as they stand in status, with their quotes.
#[test]
fn eight_kibibytes_are_kept_in_status_and_one_byte_more_is_not() {
    for (length, is_in_status) in [(8190, true), (8191, false)] {
        let mut scenario = started();
        let value = "x".repeat(length);
        says(&mut scenario, "True", Some(&value));
        scenario.advance();
        push(&mut scenario, "2");
        let kept = output(&scenario)["value"].as_str().map(str::len);
        assert_eq!(kept, is_in_status.then_some(length));
        assert_eq!(scenario.artifacts.log.is_empty(), is_in_status, "{length}");
        scenario.cluster.prune("application");
        scenario.advance();
        assert_eq!(deployed(&mut scenario), value);
    }
}

/// Whoever can write Artifacts, and is not the controller, hands nothing on.
#[test]
fn a_forged_an_edited_and_a_swapped_artifact_are_not_handed_on() {
    for change in ["edited", "swapped", "deleted", "another owner's"] {
        let mut scenario = waiting();
        let name = only(&scenario).to_owned();
        match change {
            "edited" => *value(&mut scenario) = json!(large("evil")),
            "swapped" => {
                let artifact = scenario.artifacts.held.get_mut(&name).unwrap();
                artifact["spec"] = json!({"outputs": [{"name": "image", "value": large("evil")}]});
            }
            "deleted" => {
                scenario.artifacts.held.remove(&name);
            }
            _ => {
                let artifact = scenario.artifacts.held.get_mut(&name).unwrap();
                artifact["spec"]["outputs"] = json!([{"name": "config", "value": large("2")}]);
            }
        }
        scenario.cluster.prune("application");
        scenario.advance();
        assert_eq!(deployed(&mut scenario), Value::Null, "{change}");
        let told = scenario.step_condition("build", "OutputsGood");
        assert!(
            told.contains(&format!("kept in Artifact [{name}], which ")),
            "{told}"
        );
        settles(&mut scenario);
        assert_eq!(
            scenario.artifacts.log.len(),
            1,
            "nothing can be put back: {change}"
        );
    }
}

#[test]
fn an_artifact_is_put_back_while_its_output_is_good() {
    let mut scenario = built();
    builds(&mut scenario, "2", &large("2"));
    let status = scenario.owner["status"].clone();
    let whole = scenario.artifacts.held.clone();
    *value(&mut scenario) = json!(large("evil"));
    scenario.advance();
    assert_eq!(scenario.artifacts.held, whole);
    scenario.artifacts.held.clear();
    scenario.advance();
    assert_eq!(scenario.artifacts.held, whole);
    let name = only(&scenario).to_owned();
    scenario.artifacts.held.get_mut(&name).unwrap()["metadata"]["ownerReferences"] = json!([]);
    scenario.advance();
    assert_eq!(
        scenario.artifacts.held, whole,
        "or it would outlive its owner"
    );
    assert_eq!(scenario.owner["status"], status, "and no status is written");
}

#[test]
fn where_none_can_be_written_the_step_waits_and_says_what_to_do() {
    let mut scenario = built();
    scenario.artifacts.unwritable = true;
    builds(&mut scenario, "2", &large("2"));
    assert_eq!(named(&scenario, "build"), [""; 0]);
    scenario.artifacts.trouble = Some("kind Artifact is not installed".to_owned());
    push(&mut scenario, "3");
    let told = scenario.step_condition("build", "OutputsGood");
    assert!(
        told.ends_with("no Artifact keeps them: kind Artifact is not installed: later steps wait"),
        "{told}"
    );
    // It is there again, and what was refused is tried again.
    scenario.artifacts.trouble = None;
    scenario.artifacts.refusal = Some("it exceeds a quota".to_owned());
    scenario.advance();
    let told = scenario.step_condition("build", "OutputsGood");
    assert!(
        told.ends_with("no Artifact keeps them: it exceeds a quota: later steps wait"),
        "{told}"
    );
    scenario.artifacts.unwritable = false;
    says(&mut scenario, "True", Some(&large("3")));
    scenario.advance();
    assert_eq!(named(&scenario, "build"), [only(&scenario)]);
}

#[test]
fn one_that_cannot_be_read_for_a_while_stays_named() {
    let mut scenario = waiting();
    let named_before = named(&scenario, "build");
    scenario.artifacts.trouble = Some("it is not listed yet".to_owned());
    let held = std::mem::take(&mut scenario.artifacts.held);
    scenario.advance();
    assert_eq!(named(&scenario, "build"), named_before);
    let told = scenario.step_condition("build", "OutputsGood");
    assert!(
        told.contains("which cannot be read: it is not listed yet"),
        "{told}"
    );
    scenario.artifacts.trouble = None;
    scenario.artifacts.held = held;
    scenario.cluster.prune("application");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), large("2"));
}

#[test]
fn what_no_artifact_takes_is_told_as_ever() {
    let mut scenario = built();
    builds(&mut scenario, "2", &"x".repeat(300 * 1024));
    assert_eq!(scenario.artifacts.log, [""; 0]);
    push(&mut scenario, "3");
    let told = scenario.step_condition("build", "OutputsGood");
    assert!(
        told.ends_with("the last good outputs are too large to be kept: later steps wait"),
        "{told}"
    );
}

#[test]
fn a_value_that_comes_from_a_secret_is_kept_in_no_artifact() {
    let documents = DOCUMENTS.replace(
        "kind: ConfigMap\n    metadata: {name: source}\n    data:",
        "kind: Secret\n    metadata: {name: source}\n    data:",
    );
    let documents = documents.replace(
        "spec:\n  selector:",
        "spec:\n  artifacts: {retain: 3}\n  selector:",
    );
    let mut scenario = Scenario::new(&documents);
    scenario.advance();
    says(
        &mut scenario,
        "True",
        Some(&format!("{}1", "of https://example.com/app ".repeat(1000))),
    );
    scenario.advance();
    assert_eq!(output(&scenario)["preview"], "<redacted>");
    assert_eq!(scenario.artifacts.log, [""; 0]);
}

#[test]
fn the_newest_outputs_of_each_step_are_kept_with_what_made_them() {
    let mut scenario = retaining(3);
    for revision in 2..=30 {
        builds(
            &mut scenario,
            &revision.to_string(),
            &format!("image@{revision}"),
        );
    }
    assert_eq!(scenario.artifacts.held.len(), 6);
    let values = |scenario: &Scenario| -> Vec<Value> {
        let names = named(scenario, "build").into_iter();
        names
            .map(|name| scenario.artifacts.held[&name]["spec"]["outputs"][0]["value"].clone())
            .collect()
    };
    assert_eq!(values(&scenario), ["image@30", "image@29", "image@28"]);
    let written = scenario
        .artifacts
        .log
        .iter()
        .filter(|it| it.starts_with('+'));
    assert_eq!(written.count(), 60, "each once");
    settles(&mut scenario);

    // Or the next one might come before a status names this one.
    push(&mut scenario, "31");
    says(&mut scenario, "True", Some("image@31"));
    let outcome = scenario.reconcile();
    assert!(outcome.write_now);
    builds(&mut scenario, "30", "image@30");

    // One that was there before becomes the newest again.
    builds(&mut scenario, "29", "image@29");
    assert_eq!(values(&scenario), ["image@29", "image@30", "image@31"]);
    let last = &scenario.artifacts.held[&named(&scenario, "build")[0]];
    let artifact: api_types::Artifact = serde_json::from_value(last.clone()).unwrap();
    let identity = artifact
        .spec
        .provenance
        .as_ref()
        .map(|it| it.identity.clone());
    assert_eq!(
        realizer::identity_of(&artifact.spec),
        identity,
        "it can be computed anew"
    );
    let mut forged = artifact.spec;
    forged.outputs[0].value = json!("evil");
    assert_ne!(realizer::identity_of(&forged), identity);
}

#[test]
fn one_of_the_past_that_was_changed_is_kept_no_longer() {
    let mut scenario = retaining(3);
    builds(&mut scenario, "2", "image@2");
    let first = named(&scenario, "build")[1].clone();
    let artifact = scenario.artifacts.held.get_mut(&first).unwrap();
    artifact["spec"]["outputs"][0]["value"] = json!("evil");
    scenario.advance();
    assert_eq!(named(&scenario, "build").len(), 1);
    assert!(!scenario.artifacts.held.contains_key(&first));
    settles(&mut scenario);
}

#[test]
fn an_artifact_that_nobody_named_is_removed() {
    let mut scenario = retaining(2);
    let (name, artifact) = scenario.artifacts.held.first_key_value().unwrap();
    let (forged, artifact) = (format!("{name}-future"), artifact.clone());
    scenario.artifacts.held.insert(forged.clone(), artifact);
    scenario.advance();
    assert!(!scenario.artifacts.held.contains_key(&forged));
    assert_eq!(scenario.artifacts.held.len(), 2);
}

#[test]
fn all_go_when_none_are_wanted_and_those_of_a_step_when_it_goes() {
    let mut scenario = retaining(3);
    assert_eq!(scenario.artifacts.held.len(), 2);
    scenario.blueprints[0]["spec"]["resources"]
        .as_array_mut()
        .unwrap()
        .remove(1);
    scenario.advance();
    assert_eq!(scenario.artifacts.held.len(), 1);
    scenario.blueprints[0]["spec"]["artifacts"]["retain"] = json!(0);
    scenario.advance();
    assert_eq!(scenario.artifacts.held.len(), 0);
    settles(&mut scenario);
}
