//! Updates that wait until the object is good or has failed.

use std::time::Duration;

use realizer::{StatusKey, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::attribution::{DOCUMENTS, deployed, identity, output, push, says, settles};
use crate::scenario::Scenario;
use crate::validation::{self, TEMPLATES, deployment, second_revision_is_validated};

/// As in the tests of attribution, with a build whose updates wait.
fn documents(policy: &str) -> String {
    let with_policy =
        format!("  updatePolicy: {{{policy}}}\n  imagePath: .status.latestGoodOutput");
    DOCUMENTS.replace("  imagePath: .status.latestGoodOutput", &with_policy)
}

fn scenario(policy: &str) -> Scenario {
    let mut scenario = Scenario::new(&documents(policy));
    scenario.advance();
    scenario
}

const WAIT: &str = "whenReconciling: Wait";

/// Revision 1 is under way.
fn waiting() -> Scenario {
    scenario(WAIT)
}

/// The controller of the build has come to its spec.
fn ends(scenario: &mut Scenario, ready: &str) {
    let revision = asked(scenario);
    let image = format!("image@{}", revision.as_str().unwrap());
    says(scenario, ready, (ready == "True").then_some(&image));
    scenario.advance();
    scenario.advance();
}

/// What the build is asked for.
fn asked(scenario: &mut Scenario) -> Value {
    scenario.cluster.object("build")["spec"]["revision"].clone()
}

/// Somebody asks the build for this.
fn changed(scenario: &mut Scenario, revision: &str) {
    let build = scenario.cluster.object("build");
    build["spec"]["revision"] = json!(revision);
    build["metadata"]["generation"] = json!(7);
    scenario.cluster.tamper("build");
}

fn waits(scenario: &Scenario) -> Vec<String> {
    let waiting = scenario.entry("build")["updates"]["waiting"].as_array();
    let revision = |update: &Value| {
        let text = update["rendering"].as_str().unwrap();
        let object: Value = serde_json::from_str(text).unwrap();
        object["spec"]["revision"].as_str().unwrap().to_owned()
    };
    waiting.into_iter().flatten().map(revision).collect()
}

/// What status holds of the updates of the build.
fn stored(scenario: &mut Scenario) -> &mut Value {
    let resources = scenario.owner["status"]["resources"].as_array_mut();
    let mut entries = resources.unwrap().iter_mut();
    let build = entries.find(|entry| entry["name"] == "build").unwrap();
    &mut build["updates"]
}

fn good(scenario: &Scenario) -> String {
    scenario.step_condition("build", "OutputsGood")
}

#[test]
fn an_update_waits_until_the_object_is_good() {
    let mut scenario = waiting();
    settles(&mut scenario);
    let first = identity(&scenario, "fetch");
    push(&mut scenario, "2");
    assert_eq!(asked(&mut scenario), "1");
    assert_eq!(waits(&scenario), ["2"]);
    assert_eq!(
        good(&scenario),
        "Unknown/Reconciling/resource [build] condition not met: the object has no status yet; no output was good before; 1 update waits"
    );
    assert_eq!(
        scenario.entry("build")["underWay"]["inputs"],
        json!([{"name": "fetch", "identity": first}]),
        "1 is under way"
    );
    settles(&mut scenario);
    says(&mut scenario, "True", Some("image@1"));
    let outcome = scenario.reconcile();
    // It is good, and what comes next is written down before it is applied.
    assert_eq!(
        (outcome.again, outcome.write_now),
        (Some(Duration::ZERO), true)
    );
    assert_eq!(deployed(&mut scenario), "image@1");
    assert_eq!(output(&scenario)["current"], false);
    assert_eq!(
        output(&scenario)["provenance"]["inputs"][0]["identity"],
        first
    );
    assert_eq!(asked(&mut scenario), "1");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
    assert_eq!(waits(&scenario), [""; 0]);
    assert_eq!(deployed(&mut scenario), "image@1");
    ends(&mut scenario, "True");
    assert_eq!(deployed(&mut scenario), "image@2");
    assert_eq!(output(&scenario)["current"], true);
    assert_eq!(good(&scenario), "True/Good/");
    assert_eq!(scenario.owner_condition("Ready"), "True/Ready/");
    settles(&mut scenario);
}

/// The example of the proposal.
#[test]
fn of_1_running_and_2_good_3_good_4_bad_4_is_applied_and_then_3_and_never_2() {
    let mut scenario = waiting();
    for revision in ["2", "3", "4"] {
        push(&mut scenario, revision);
    }
    assert_eq!(waits(&scenario), ["2", "3", "4"]);
    ends(&mut scenario, "True");
    assert_eq!(asked(&mut scenario), "4");
    assert_eq!(deployed(&mut scenario), "image@1", "no success is hidden");
    ends(&mut scenario, "False");
    assert_eq!(asked(&mut scenario), "3");
    assert_eq!(waits(&scenario), ["2"]);
    ends(&mut scenario, "True");
    assert_eq!(asked(&mut scenario), "3");
    assert_eq!(waits(&scenario), [""; 0], "2 is never applied");
    assert_eq!(deployed(&mut scenario), "image@3");
    // What the workload asks for has failed, and that is said.
    assert_eq!(output(&scenario)["current"], false);
    assert_eq!(
        good(&scenario),
        "False/Failed/resource [build] failed condition met: failure condition [.status.conditions[?(@.type==\"Ready\")]\
         .status] was: False; an update that came before it is applied again; the last good outputs are handed on meanwhile"
    );
    settles(&mut scenario);
    push(&mut scenario, "5");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "5");
}

