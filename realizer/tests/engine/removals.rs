//! Orphans, retention and what cannot be deleted yet (docs/behaviour/objects.md#retention,
//! docs/behaviour/deletion.md#orphans).

use realizer::offline::drive;
use realizer::{Ended, Retry, SubmitFailure, SubmitFailureKind};
use serde_json::{Value, json};

use crate::scenario::Scenario;

const TEMPLATES: &str = "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: plain}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: $(labels['carto\\.run/resource-name'])$-$(workload.spec.image)$
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: run}
spec:
  lifecycle: immutable
  template:
    apiVersion: test.run/v1
    kind: Run
    metadata: {generateName: run-}
    spec: {image: $(workload.spec.image)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: fixed}
spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: same}}}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: a}
";

fn set_steps(scenario: &mut Scenario, steps: &[(&str, &str)]) {
    let resources: Vec<Value> = steps
        .iter()
        .map(|(name, template)| json!({"name": name, "templateRef": {"kind": "ClusterTemplate", "name": template}}))
        .collect();
    scenario.blueprints = vec![json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "ClusterSupplyChain", "metadata": {"name": "chain", "generation": 1},
        "spec": {"selector": {"type": "web"}, "resources": resources},
    })];
}

fn scenario(steps: &[(&str, &str)]) -> Scenario {
    let mut scenario = Scenario::new(TEMPLATES);
    set_steps(&mut scenario, steps);
    scenario
}

#[test]
fn the_object_of_a_removed_step_goes() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    set_steps(&mut scenario, &[("two", "plain")]);
    let outcome = scenario.reconcile();
    assert_eq!(scenario.cluster.names(), ["two-a"]);
    assert_eq!(outcome.removals[0].resource, "one");
    assert_eq!(
        outcome.events[0].message,
        "Deleted object [configmaps/one-a]"
    );
    assert!(outcome.events[0].immediate);
    assert_eq!(scenario.owner_condition("DeletionPending"), "absent");
    assert!(!scenario.reconcile().changed);
}

/// The same reconcile comes twice before its status is stored: one deletion is told once.
#[test]
fn what_was_gone_already_is_not_told_to_be_deleted() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    set_steps(&mut scenario, &[("two", "plain")]);
    let (owner, blueprints) = (scenario.parsed_owner(), scenario.compiled_blueprints());
    for is_absent in [false, true] {
        let mut realization = realizer::Realization::new(
            &owner,
            &blueprints[0],
            &scenario.templates,
            scenario.now,
            scenario.key.clone(),
        );
        drive(&mut realization, &mut scenario.cluster);
        let mut conclusion = realization.conclude(&[]);
        let removals = conclusion.removals().to_vec();
        assert_eq!(removals.len(), 1);
        conclusion.shell.absent = if is_absent { removals } else { Vec::new() };
        let outcome = conclusion.report(&[]);
        let mut reasons = outcome.events.iter().map(|event| event.reason.as_str());
        assert_eq!(
            reasons.any(|reason| reason == "StampedObjectRemoved"),
            !is_absent
        );
    }
}

#[test]
fn a_renamed_object_replaces_the_old_one() {
    let mut scenario = scenario(&[("one", "plain")]);
    scenario.advance();
    scenario.owner["spec"]["image"] = json!("b");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["one-b"]);
}

#[test]
fn a_renamed_step_that_stamps_the_same_object_keeps_it() {
    let mut scenario = scenario(&[("one", "fixed")]);
    scenario.advance();
    set_steps(&mut scenario, &[("other", "fixed")]);
    assert!(scenario.reconcile().removals.is_empty());
    assert_eq!(scenario.cluster.names(), ["same"]);
}

#[test]
fn a_renamed_step_that_fails_to_write_its_object_keeps_it() {
    let mut scenario = scenario(&[("one", "fixed")]);
    scenario.advance();
    set_steps(&mut scenario, &[("other", "fixed")]);
    let unreachable = SubmitFailure {
        kind: SubmitFailureKind::Rejected,
        message: "patch: the server is currently unable to handle the request".to_owned(),
    };
    scenario
        .cluster
        .failing
        .insert("other".to_owned(), unreachable);
    scenario.advance();
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["same"]);
    scenario.cluster.failing.clear();
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["same"]);
}

