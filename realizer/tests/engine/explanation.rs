//! Why an owner is as it is: the tree that a walk gives, and what of it a status tells.

use realizer::explanation::{Cause, Explanation, Match, Origin, StepError, Urgency};
use realizer::{Blueprint, Family, Selection, Unrealized, select_blueprint};
use serde_json::json;

use crate::scenario::Scenario;

const CHAIN: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: src}
spec:
  urlPath: .status.url
  revisionPath: .status.rev
  params: [{name: branch, default: main}, {name: depth, default: 1}]
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: src}
    spec: {branch: $(params.branch)$, depth: $(params.depth)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: quick}
spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: quick}}}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: thorough}
spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: thorough}}}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: web}
spec:
  selector: {type: web}
  params: [{name: depth, value: 5}]
  resources:
  - name: check
    sources: [{name: code, resource: fetch}]
    templateRef:
      kind: ClusterTemplate
      options:
      - {name: quick, selector: {matchFields: [{key: spec.image, operator: Exists}]}}
      - {name: thorough, selector: {matchLabels: {check: all}}}
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: api}
spec: {selector: {type: web, team: api}, resources: []}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web, check: all}}
spec: {params: [{name: branch, value: next}, {name: depth, value: 9}]}
";

fn unmet(fit: &Result<Match<'_>, realizer::explanation::MatchError>) -> String {
    match fit {
        Ok(Match::No(unmet)) => unmet.to_string(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_walk_tells_the_requirement_that_each_other_blueprint_asks_for() {
    let scenario = Scenario::new(CHAIN);
    scenario.explain(|explanation| {
        assert_eq!(explanation.blueprint.as_deref(), Some("web"));
        let [web, api] = &explanation.candidates[..] else {
            panic!("{:?}", explanation.candidates);
        };
        assert_eq!((web.name, &web.fit), ("web", &Ok(Match::Yes(1))));
        assert_eq!(api.name, "api");
        let expected = "label [team] must be one of [api], but is not there";
        assert_eq!(unmet(&api.fit), expected);
    });
}

#[test]
fn a_walk_tells_why_each_option_of_a_step_was_taken_or_not() {
    let scenario = Scenario::new(CHAIN);
    scenario.explain(|explanation| {
        let [quick, thorough] = &explanation.steps[0].options[..] else {
            panic!("{:?}", explanation.steps[0].options);
        };
        let expected = "field [spec.image] must be there, but is [null]";
        assert_eq!(unmet(&quick.fit), expected);
        assert_eq!(
            (thorough.name, &thorough.fit),
            ("thorough", &Ok(Match::Yes(1)))
        );
        assert_eq!(explanation.steps[1].options, []);
    });
}

#[test]
fn a_walk_tells_who_gave_each_parameter() {
    let scenario = Scenario::new(CHAIN);
    scenario.explain(|explanation| {
        let params = &explanation.steps[1].params;
        let told = |name: &str| {
            let param = &params[name];
            (param.value.as_ref().clone(), param.origin, param.is_fixed)
        };
        assert_eq!(told("branch"), (json!("next"), Origin::Owner, false));
        // What the owner gives is disregarded.
        assert_eq!(told("depth"), (json!(5), Origin::Blueprint, true));
    });
}

#[test]
fn a_step_that_waits_names_the_step_and_the_input_and_comes_after_the_one_it_waits_for() {
    let scenario = Scenario::new(CHAIN);
    scenario.explain(|explanation| {
        let [check, fetch] = &explanation.steps[..] else {
            panic!("{:?}", explanation.steps);
        };
        let Some(Cause::Error(StepError::InputsMissing { inputs, .. })) = check.cause() else {
            panic!("{:?}", check.cause());
        };
        assert_eq!(
            (&inputs[..], &check.waits_for[..]),
            (&["code".to_owned()][..], &["fetch".to_owned()][..])
        );
        assert_eq!(check.urgency(), Some(Urgency::Awaits));
        assert!(matches!(
            fetch.cause(),
            Some(Cause::Error(StepError::Retrieve { .. }))
        ));
        assert_eq!(fetch.urgency(), Some(Urgency::GoesOn));
        let first = explanation.first.as_ref().unwrap();
        assert_eq!(first.step.as_deref(), Some("fetch"));
        assert_eq!(first.object.as_deref(), Some("tests.test.run/src"));
    });
}

#[test]
fn an_owner_without_a_blueprint_is_told_what_each_asks_for() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.owner["metadata"]["labels"] = json!({"type": "job"});
    let (owner, blueprints) = (scenario.parsed_owner(), scenario.compiled_blueprints());
    let Selection::NotFound(skipped) = select_blueprint(&owner, &blueprints) else {
        panic!("a blueprint selects it");
    };
    let why = Unrealized::NotFound(skipped);
    let explanation = why.explain(&owner, &blueprints, scenario.now);
    let told: Vec<String> = explanation
        .candidates
        .iter()
        .map(|it| unmet(&it.fit))
        .collect();
    let expected = [
        "label [type] must be one of [web], but is [job]",
        // Labels are compared by key.
        "label [team] must be one of [api], but is not there",
    ];
    assert_eq!(told, expected);
    let first = explanation.first.unwrap();
    assert_eq!(first.reason.as_str(), "SupplyChainNotFound");
    assert!(!first.is_stuck, "one may still come");
}

#[test]
fn a_status_tells_what_each_step_waits_for_and_that_one_was_not_looked_at() {
    let scenario = Scenario::new(CHAIN);
    let chain = &scenario.blueprints[0];
    let chain = Blueprint::compile(Family::SupplyChain, chain).unwrap();
    let ready = |status: &str, reason: &str| {
        json!([{"type": "Ready", "status": status, "reason": reason, "message": "said",
            "lastTransitionTime": "2024-05-01T10:00:00Z"}])
    };
    let status = json!({
        "supplyChainRef": {"kind": "ClusterSupplyChain", "name": "web"},
        "conditions": ready("False", "ReadyCondition"),
        "resources": [
            {"name": "former", "inputs": [{"name": "gone"}], "conditions": ready("False", "ReadyCondition")},
            {"name": "check", "inputs": [{"name": "fetch"}], "conditions": ready("False", "TemplateStampFailure")},
        ],
    });
    let explanation = Explanation::of_status(Family::SupplyChain, &status, Some(&chain));
    let told: Vec<_> = explanation
        .steps
        .iter()
        .map(|step| {
            (
                step.entry.name.as_str(),
                step.waits_for.join(","),
                step.urgency().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("fetch", String::new(), Urgency::GoesOn),
        ("check", "fetch".to_owned(), Urgency::Awaits),
        ("former", "gone".to_owned(), Urgency::Awaits),
    ];
    assert_eq!(told, expected);
    assert_eq!(explanation.steps[0].cause(), Some(Cause::Pending));
    assert_eq!(explanation.blueprint.as_deref(), Some("web"));
    let first = explanation.first.unwrap();
    assert_eq!(
        (first.step.as_deref(), first.is_stuck),
        (Some("fetch"), false)
    );
}