/// A build that reports which revision it has come to, and whether the last try failed, and counts no generations.
fn counts_no_generations() -> Scenario {
    let rules = DOCUMENTS.find("  observedCompletion:").unwrap();
    let template = DOCUMENTS[rules..].find("  template:").unwrap();
    let completion = &DOCUMENTS[rules..rules + template];
    let matches = "  observedMatches: [{input: .spec.revision, output: .status.revision}]
  failed: {key: .status.phase, value: Failed}
";
    let mut scenario = Scenario::new(&documents(WAIT).replace(completion, matches));
    scenario.advance();
    scenario
}

#[test]
fn a_failure_that_may_be_of_the_spec_before_lets_newer_updates_go_on_and_no_earlier_one() {
    let mut scenario = counts_no_generations();
    for revision in ["2", "3", "4"] {
        push(&mut scenario, revision);
    }
    scenario.cluster.object("build")["status"] =
        json!({"revision": "1", "latestGoodOutput": "image@1", "phase": "Done"});
    scenario.advance();
    scenario.advance();
    assert_eq!(asked(&mut scenario), "4");
    scenario.cluster.object("build")["status"]["phase"] = json!("Failed");
    for _ in 0..3 {
        scenario.advance();
        assert_eq!(asked(&mut scenario), "4", "3 has not been tried");
    }
    assert_eq!(deployed(&mut scenario), "image@1");
    assert!(
        good(&scenario).starts_with("False/Failed/"),
        "{}",
        good(&scenario)
    );
    push(&mut scenario, "5");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "5");
    // It still says what came of 4.
    scenario.advance();
    assert_eq!(asked(&mut scenario), "5");
    scenario.cluster.object("build")["status"] =
        json!({"revision": "5", "latestGoodOutput": "image@5", "phase": "Done"});
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@5");
    assert_eq!(waits(&scenario), [""; 0]);
    settles(&mut scenario);
}

#[test]
fn an_update_of_an_object_that_is_good_is_applied_as_soon_as_it_is_written_down() {
    let mut scenario = waiting();
    ends(&mut scenario, "True");
    scenario.owner["spec"]["image"] = json!("2");
    let outcome = scenario.reconcile();
    assert_eq!(outcome.again, Some(Duration::ZERO));
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
    assert_eq!(deployed(&mut scenario), "image@1");
    settles(&mut scenario);
}

#[test]
fn what_somebody_changes_while_updates_wait_is_put_back_to_what_was_applied() {
    let mut scenario = waiting();
    push(&mut scenario, "2");
    changed(&mut scenario, "evil");
    says(&mut scenario, "True", Some("image@evil"));
    scenario.advance();
    assert_eq!(asked(&mut scenario), "1");
    assert_eq!(deployed(&mut scenario), Value::Null);
    assert_eq!(waits(&scenario), ["2"]);
    // Somebody writes what waits: it is not its turn.
    changed(&mut scenario, "2");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "1");
}

