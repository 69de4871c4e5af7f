use api_types::ClusterDeploymentTemplateSpec;
use serde_json::json;

use super::*;

static NOTHING: Taint = Taint::NONE;

fn evidence(object: &Value, secret: bool) -> Evidence<'_> {
    let kind = if secret { "Secret" } else { "ConfigMap" };
    let stamped = json!({"apiVersion": "v1", "kind": kind});
    Evidence {
        veil: Veil::over(&stamped, &NOTHING),
        ..Evidence::of(object, &NOTHING, &[])
    }
}

fn check(yaml: &str, object: &Value) -> String {
    let spec: ClusterDeploymentTemplateSpec = serde_saphyr::from_str(yaml).unwrap();
    match Readiness::of_deployment(&spec.success, false).check(evidence(object, false), &[]) {
        Ok(()) => "done".to_owned(),
        Err(NotDone::Condition(text)) => format!("not yet: {text}"),
        Err(NotDone::Hopeless(text)) => format!("never: {text}"),
        Err(NotDone::Failed(text)) => format!("failed: {text}"),
        Err(NotDone::Refused(text)) => format!("refused: {text}"),
        Err(NotDone::Unavailable(text)) => format!("unavailable: {text}"),
        Err(NotDone::ObservedGeneration { problem, .. }) => format!("no generation: {problem}"),
        Err(error @ NotDone::Path { .. }) => format!("path: {error}"),
    }
}

#[test]
fn without_rules_it_is_done_at_once() {
    assert_eq!(check("{}", &json!({})), "done");
}

const MATCHES: &str = "observedMatches: [{input: spec.value, output: status.value}, {input: spec.other, output: status.other}]";

#[test]
fn observed_matches_must_all_be_equal() {
    let object = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    let cases = [
        (
            object(
                json!({"value": 1, "other": "a"}),
                json!({"value": 1, "other": "a"}),
            ),
            "done",
        ),
        (
            object(
                json!({"value": {"a": [1]}, "other": []}),
                json!({"value": {"a": [1]}, "other": []}),
            ),
            "done",
        ),
        (
            object(
                json!({"value": 1, "other": "a"}),
                json!({"value": "1", "other": "a"}),
            ),
            "not yet: input [spec.value] and output [status.value] do not match: 1 != 1",
        ),
        (
            object(
                json!({"value": {"a": "b"}, "other": 1}),
                json!({"value": ["c", "d"], "other": 1}),
            ),
            "not yet: input [spec.value] and output [status.value] do not match: map[a:b] != [c d]",
        ),
        (
            object(
                json!({"value": 1, "other": "a"}),
                json!({"value": 1, "other": "b"}),
            ),
            "not yet: input [spec.other] and output [status.other] do not match: a != b",
        ),
        (
            object(json!({}), json!({"value": 1})),
            "not yet: could not find value on input [spec.value]: jsonpath returned empty list: spec.value",
        ),
        (
            object(json!({"value": 1}), json!({})),
            "not yet: could not find value on output [status.value]: jsonpath returned empty list: status.value",
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(check(MATCHES, &object), expected, "{object}");
    }
}

const COMPLETION: &str = "observedCompletion:
  succeeded: {key: status.phase, value: Done}
  failed: {key: status.failure, value: 'yes'}";

#[test]
fn observed_completion_asks_generation_then_failed_then_succeeded() {
    let object = |status: Value| json!({"metadata": {"generation": 2}, "status": status});
    let cases = [
        (
            object(json!({"observedGeneration": 2, "phase": "Done"})),
            "done",
        ),
        (
            object(json!({"observedGeneration": 2, "phase": "Done", "failure": "no"})),
            "done",
        ),
        (
            object(json!({"observedGeneration": 1, "phase": "Done"})),
            "not yet: status.observedGeneration does not equal metadata.generation: 1 != 2",
        ),
        (
            json!({"metadata": {"generation": 2_000_000}, "status": {"observedGeneration": 1_000_000}}),
            "not yet: status.observedGeneration does not equal metadata.generation: 1000000 != 2000000",
        ),
        (
            object(json!({"phase": "Done"})),
            "no generation: jsonpath returned empty list: status.observedGeneration",
        ),
        (
            json!({"status": {"observedGeneration": 2}}),
            "path: failed to evaluate json path 'metadata.generation': failed to evaluate metadata.generation: jsonpath \
             returned empty list: metadata.generation",
        ),
        (
            object(json!({"observedGeneration": 2, "phase": "Done", "failure": "yes"})),
            "failed: deployment failure condition [status.failure] was: yes",
        ),
        (
            object(json!({"observedGeneration": 2, "phase": "Busy"})),
            "not yet: deployment success condition [status.phase] was: Busy, expected: Done",
        ),
        (
            object(json!({"observedGeneration": 2, "phase": true})),
            "not yet: deployment success condition [status.phase] was: true, expected: Done",
        ),
        (
            object(json!({"observedGeneration": 2})),
            "not yet: failed to evaluate succeededCondition.Key [status.phase]: jsonpath returned empty list: status.phase",
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(check(COMPLETION, &object), expected, "{object}");
    }
}

#[test]
fn another_error_of_the_failed_path_is_a_path_error() {
    let yaml = "observedCompletion:
  succeeded: {key: status.phase, value: Done}
  failed: {key: 'status.list[9]', value: 'yes'}";
    let object = json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2, "phase": "Done", "list": []}});
    assert_eq!(
        check(yaml, &object),
        "path: failed to evaluate json path 'status.list[9]': evaluate: failed to find results: array index out of \
         bounds: index 9, length 0"
    );
}

