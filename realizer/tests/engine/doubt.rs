//! Objects that somebody else changes, of rules that compare some fields and do not ask about the whole spec.

use std::time::Duration;

use serde_json::{Value, json};

use crate::attribution::{DOCUMENTS, deployed, push, settles};
use crate::scenario::Scenario;

const MATCHES: &str = "observedMatches: [{input: .spec.revision, output: .status.revision}]";
const REPORTS: &str =
    "inputsOnStatus: [{templatingContextPath: source.revision, objectPath: .status.revision}]";

/// The documents with this rule for the build.
fn documents(rule: &str) -> String {
    let rules = DOCUMENTS.find("  observedCompletion:").unwrap();
    let template = DOCUMENTS[rules..].find("  template:").unwrap();
    let completion = &DOCUMENTS[rules..rules + template];
    DOCUMENTS
        .replace(completion, &format!("  {rule}\n"))
        .replace(
            "{revision: $(source.revision)$}\n---\nkind: ClusterTemplate",
            "{revision: $(source.revision)$, builder: good}\n---\nkind: ClusterTemplate",
        )
}

/// Revision 1 is built by the good builder, and deployed. What says so is this rule.
fn built(rule: &str) -> Scenario {
    let mut scenario = Scenario::new(&documents(rule));
    scenario.advance();
    builds(&mut scenario);
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "good@1");
    scenario
}

/// The controller of the build makes what it is asked for.
fn builds(scenario: &mut Scenario) {
    let build = scenario.cluster.object("build");
    let spec = &build["spec"];
    let (builder, revision) = (
        spec["builder"].as_str().unwrap(),
        spec["revision"].as_str().unwrap(),
    );
    let image = format!("{builder}@{revision}");
    let revision = revision.to_owned();
    let status = &mut build["status"];
    status["latestGoodOutput"] = json!(image);
    status["revision"] = json!(revision);
}

/// Somebody asks for another builder, and gets what it makes.
fn builds_evil(scenario: &mut Scenario) {
    changes(scenario, "builder", "evil");
    builds(scenario);
}

fn changes(scenario: &mut Scenario, field: &str, value: &str) {
    scenario.cluster.object("build")["spec"][field] = json!(value);
    scenario.cluster.tamper("build");
}

fn builder(scenario: &mut Scenario) -> Value {
    scenario.cluster.object("build")["spec"]["builder"].clone()
}

fn doubts(scenario: &Scenario) -> usize {
    let doubtful = scenario.entry("build")["applied"]["doubtful"].as_array();
    doubtful.map_or(0, Vec::len)
}

#[test]
fn what_others_had_made_of_the_same_inputs_is_not_handed_on_when_their_values_are_changed_back() {
    for rule in [MATCHES, REPORTS] {
        let mut scenario = built(rule);
        builds_evil(&mut scenario);
        let outcome = scenario.reconcile();
        assert!(outcome.write_now);
        assert_eq!(outcome.again, Some(Duration::ZERO));
        assert_eq!(builder(&mut scenario), "evil", "status says so first");
        scenario.advance();
        assert_eq!(builder(&mut scenario), "good");
        assert_eq!(
            scenario.step_condition("build", "OutputsGood"),
            "Unknown/Reconciling/resource [build] condition not met: somebody else changed object [ns/build] while these were its \
             inputs, and it does not tell whether it made what it reports before it was changed back; its outputs are read \
             with the next inputs, or once it has been deleted and is good again; the last good outputs are handed on meanwhile"
        );
        assert_eq!(deployed(&mut scenario), "good@1");
        settles(&mut scenario);

        push(&mut scenario, "2");
        assert_eq!(deployed(&mut scenario), "good@1");
        builds(&mut scenario);
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "good@2");
        assert_eq!(doubts(&scenario), 0);
        settles(&mut scenario);
    }
}

#[test]
fn a_process_that_is_killed_forgets_no_doubt() {
    let mut scenario = built(REPORTS);
    builds_evil(&mut scenario);
    scenario.advance_and_die();
    assert_eq!(builder(&mut scenario), "evil");
    scenario.advance();
    scenario.advance_and_die();
    assert_eq!(builder(&mut scenario), "good");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "good@1");
}

/// One that tells its inputs may keep what it has made before.
#[test]
fn an_object_that_says_which_generation_it_has_observed_is_believed_again() {
    for (rule, is_believed) in [(MATCHES, true), (REPORTS, false)] {
        let mut scenario = built(rule);
        let observes = |scenario: &mut Scenario, generation: u64| {
            scenario.cluster.object("build")["status"]["observedGeneration"] = json!(generation);
            scenario.advance();
        };
        builds_evil(&mut scenario);
        scenario.cluster.object("build")["metadata"]["generation"] = json!(7);
        observes(&mut scenario, 7);
        scenario.advance();
        assert_eq!(builder(&mut scenario), "good");
        assert_eq!(deployed(&mut scenario), "good@1");
        builds(&mut scenario);
        scenario.cluster.object("build")["status"]["latestGoodOutput"] = json!("good@1-again");
        observes(&mut scenario, 8);
        let expected = if is_believed {
            "good@1-again"
        } else {
            "good@1"
        };
        assert_eq!(deployed(&mut scenario), expected);
        assert_eq!(doubts(&scenario) == 0, is_believed);
        settles(&mut scenario);
    }
}

#[test]
fn an_object_that_is_made_again_is_not_doubted() {
    let mut scenario = built(MATCHES);
    builds_evil(&mut scenario);
    scenario.advance();
    scenario.advance();
    scenario.cluster.prune("build");
    scenario.advance();
    builds(&mut scenario);
    scenario.cluster.object("build")["status"]["latestGoodOutput"] = json!("good@1-again");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "good@1-again");
    settles(&mut scenario);
}