fn kept_rendering(scenario: &Scenario) -> &Value {
    &scenario.entry("build")["updates"]["applied"]["rendering"]
}

#[test]
fn a_rendering_is_kept_while_its_object_is_not_good_and_no_longer() {
    let mut scenario = waiting();
    assert!(kept_rendering(&scenario).is_string());
    ends(&mut scenario, "True");
    assert_eq!(*kept_rendering(&scenario), Value::Null);
    settles(&mut scenario);
    // It is not put off that the object is under way by itself, but nothing else waits for that to be written.
    says(&mut scenario, "Unknown", None);
    let outcome = scenario.reconcile();
    assert!(outcome.changed && !outcome.write_now);
    assert!(kept_rendering(&scenario).is_string());
    push(&mut scenario, "2");
    changed(&mut scenario, "evil");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "1", "it is put back");
    ends(&mut scenario, "True");
    assert_eq!(asked(&mut scenario), "2");
}

#[test]
fn an_update_waits_for_an_object_that_came_to_be_under_way_at_the_same_time() {
    let mut scenario = waiting();
    let first = identity(&scenario, "fetch");
    ends(&mut scenario, "True");
    says(&mut scenario, "Unknown", None);
    push(&mut scenario, "2");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "1");
    assert_eq!(waits(&scenario), ["2"]);
    settles(&mut scenario);
    // What it comes to is accepted, as what it is, before the update is applied.
    says(&mut scenario, "True", Some("image@1-rebuilt"));
    scenario.advance();
    assert_eq!(output(&scenario)["value"], "image@1-rebuilt");
    assert_eq!(
        output(&scenario)["provenance"]["inputs"][0]["identity"],
        first
    );
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
}

#[test]
fn what_others_have_made_of_an_object_that_was_good_keeps_no_update_away() {
    let mut scenario = waiting();
    ends(&mut scenario, "True");
    changed(&mut scenario, "evil");
    says(&mut scenario, "Unknown", Some("image@evil"));
    push(&mut scenario, "2");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
    assert_eq!(output(&scenario)["value"], "image@1");
    assert_eq!(deployed(&mut scenario), "image@1");
}

#[test]
fn an_update_that_comes_while_others_have_changed_the_object_is_written_down_before_it_is_applied()
{
    let mut scenario = waiting();
    ends(&mut scenario, "True");
    changed(&mut scenario, "evil");
    scenario.owner["spec"]["image"] = json!("2");
    // The process is killed before status says what was applied.
    scenario.advance_and_die();
    assert_eq!(asked(&mut scenario), "evil");
    push(&mut scenario, "3");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "3");
    // This one is under way, and status knows.
    scenario.owner["spec"]["image"] = json!("4");
    scenario.advance_and_die();
    scenario.advance();
    assert_eq!(asked(&mut scenario), "3");
    assert_eq!(waits(&scenario), ["4"]);
}

#[test]
fn of_an_object_that_is_another_one_nothing_is_known_and_what_is_in_it_may_end() {
    let mut scenario = waiting();
    ends(&mut scenario, "True");
    scenario.cluster.prune("build");
    scenario.owner["spec"]["image"] = json!("2");
    scenario.advance_and_die();
    assert_eq!(asked(&mut scenario), "2");
    push(&mut scenario, "3");
    assert_eq!(asked(&mut scenario), "2", "it is under way");
    ends(&mut scenario, "True");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "3");
}

#[test]
fn an_object_that_was_deleted_is_made_as_it_was_applied() {
    let mut scenario = waiting();
    push(&mut scenario, "2");
    scenario.cluster.prune("build");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "1");
}

#[test]
fn an_update_that_does_not_end_in_time_gives_way_and_a_warning_says_so() {
    let mut scenario = scenario("whenReconciling: Wait, timeout: 10m");
    scenario.owner["spec"]["image"] = json!("2");
    let outcome = scenario.reconcile();
    assert_eq!(outcome.again, Some(Duration::from_mins(9)));
    scenario.now += jiff::Span::new().minutes(9);
    let outcome = scenario.reconcile();
    let event = outcome
        .events
        .iter()
        .find(|it| it.reason == "UpdateTimedOut");
    let event = event.unwrap();
    assert!(event.warning);
    assert_eq!(
        event.message,
        "[build] update 1 did not end within the timeout of its template; update 2 takes its place"
    );
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
}