#[test]
fn a_renamed_step_that_waits_for_its_inputs_keeps_its_object() {
    let mut scenario = scenario(&[("one", "fixed")]);
    scenario.advance();
    set_steps(&mut scenario, &[("other", "fixed")]);
    scenario.blueprints[0]["spec"]["resources"][0]["sources"] =
        json!([{"name": "code", "resource": "nobody"}]);
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["same"]);
}

#[test]
fn an_object_whose_template_is_gone_is_removed_all_the_same() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "run")]);
    scenario.advance();
    set_steps(&mut scenario, &[("two", "run")]);
    scenario
        .templates
        .0
        .remove(&("ClusterTemplate".to_owned(), "plain".to_owned()));
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["run-1"],
        "upstream gives up all cleaning"
    );
}

#[test]
fn all_members_of_a_removed_immutable_step_go() {
    let mut scenario = scenario(&[("one", "run"), ("two", "plain")]);
    scenario.advance();
    scenario.owner["spec"]["image"] = json!("b");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["run-1", "run-2", "two-b"]);
    set_steps(&mut scenario, &[("two", "plain")]);
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["two-b"],
        "upstream removes only the one in status"
    );
}

#[test]
fn all_members_made_under_the_former_blueprint_go_once_the_new_one_has_its_own() {
    let mut scenario = scenario(&[("one", "history")]);
    scenario.apply(
        "kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: history}
spec:
  lifecycle: immutable
  template:
    apiVersion: test.run/v1
    kind: Run
    metadata:
      generateName: $(labels['carto\\.run/supply-chain-name'])$-
    spec: {image: $(workload.spec.image)$}",
    );
    for image in ["a", "b", "c"] {
        scenario.owner["spec"]["image"] = json!(image);
        scenario.advance();
    }
    let of_chain = ["chain-1", "chain-2", "chain-3"];
    assert_eq!(scenario.cluster.names(), of_chain);
    scenario.blueprints[0]["metadata"]["name"] = json!("other");
    let forbidden = SubmitFailure {
        kind: SubmitFailureKind::Forbidden,
        message: "create: no".to_owned(),
    };
    scenario.cluster.failing.insert("one".to_owned(), forbidden);
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        of_chain,
        "as long as there is nothing in their place"
    );
    scenario.cluster.failing.clear();
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["other-1"],
        "upstream keeps them all"
    );
    assert!(!scenario.reconcile().changed);
}

#[test]
fn a_step_that_becomes_mutable_gives_up_its_family() {
    let mut scenario = scenario(&[("one", "run")]);
    scenario.advance();
    scenario.owner["spec"]["image"] = json!("b");
    scenario.advance();
    set_steps(&mut scenario, &[("one", "plain")]);
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["one-b"]);
}

#[test]
fn what_a_lost_status_write_forgot_is_found_again() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    scenario.owner.as_object_mut().unwrap().remove("status");
    set_steps(&mut scenario, &[("two", "plain")]);
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["two-a"]);
}

fn refused(kind: SubmitFailureKind) -> SubmitFailure {
    SubmitFailure {
        kind,
        message: "forbidden".to_owned(),
    }
}

#[test]
fn a_deletion_that_the_machine_prevents_is_nobody_s_fault() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    set_steps(&mut scenario, &[("two", "plain")]);
    let undeletable = &mut scenario.cluster.undeletable;
    undeletable.insert("one-a".to_owned(), refused(SubmitFailureKind::Unavailable));
    let outcome = scenario.reconcile();
    assert_eq!(outcome.end, Ended::Infrastructure);
    assert_eq!(outcome.events, [], "it passes by itself");
    // That it is still to be done has to be remembered, and to be seen.
    assert_eq!(
        scenario.owner["status"]["pendingRemovals"][0]["name"],
        "one-a"
    );
    assert!(
        scenario
            .owner_condition("DeletionPending")
            .starts_with("True/DeletionPending/")
    );
    let undeletable = &mut scenario.cluster.undeletable;
    undeletable.insert("one-a".to_owned(), refused(SubmitFailureKind::Forbidden));
    assert_eq!(scenario.reconcile().end, Ended::UserError);
}

