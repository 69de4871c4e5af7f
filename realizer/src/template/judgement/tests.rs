//! Judging the object of a validation.

use serde_json::json;

use super::*;

#[expect(
    clippy::needless_pass_by_value,
    reason = "objects are written where they are used"
)]
fn judged(spec: &str, object: Value) -> ValidationState {
    let spec: Value = serde_saphyr::from_str(spec).unwrap();
    let template = json!({"kind": "ClusterDeploymentValidationTemplate", "metadata": {"name": "t"}, "spec": spec});
    let template = Template::compile(&template).unwrap();
    let judgement = template.judgement();
    judgement
        .expect("a validation template is judged")
        .judge(&template, &object, &Taint::NONE)
}

fn running(cause: &str) -> ValidationState {
    ValidationState::Running(cause.to_owned())
}

fn failed(cause: &str) -> ValidationState {
    ValidationState::Failed(cause.to_owned())
}

#[test]
fn a_run_is_judged_by_its_health_where_nothing_is_observed() {
    let condition = |status: &str| json!({"status": {"conditions": [{"type": "Succeeded", "status": status, "message": "m"}]}});
    for (status, expected) in [
        ("True", ValidationState::Succeeded),
        ("False", failed("m")),
        ("Unknown", running("m")),
    ] {
        assert_eq!(judged("{lifecycle: tekton}", condition(status)), expected);
    }
    let always = "{lifecycle: immutable, healthRule: {alwaysHealthy: {}}}";
    assert_eq!(judged(always, json!({})), ValidationState::Succeeded);
}

const COMPLETION: &str = "observedCompletion: {succeeded: {key: .status.phase, value: Good}, failed: {key: .status.phase, value: Bad}}";

#[test]
fn a_run_need_not_say_which_generation_it_observed() {
    let spec = format!("{{lifecycle: tekton, {COMPLETION}}}");
    let good = json!({"metadata": {"generation": 1}, "status": {"phase": "Good"}});
    assert_eq!(judged(&spec, good), ValidationState::Succeeded);
    let bad =
        json!({"metadata": {"generation": 1}, "status": {"phase": "Bad", "observedGeneration": 1}});
    assert_eq!(
        judged(&spec, bad),
        failed("deployment failure condition [.status.phase] was: Bad")
    );
    let stale = json!({"metadata": {"generation": 2}, "status": {"phase": "Good", "observedGeneration": 1}});
    assert!(matches!(judged(&spec, stale), ValidationState::Running(_)));
}

#[test]
fn an_object_that_is_changed_in_place_must_say_which_generation_it_observed() {
    let spec = format!("{{{COMPLETION}}}");
    let silent = json!({"metadata": {"generation": 1}, "status": {"phase": "Good"}});
    assert!(matches!(judged(&spec, silent), ValidationState::Running(_)));
    let stale =
        json!({"metadata": {"generation": 2}, "status": {"phase": "Bad", "observedGeneration": 1}});
    assert!(matches!(judged(&spec, stale), ValidationState::Running(_)));
    let good = json!({"metadata": {"generation": 2}, "status": {"phase": "Good", "observedGeneration": 2}});
    assert_eq!(judged(&spec, good), ValidationState::Succeeded);
}

#[test]
fn a_failure_beside_observed_matches_counts_for_the_present_generation_only() {
    let spec = "{observedMatches: [{input: .spec.a, output: .status.a}], failed: {key: .status.phase, value: Bad}}";
    let object = |observed: Value, reached: i64| {
        json!({"metadata": {"generation": 2}, "spec": {"a": 2},
            "status": {"a": reached, "phase": "Bad", "observedGeneration": observed}})
    };
    let bad = failed("deployment failure condition [.status.phase] was: Bad");
    assert_eq!(judged(spec, object(json!(2), 2)), bad);
    assert_eq!(
        judged(spec, object(json!(1), 2)),
        ValidationState::Succeeded
    );
    assert!(matches!(
        judged(spec, object(json!(1), 1)),
        ValidationState::Running(_)
    ));
    let silent = json!({"spec": {"a": 2}, "status": {"a": 1, "phase": "Bad"}});
    assert_eq!(judged(spec, silent), bad);
}

#[test]
fn values_of_secrets_are_not_told() {
    let spec = "{observedMatches: [{input: .data.a, output: .data.b}]}";
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "hidden", "b": "other"}});
    let ValidationState::Running(cause) = judged(spec, secret) else {
        panic!("they do not match");
    };
    assert!(!cause.contains("hidden"), "{cause}");
}