#[test]
fn values_of_secrets_are_not_shown() {
    let spec: ClusterDeploymentTemplateSpec = serde_saphyr::from_str(MATCHES).unwrap();
    let object = json!({"spec": {"value": "hunter2"}, "status": {"value": "hunter3"}});
    let error = Readiness::of_deployment(&spec.success, false)
        .check(evidence(&object, true), &[])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "input [spec.value] and output [status.value] do not match: <redacted> != <redacted>"
    );
    let spec: ClusterDeploymentTemplateSpec = serde_saphyr::from_str(COMPLETION).unwrap();
    let object = json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "phase": "hunter2"}});
    let error = Readiness::of_deployment(&spec.success, false)
        .check(evidence(&object, true), &[])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "deployment success condition [status.phase] was: <redacted>, expected: Done"
    );
}

#[test]
fn data_of_secrets_is_not_quoted_by_paths_that_do_not_fit_it() {
    let yaml = "observedMatches: [{input: 'data.token[?(@.a==1)]', output: data.token}]";
    let spec: ClusterDeploymentTemplateSpec = serde_saphyr::from_str(yaml).unwrap();
    let object = json!({"data": {"token": "hunter2"}});
    let text = |secret| {
        Readiness::of_deployment(&spec.success, false)
            .check(evidence(&object, secret), &[])
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        text(true),
        "could not find value on input [data.token[?(@.a==1)]]: <redacted>"
    );
    assert!(text(false).contains("hunter2"), "{}", text(false));
}

#[test]
fn what_is_compared_with_a_text_of_a_secret_may_be_what_it_was_before() {
    let spec: ClusterDeploymentTemplateSpec = serde_saphyr::from_str(MATCHES).unwrap();
    let object = json!({"spec": {"value": "hunter2"}, "status": {"value": "former"}});
    let taint = Taint::of([&json!("hunter2")]);
    assert_eq!(
        Readiness::of_deployment(&spec.success, false)
            .check(Evidence::of(&object, &taint, &[]), &[])
            .unwrap_err()
            .to_string(),
        "input [spec.value] and output [status.value] do not match: <redacted> != <redacted>"
    );
}