#[test]
fn a_deletion_that_was_throttled_and_is_then_forbidden_is_told_once() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    set_steps(&mut scenario, &[("two", "plain")]);
    let mut told_when = |kind, why: &str| {
        let failure = SubmitFailure {
            kind,
            message: why.to_owned(),
        };
        let undeletable = &mut scenario.cluster.undeletable;
        undeletable.insert("one-a".to_owned(), failure);
        let events = scenario.reconcile().events.into_iter();
        events.map(|event| event.message).collect::<Vec<_>>()
    };
    let (throttled, forbidden) = (SubmitFailureKind::Unavailable, SubmitFailureKind::Forbidden);
    assert!(told_when(throttled, "too many requests").is_empty());
    assert_eq!(
        told_when(forbidden, "not allowed"),
        ["Could not delete object [configmaps/one-a]: not allowed"]
    );
    assert!(told_when(forbidden, "not allowed").is_empty());
}

#[test]
fn what_cannot_be_deleted_is_tried_again_until_it_is_gone() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    set_steps(&mut scenario, &[("two", "plain")]);
    scenario
        .cluster
        .undeletable
        .insert("one-a".to_owned(), refused(SubmitFailureKind::Forbidden));
    let outcome = scenario.reconcile();
    assert_eq!(
        scenario.owner_condition("DeletionPending"),
        "True/DeletionPending/unable to delete objects that are no longer wanted: [configmaps/one-a]: forbidden"
    );
    assert_eq!(
        scenario.owner_condition("Ready"),
        "True/Ready/",
        "what is pending never feeds Ready"
    );
    assert_eq!(outcome.retry, Retry::Backoff);
    assert_eq!(
        scenario.owner["status"]["pendingRemovals"],
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": "one-a", "resource": "configmaps", "uid": "uid-1", "message": "forbidden"}])
    );
    let told: Vec<_> = outcome
        .events
        .iter()
        .map(|event| (event.reason.as_str(), event.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [(
            "DeletionFailed",
            "Could not delete object [configmaps/one-a]: forbidden"
        )]
    );

    let outcome = scenario.reconcile();
    assert!(
        !outcome.changed && outcome.events.is_empty(),
        "it is told once"
    );
    assert_eq!(outcome.retry, Retry::Backoff);

    scenario.cluster.undeletable.clear();
    let outcome = scenario.reconcile();
    assert_eq!(
        outcome.events[0].message,
        "Deleted object [configmaps/one-a]"
    );
    assert_eq!(scenario.owner["status"].get("pendingRemovals"), None);
    assert_eq!(scenario.owner_condition("DeletionPending"), "absent");
    assert!(!scenario.reconcile().changed);
}

#[test]
fn a_pending_removal_that_is_wanted_again_is_kept() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    set_steps(&mut scenario, &[("two", "plain")]);
    scenario
        .cluster
        .undeletable
        .insert("one-a".to_owned(), refused(SubmitFailureKind::Forbidden));
    scenario.advance();
    set_steps(&mut scenario, &[("one", "plain"), ("two", "plain")]);
    scenario.cluster.undeletable.clear();
    assert!(scenario.reconcile().removals.is_empty());
    assert_eq!(scenario.cluster.names(), ["one-a", "two-a"]);
    assert_eq!(scenario.owner["status"].get("pendingRemovals"), None);
}

#[test]
fn nothing_is_deleted_while_the_owner_is_not_realized() {
    let mut scenario = scenario(&[("one", "plain")]);
    scenario.advance();
    let resources = scenario.owner["status"]["resources"].clone();
    scenario.blueprints.clear();
    let outcome = scenario.reconcile();
    assert!(outcome.removals.is_empty());
    assert_eq!(scenario.cluster.names(), ["one-a"]);
    assert_eq!(scenario.owner["status"]["resources"], resources);
    assert_eq!(scenario.owner["status"]["supplyChainRef"]["name"], "chain");
}