#[test]
fn with_timeout_0_an_update_waits_for_ever() {
    let mut scenario = scenario("whenReconciling: Wait, timeout: '0'");
    push(&mut scenario, "2");
    scenario.now += jiff::Span::new().hours(1000);
    let outcome = scenario.reconcile();
    assert_eq!(outcome.again, None);
    assert_eq!(asked(&mut scenario), "1");
}

#[test]
fn an_update_that_the_api_server_refuses_has_failed() {
    let mut scenario = waiting();
    ends(&mut scenario, "True");
    let refused = SubmitFailure {
        kind: SubmitFailureKind::Rejected,
        message: "patch: no".to_owned(),
    };
    scenario.cluster.failing.insert("build".to_owned(), refused);
    for revision in ["2", "3"] {
        push(&mut scenario, revision);
        scenario.advance();
    }
    let updates = &scenario.entry("build")["updates"];
    assert_eq!(
        updates["failure"],
        "unable to apply object [ns/build] for resource [build] in supply chain [chain]: patch: no"
    );
    assert_eq!(waits(&scenario), [""; 0]);
    scenario.cluster.failing.clear();
    scenario.advance();
    assert_eq!(asked(&mut scenario), "3");
    assert_eq!(deployed(&mut scenario), "image@1");
}

#[test]
fn an_api_server_that_cannot_answer_makes_no_update_fail() {
    let mut scenario = waiting();
    let overloaded = SubmitFailure {
        kind: SubmitFailureKind::Unavailable,
        message: "patch: later".to_owned(),
    };
    scenario
        .cluster
        .failing
        .insert("build".to_owned(), overloaded);
    push(&mut scenario, "2");
    assert_eq!(waits(&scenario), ["2"]);
    assert_eq!(asked(&mut scenario), "1");
}

/// Nothing of it may stand in a status, so the newest waits as nothing but a number.
#[test]
fn a_rendering_with_a_value_of_a_secret_is_not_kept_and_waits_all_the_same() {
    let secret = documents(WAIT).replace(
        "kind: ConfigMap\n    metadata: {name: source}",
        "kind: Secret\n    metadata: {name: source}",
    );
    let mut scenario = Scenario::new(&secret);
    scenario.key = StatusKey::new(b"of the installation");
    scenario.owner["spec"]["image"] = json!("hunter-1");
    scenario.advance();
    for revision in ["hunter-2", "hunter-3"] {
        push(&mut scenario, revision);
    }
    assert_eq!(asked(&mut scenario), "hunter-1");
    let updates = scenario.entry("build")["updates"].clone();
    assert!(!updates.to_string().contains("hunter"), "{updates}");
    assert_eq!(updates["waiting"].as_array().unwrap().len(), 1, "depth 1");
    assert_eq!(
        scenario.step_condition("build", "ResourceSubmitted"),
        "Unknown/ConditionNotMet/resource [build] condition not met: an earlier update is under way; the newest waits until it \
         has ended"
    );
    settles(&mut scenario);
    says(&mut scenario, "True", Some("image@1"));
    scenario.advance();
    assert_eq!(asked(&mut scenario), "hunter-3");
    settles(&mut scenario);
    says(&mut scenario, "True", Some("image@3"));
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@3");
    settles(&mut scenario);
}

#[test]
fn without_a_key_an_update_with_a_value_of_a_secret_is_applied_at_once() {
    let secret = documents(WAIT).replace(
        "kind: ConfigMap\n    metadata: {name: source}",
        "kind: Secret\n    metadata: {name: source}",
    );
    let mut scenario = Scenario::new(&secret);
    scenario.key = StatusKey::NONE;
    scenario.advance();
    push(&mut scenario, "hunter-2");
    assert_eq!(asked(&mut scenario), "hunter-2");
    settles(&mut scenario);
}