/// He builds what is to come before it comes.
#[test]
fn what_others_ask_for_is_doubted_as_well() {
    for rule in [MATCHES, REPORTS] {
        let mut scenario = built(rule);
        changes(&mut scenario, "revision", "2");
        builds_evil(&mut scenario);
        scenario.advance();
        scenario.advance();
        assert_eq!(builder(&mut scenario), "good");
        push(&mut scenario, "2");
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "good@1");
        push(&mut scenario, "3");
        builds(&mut scenario);
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "good@3");
        settles(&mut scenario);
    }
}

/// He has something else built while what is to come is doubted already.
#[test]
fn each_change_by_others_is_doubted_and_not_the_first_one_only() {
    let mut scenario = built(MATCHES);
    builds_evil(&mut scenario);
    scenario.advance();
    scenario.advance();
    changes(&mut scenario, "revision", "2");
    builds_evil(&mut scenario);
    scenario.advance();
    scenario.advance();
    assert_eq!(builder(&mut scenario), "good");
    push(&mut scenario, "2");
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "good@1");
}

/// Then it may have made anything.
#[test]
fn whoever_goes_on_changing_it_fills_no_status_and_has_nothing_handed_on() {
    let mut scenario = built(MATCHES);
    for revision in 0..40 {
        changes(&mut scenario, "revision", &format!("evil-{revision}"));
        builds_evil(&mut scenario);
        scenario.advance();
        scenario.advance();
        assert_eq!(builder(&mut scenario), "good");
        push(&mut scenario, &format!("next-{revision}"));
    }
    assert_eq!(doubts(&scenario), 16);
    push(&mut scenario, "evil-39");
    builds(&mut scenario);
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "good@1");
    scenario.cluster.prune("build");
    scenario.advance();
    builds(&mut scenario);
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "good@evil-39");
}

/// Status may be held back meanwhile.
#[test]
fn a_second_update_before_status_tells_of_the_first_raises_no_doubt() {
    let mut scenario = built(REPORTS);
    scenario.owner["spec"]["image"] = json!("2");
    scenario.advance_and_die();
    let held = scenario.cluster.held.objects.iter_mut();
    held.for_each(|held| held.is_as_left = true);
    push(&mut scenario, "3");
    assert_eq!(doubts(&scenario), 0);
    builds(&mut scenario);
    scenario.advance();
    assert_eq!(deployed(&mut scenario), "good@3");
}

const TOKEN: &str = "
---
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: token}
spec:
  configPath: .data.token
  template: {apiVersion: v1, kind: Secret, metadata: {name: token}, data: {token: aHVudGVyMg==}}
";

/// The build takes a value of a Secret from now on. What status has of its values is keyed then.
fn takes_a_secret(scenario: &mut Scenario, rule: &str) {
    let step = "  - {name: token, templateRef: {kind: ClusterConfigTemplate, name: token}}\n";
    let fetched = "sources: [{name: source, resource: fetch}]";
    let with_secret = documents(rule)
        .replace("builder: good}", "builder: good, token: $(config)$}")
        .replace("  resources:\n", &format!("  resources:\n{step}"))
        .replace(
            fetched,
            &format!("{fetched}, configs: [{{name: config, resource: token}}]"),
        );
    scenario.apply(&(with_secret + TOKEN));
    scenario.advance();
    let token = &scenario.cluster.object("build")["spec"]["token"];
    assert_eq!(*token, "aHVudGVyMg==");
}

#[test]
fn a_step_that_begins_to_take_a_value_of_a_secret_raises_no_doubt() {
    for rule in [MATCHES, REPORTS] {
        let mut scenario = built(rule);
        takes_a_secret(&mut scenario, rule);
        assert_eq!(doubts(&scenario), 0);
        builds_evil(&mut scenario);
        scenario.advance();
        scenario.advance();
        assert_ne!(doubts(&scenario), 0, "whoever changes it is noticed");
        assert_eq!(builder(&mut scenario), "good");
    }
}

/// Status told of it by a digest that was not keyed.
#[test]
fn a_doubt_stays_when_a_value_of_a_secret_comes_in() {
    for rule in [MATCHES, REPORTS] {
        let mut scenario = built(rule);
        builds_evil(&mut scenario);
        scenario.advance();
        scenario.advance();
        assert_eq!(builder(&mut scenario), "good");
        takes_a_secret(&mut scenario, rule);
        assert_ne!(doubts(&scenario), 0);
        let reported = &scenario.cluster.object("build")["status"]["latestGoodOutput"];
        assert_eq!(*reported, "evil@1");
        assert_eq!(deployed(&mut scenario), "good@1");
        settles(&mut scenario);

        push(&mut scenario, "2");
        builds(&mut scenario);
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "good@2");
    }
}

#[test]
fn an_update_of_ours_raises_no_doubt() {
    for rule in [MATCHES, REPORTS] {
        let mut scenario = built(rule);
        push(&mut scenario, "2");
        assert_eq!(doubts(&scenario), 0);
        builds(&mut scenario);
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "good@2");
    }
}

/// A platform engineer adds the rule, and what it compares.
#[test]
fn a_template_that_gets_such_a_rule_raises_no_doubt() {
    for rule in [MATCHES, REPORTS] {
        let mut scenario = built("healthRule: {alwaysHealthy: {}}");
        let with_rule = documents(rule).replace("builder: good}", "builder: good, more: 1}");
        scenario.apply(&with_rule);
        scenario.advance();
        assert_eq!(doubts(&scenario), 0);
        scenario.cluster.object("build")["status"]["latestGoodOutput"] = json!("good@1-again");
        scenario.advance();
        assert_eq!(deployed(&mut scenario), "good@1-again");
        settles(&mut scenario);
    }
}