#[test]
fn another_blueprint_takes_over_what_it_stamps_too() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    set_steps(&mut scenario, &[("one", "plain"), ("three", "plain")]);
    scenario.blueprints[0]["metadata"]["name"] = json!("other");
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["one-a", "three-a"]);
    assert_eq!(
        scenario.cluster.object("one-a")["metadata"]["labels"]["carto.run/supply-chain-name"],
        "other"
    );
}

#[test]
fn a_terminating_orphan_is_not_deleted_again() {
    let mut scenario = scenario(&[("one", "plain"), ("two", "plain")]);
    scenario.advance();
    scenario.cluster.object("one-a")["metadata"]["deletionTimestamp"] =
        json!("2024-05-01T10:00:00Z");
    set_steps(&mut scenario, &[("two", "plain")]);
    assert!(scenario.reconcile().removals.is_empty());
}

const FED: &str = "
kind: ClusterConfigTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: source}
spec:
  configPath: .spec.value
  template:
    apiVersion: test.run/v1
    kind: Source
    metadata: {name: source}
    spec: {}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: fed}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: application}
    data: {config: $(config)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: drawn}
spec:
  ytt: 'kind: ConfigMap'
---
";

/// A chain of a source and a step that takes its output and stamps `application`.
fn fed(scenario: &mut Scenario, blueprint: &str, step: &str, template: &Value) {
    scenario.blueprints = vec![json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "ClusterSupplyChain", "metadata": {"name": blueprint, "generation": 1},
        "spec": {"selector": {"type": "web"}, "resources": [
            {"name": "source", "templateRef": {"kind": "ClusterConfigTemplate", "name": "source"}},
            {"name": step, "templateRef": template, "configs": [{"name": "config", "resource": "source"}]},
        ]},
    })];
}

fn fed_scenario() -> Scenario {
    let mut scenario = Scenario::new(&format!("{FED}{TEMPLATES}"));
    fed(&mut scenario, "chain", "deploy", &named("fed"));
    scenario.advance();
    publish(&mut scenario, json!("v1"));
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
    scenario
}

fn named(template: &str) -> Value {
    json!({"kind": "ClusterTemplate", "name": template})
}

fn publish(scenario: &mut Scenario, value: Value) {
    scenario.cluster.object("source")["spec"] = json!({"value": value});
}

fn unpublish(scenario: &mut Scenario) {
    scenario.cluster.object("source")["spec"] = json!({});
}

#[test]
fn an_object_survives_that_its_step_is_renamed_while_the_input_is_missing() {
    let mut scenario = fed_scenario();
    unpublish(&mut scenario);
    scenario.advance();
    fed(&mut scenario, "chain", "app", &named("fed"));
    let outcome = scenario.reconcile();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
    assert!(outcome.removals.is_empty());
    let pending = &scenario.owner["status"]["pendingRemovals"][0];
    assert_eq!(pending["name"], "application");
    let why =
        "kept until it is known which object resource(s) [app] stand for: one may go on with it";
    assert_eq!(pending["message"], why);
    assert_eq!(
        scenario.owner_condition("DeletionPending"),
        format!(
            "True/DeletionPending/objects that are no longer wanted are not deleted yet: [configmaps/application]: {why}"
        )
    );
    assert!(
        outcome
            .events
            .iter()
            .all(|event| event.reason != "DeletionFailed"),
        "nothing has failed"
    );
    assert!(!scenario.reconcile().changed);

    publish(&mut scenario, json!("v2"));
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
    assert_eq!(scenario.owner["status"].get("pendingRemovals"), None);
    assert_eq!(scenario.owner_condition("DeletionPending"), "absent");
}