/// A backup may bring an owner back with its status and another uid. What names the former one as owner would be deleted.
#[test]
fn what_was_rendered_for_an_owner_of_another_uid_is_not_applied() {
    let mut scenario = waiting();
    push(&mut scenario, "2");
    scenario.cluster.prune("build");
    scenario.owner["metadata"]["uid"] = json!("another");
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
    let build = scenario.cluster.object("build");
    assert_eq!(build["metadata"]["ownerReferences"][0]["uid"], "another");
}

#[test]
fn runs_wait_for_one_another() {
    let runs = documents(WAIT).replace(
        "metadata: {name: build}\n    spec:",
        "metadata: {generateName: build-}\n    spec:",
    );
    let runs = runs.replace("  imagePath:", "  lifecycle: immutable\n  imagePath:");
    let mut scenario = Scenario::new(&runs);
    scenario.advance();
    let runs = |scenario: &Scenario| {
        let runs = scenario.entry("build")["runs"].as_array().unwrap();
        let names = runs
            .iter()
            .map(|run| run["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let say = |scenario: &mut Scenario, name: &str, ready: &str| {
        let run = scenario.cluster.object(name);
        run["status"] = json!({"conditions": [{"type": "Ready", "status": ready}], "latestGoodOutput": "image@run"});
    };
    for revision in ["2", "3"] {
        push(&mut scenario, revision);
    }
    assert_eq!(runs(&scenario).len(), 1);
    let first = runs(&scenario)[0].clone();
    say(&mut scenario, &first, "True");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "image@run");
    scenario.advance();
    assert_eq!(runs(&scenario).len(), 2);
    let second = runs(&scenario)[0].clone();
    assert_eq!(scenario.cluster.object(&second)["spec"]["revision"], "3");
    settles(&mut scenario);
    say(&mut scenario, &second, "True");
    scenario.advance();
    assert_eq!(good(&scenario), "True/Good/");
    settles(&mut scenario);
}

#[test]
fn without_the_policy_nothing_waits_any_more() {
    let mut scenario = waiting();
    push(&mut scenario, "2");
    let plain = Scenario::new(DOCUMENTS);
    scenario.templates = plain.templates;
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
    assert_eq!(scenario.entry("build")["updates"], Value::Null);
    settles(&mut scenario);
}

#[test]
fn a_template_that_reads_something_else_forgets_what_waits() {
    let mut scenario = waiting();
    push(&mut scenario, "2");
    let other = documents(WAIT).replace(".status.latestGoodOutput", ".status.image");
    scenario.templates = Scenario::new(&other).templates;
    scenario.advance();
    assert_eq!(asked(&mut scenario), "2");
    assert_eq!(waits(&scenario), [""; 0]);
}

/// As the deployment template of the tests of validations, with updates that wait.
fn deploy_template() -> String {
    let start = TEMPLATES.find("kind: ClusterDeploymentTemplate").unwrap();
    let template = TEMPLATES[start..].split("---\n").next().unwrap();
    template.replace(
        "  observedCompletion:",
        "  updatePolicy: {whenReconciling: Wait}\n  observedCompletion:",
    )
}

#[test]
fn an_environment_is_kept_by_its_lock_whatever_the_policy_says() {
    let mut scenario = second_revision_is_validated();
    scenario.apply(&deploy_template());
    scenario.advance();
    assert_eq!(validation::deployed(&mut scenario), "B");
    validation::push(&mut scenario, "C");
    deployment(&mut scenario, "Ready");
    scenario.advance();
    assert_eq!(
        validation::deployed(&mut scenario),
        "B",
        "it is not validated"
    );
    assert_eq!(scenario.entry("deployer")["updates"], Value::Null);
}

#[test]
fn a_deployment_hands_on_the_one_that_it_has_deployed_while_another_waits() {
    let documents = format!(
        "{TEMPLATES}
kind: ClusterDelivery
apiVersion: carto.run/v1alpha1
metadata: {{name: delivery}}
spec:
  selector: {{app: web}}
  resources:
  - {{name: fetch, templateRef: {{kind: ClusterSourceTemplate, name: src}}}}
  - name: deployer
    templateRef: {{kind: ClusterDeploymentTemplate, name: deploy}}
    deployment: {{resource: fetch}}
  - name: promoter
    templateRef: {{kind: ClusterTemplate, name: promote}}
    sources: [{{name: source, resource: deployer}}]
"
    );
    let mut scenario = Scenario::new(&documents);
    scenario.apply(&deploy_template());
    scenario.advance();
    validation::push(&mut scenario, "B");
    scenario.advance();
    assert_eq!(validation::deployed(&mut scenario), "A");
    deployment(&mut scenario, "Ready");
    scenario.advance();
    let promoted = scenario.cluster.object("promoted")["data"]["revision"].clone();
    assert_eq!(promoted, "A", "not B, which comes in");
    scenario.advance();
    assert_eq!(validation::deployed(&mut scenario), "B");
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "A");
    deployment(&mut scenario, "Ready");
    scenario.advance();
    assert_eq!(scenario.cluster.object("promoted")["data"]["revision"], "B");
}