#[test]
fn an_object_survives_that_its_owner_moves_to_a_blueprint_whose_source_is_fresh() {
    let mut scenario = fed_scenario();
    unpublish(&mut scenario);
    fed(&mut scenario, "other", "application", &named("fed"));
    scenario.advance();
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
}

#[test]
fn an_object_survives_that_its_renamed_step_finds_no_option() {
    let mut scenario = fed_scenario();
    let never = json!({"kind": "ClusterTemplate", "options": [
        {"name": "fed", "selector": {"matchLabels": {"no": "such"}}},
        {"name": "fixed", "selector": {"matchLabels": {"no": "either"}}},
    ]});
    fed(&mut scenario, "chain", "app", &never);
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
    fed(&mut scenario, "chain", "app", &named("fed"));
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
}

#[test]
fn an_object_survives_that_ytt_has_no_time_for_its_renamed_step() {
    let mut scenario = fed_scenario();
    fed(&mut scenario, "chain", "app", &named("drawn"));
    scenario.advance();
    assert_eq!(scenario.cluster.names(), ["source", "application"]);
    let rendered = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "drawn"}});
    scenario.cluster.ytt.insert("app".to_owned(), Ok(rendered));
    scenario.advance();
    assert_eq!(
        scenario.cluster.names(),
        ["source", "drawn"],
        "another object stands in its place, so the old one goes"
    );
}

/// How a step fares in a walk.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The blueprint has no such step.
    Gone,
    Stamped,
    /// It is rendered, and refused by the API server.
    Refused,
    /// ytt does not render it.
    Unrendered,
    /// Its template is not there.
    Untemplated,
}

fn set_fates(scenario: &mut Scenario, fates: &[Fate]) {
    let names = ["one", "two", "three", "four"];
    let mut steps = Vec::new();
    scenario.cluster.failing.clear();
    scenario.cluster.ytt.clear();
    for (name, fate) in names.into_iter().zip(fates) {
        let template = match fate {
            Fate::Gone => continue,
            Fate::Stamped | Fate::Refused => "plain",
            Fate::Unrendered => "drawn",
            Fate::Untemplated => "nowhere",
        };
        if *fate == Fate::Refused {
            let refused = SubmitFailure {
                kind: SubmitFailureKind::Rejected,
                message: "patch: no".to_owned(),
            };
            scenario.cluster.failing.insert(name.to_owned(), refused);
        }
        steps.push((name, template));
    }
    set_steps(scenario, &steps);
    // A template that goes after the blueprint was found ready: the walk meets it.
    scenario.blueprints[0]["status"] = json!({"observedGeneration": 1, "conditions": [
        {"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2024-05-01T10:00:00Z"},
    ]});
}

proptest::proptest! {
    /// Whatever becomes of the steps of a blueprint, from walk to walk.
    #[test]
    fn no_walk_with_a_step_of_unknown_place_deletes_anything(
        walks in proptest::collection::vec(
            proptest::collection::vec(
                proptest::sample::select(vec![
                    Fate::Gone, Fate::Stamped, Fate::Stamped, Fate::Refused, Fate::Unrendered, Fate::Untemplated,
                ]),
                4,
            ),
            1..6,
        )
    ) {
        let mut scenario = Scenario::new(&format!("{FED}{TEMPLATES}"));
        for fates in walks {
            set_fates(&mut scenario, &fates);
            let before = scenario.cluster.names().len();
            let outcome = scenario.reconcile();
            let unplaced = fates
                .iter()
                .any(|fate| matches!(fate, Fate::Unrendered | Fate::Untemplated));
            if unplaced {
                proptest::prop_assert!(outcome.removals.is_empty(), "{fates:?}: {:?}", outcome.removals);
                proptest::prop_assert!(scenario.cluster.names().len() >= before);
            }
        }
        // Once every step has its object, nothing else is left.
        set_fates(&mut scenario, &[Fate::Stamped, Fate::Gone, Fate::Stamped, Fate::Gone]);
        scenario.advance();
        let mut names = scenario.cluster.names();
        names.sort_unstable();
        proptest::prop_assert_eq!(names, ["one-a", "three-a"]);
    }
}