/// Each write of our status makes another rendering, which must not be another update.
#[test]
fn a_template_that_reads_our_own_status_has_no_updates_by_it() {
    let reading = documents(WAIT).replace(
        "spec: {revision: $(source.revision)$}",
        "spec: {revision: $(source.revision)$, seen: $(workload.metadata)$}",
    );
    let mut scenario = Scenario::new(&reading);
    for version in 1..5 {
        scenario.owner["metadata"]["resourceVersion"] = json!(version.to_string());
        scenario.advance();
    }
    assert_eq!(scenario.entry("build")["updates"]["newest"], 1);
    settles(&mut scenario);
    push(&mut scenario, "2");
    assert_eq!(waits(&scenario), ["2"]);
}

#[test]
fn status_keeps_of_a_rendering_only_what_the_step_does_not_put_on_it_again() {
    let mut scenario = waiting();
    push(&mut scenario, "2");
    let updates = scenario.entry("build")["updates"].clone();
    for update in [&updates["applied"], &updates["waiting"][0]] {
        let kept: Value = serde_json::from_str(update["rendering"].as_str().unwrap()).unwrap();
        assert_eq!(
            kept["metadata"],
            json!({"name": "build", "labels": {}}),
            "{kept}"
        );
    }
    ends(&mut scenario, "True");
    let applied = scenario.cluster.object("build").clone();
    assert_eq!(applied["spec"]["revision"], "2");
    let metadata = &applied["metadata"];
    assert_eq!(metadata["labels"]["carto.run/resource-name"], "build");
    assert_eq!(metadata["ownerReferences"][0]["kind"], "Workload");
}

#[test]
fn a_rendering_that_a_former_version_kept_whole_is_applied_all_the_same() {
    let mut scenario = waiting();
    for revision in ["2", "3"] {
        push(&mut scenario, revision);
    }
    let metadata = scenario.cluster.object("build")["metadata"].clone();
    let waiting = stored(&mut scenario)["waiting"].as_array_mut();
    for update in waiting.unwrap() {
        let mut whole: Value = serde_json::from_str(update["rendering"].as_str().unwrap()).unwrap();
        for field in ["labels", "namespace", "ownerReferences"] {
            whole["metadata"][field] = metadata[field].clone();
        }
        update["rendering"] = json!(whole.to_string());
    }
    ends(&mut scenario, "True");
    assert_eq!(asked(&mut scenario), "3");
    ends(&mut scenario, "False");
    assert_eq!(asked(&mut scenario), "2", "3 failed, and 2 came before it");
}

#[test]
fn a_rendering_that_is_not_what_its_digest_says_is_not_applied() {
    let mut scenario = waiting();
    push(&mut scenario, "2");
    let applied = &mut stored(&mut scenario)["applied"];
    let kept = applied["rendering"].as_str().unwrap();
    let mut forged: Value = serde_json::from_str(kept).unwrap();
    forged["spec"]["revision"] = json!("forged");
    applied["rendering"] = json!(forged.to_string());
    scenario.advance();
    assert_eq!(
        asked(&mut scenario),
        "1",
        "it is under way, and is left as it is"
    );
    ends(&mut scenario, "True");
    assert_eq!(asked(&mut scenario), "2");
}
