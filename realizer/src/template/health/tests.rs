use serde_json::json;

use super::*;

fn rule(yaml: &str) -> CompiledRule {
    CompiledRule::new(Some(&serde_saphyr::from_str(yaml).unwrap()), false)
}

fn judged(rule: &CompiledRule, object: Option<&Value>) -> String {
    shown(&rule.judge(Subject {
        object,
        kind: TemplateKind::Image,
        has_outputs: false,
        secret: false,
    }))
}

fn shown(health: &Health) -> String {
    format!("{}/{}/{}", health.status, health.reason, health.message)
}

fn with_conditions(conditions: &[(&str, &str, &str)]) -> Value {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(
            |(type_, status, message)| json!({"type": type_, "status": status, "message": message}),
        )
        .collect();
    json!({"status": {"conditions": conditions}})
}

#[test]
fn without_rule_outputs_or_the_object_decide() {
    let object = json!({});
    let cases = [
        (TemplateKind::Image, true, true, "True/OutputsAvailable/"),
        (
            TemplateKind::Image,
            true,
            false,
            "Unknown/OutputNotAvailable/",
        ),
        (
            TemplateKind::Image,
            false,
            false,
            "Unknown/OutputNotAvailable/",
        ),
        (
            TemplateKind::Deployment,
            true,
            false,
            "Unknown/OutputNotAvailable/",
        ),
        (TemplateKind::Plain, true, false, "True/AlwaysHealthy/"),
        (
            TemplateKind::Plain,
            false,
            false,
            "Unknown/NoStampedObject/",
        ),
    ];
    for (kind, present, has_outputs, expected) in cases {
        let object = present.then_some(&object);
        let health = CompiledRule::None.judge(Subject {
            object,
            kind,
            has_outputs,
            secret: false,
        });
        assert_eq!(shown(&health), expected, "{kind} {present} {has_outputs}");
    }
}

/// Admission takes the empty text for an absent field, as Go does.
#[test]
fn an_empty_condition_type_is_no_rule() {
    let ready = with_conditions(&[("Ready", "True", "")]);
    let beside = rule(
        "{singleConditionType: '', multiMatch: {healthy: {matchConditions: [{type: Ready, status: 'True'}]}, \
         unhealthy: {matchConditions: [{type: Ready, status: 'False'}]}}}",
    );
    assert_eq!(
        judged(&beside, Some(&ready)),
        "True/MatchedCondition/condition status: True, message: "
    );
    let alone = rule("{singleConditionType: ''}");
    assert_eq!(judged(&alone, Some(&ready)), "Unknown/OutputNotAvailable/");
    let tekton: HealthRule = serde_saphyr::from_str("{singleConditionType: ''}").unwrap();
    assert!(matches!(
        CompiledRule::new(Some(&tekton), true),
        CompiledRule::SingleCondition(type_) if type_ == "Succeeded"
    ));
}

#[test]
fn always_healthy_needs_an_object() {
    let rule = rule("{alwaysHealthy: {}}");
    assert_eq!(judged(&rule, Some(&json!({}))), "True/AlwaysHealthy/");
    assert_eq!(judged(&rule, None), "Unknown/NoStampedObject/");
}

#[test]
fn single_condition_is_mirrored() {
    let rule = rule("{singleConditionType: Ready}");
    let cases = [
        (None, "Unknown/Unknown/"),
        (
            Some(with_conditions(&[("Ready", "True", "fine")])),
            "True/ReadyCondition/fine",
        ),
        (
            Some(with_conditions(&[("Ready", "False", "bad")])),
            "False/ReadyCondition/bad",
        ),
        (
            Some(with_conditions(&[("Ready", "Maybe", "hm")])),
            "Unknown/ReadyCondition/hm",
        ),
        (
            Some(with_conditions(&[("Other", "True", "")])),
            "Unknown/ReadyCondition/condition with type [Ready] not found on resource status",
        ),
        (
            Some(json!({"status": {"conditions": "nonsense"}})),
            "Unknown/ReadyCondition/condition with type [Ready] not found on resource status",
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(judged(&rule, object.as_ref()), expected);
    }
}

#[test]
fn reasons_from_odd_condition_types_fit_the_schema() {
    let rule = rule("{singleConditionType: example.com/Is-Ready}");
    let health = rule.judge(Subject {
        object: Some(&with_conditions(&[("example.com/Is-Ready", "True", "")])),
        kind: TemplateKind::Plain,
        has_outputs: false,
        secret: false,
    });
    assert!(
        api_types::condition::is_valid_reason(&health.reason.as_str()),
        "{}",
        health.reason
    );
}

const MULTI: &str = "multiMatch:
  healthy:
    matchConditions: [{type: Ready, status: 'True'}, {type: Synced, status: 'True'}]
    matchFields: [{key: status.phase, operator: In, values: [Running], messagePath: .status.note}]
  unhealthy:
    matchConditions: [{type: Ready, status: 'False'}, {type: Stalled, status: 'True'}]
    matchFields: [{key: status.failures, operator: Exists, messagePath: .status.note}]";

#[test]
fn multi_match_asks_unhealthy_first_and_wants_all_of_healthy() {
    let object = |conditions: &[(&str, &str, &str)], rest: Value| {
        let mut object = with_conditions(conditions);
        object["status"]
            .as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        object
    };
    let good = [("Ready", "True", "ok"), ("Synced", "True", "in sync")];
    let cases = [
        (
            object(&good, json!({"phase": "Running"})),
            "True/MatchedCondition/condition status: True, message: ok",
        ),
        (
            object(&good, json!({"phase": "Pending"})),
            "Unknown/NoMatchesFulfilled/",
        ),
        (
            object(&good[..1], json!({"phase": "Running"})),
            "Unknown/NoMatchesFulfilled/",
        ),
        (object(&good, json!({})), "Unknown/NoMatchesFulfilled/"),
        (
            object(
                &good,
                json!({"phase": "Running", "failures": 1_000_000, "note": "boom"}),
            ),
            "False/MatchedField/field value: 1e+06, message: boom",
        ),
        (
            object(&good, json!({"failures": {"a": "b"}})),
            "False/MatchedField/field value: map[a:b], message: unknown, error retrieving message path [.status.note]",
        ),
        (
            object(
                &[("Ready", "True", ""), ("Stalled", "True", "stuck")],
                json!({"failures": 1}),
            ),
            "False/MatchedCondition/condition status: True, message: stuck",
        ),
        (
            object(&[("Ready", "False", "no")], json!({})),
            "False/MatchedCondition/condition status: False, message: no",
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(judged(&rule(MULTI), Some(&object)), expected, "{object}");
    }
    assert_eq!(judged(&rule(MULTI), None), "Unknown/Unknown/");
}

#[test]
fn multi_match_on_fields_alone_tells_the_first_field() {
    let rule = rule(
        "multiMatch:
  healthy: {matchFields: [{key: status.phase, operator: In, values: [Running]}, {key: status.gone, operator: DoesNotExist}]}
  unhealthy: {matchFields: [{key: 'status[', operator: Exists}, {key: status.gone, operator: Exists}]}",
    );
    assert_eq!(
        judged(&rule, Some(&json!({"status": {"phase": "Running"}}))),
        "True/MatchedField/field value: Running, message: unknown, error retrieving message path []"
    );
}

#[test]
fn a_field_that_is_absent_has_no_value_to_show() {
    let rule = rule(
        "multiMatch:
  healthy: {matchFields: [{key: status.a, operator: Exists}]}
  unhealthy: {matchFields: [{key: status.gone, operator: DoesNotExist}]}",
    );
    assert_eq!(
        judged(&rule, Some(&json!({}))),
        "False/MatchedField/field value: <error retrieving field value>, message: unknown, error retrieving message path []"
    );
}

#[test]
fn values_of_secrets_are_not_shown() {
    let rule = rule(
        "multiMatch:
  healthy: {matchFields: [{key: data.token, operator: Exists, messagePath: .data.token}]}
  unhealthy: {matchFields: [{key: data.bad, operator: Exists}]}",
    );
    let object = json!({"data": {"token": "hunter2"}});
    let subject = Subject {
        object: Some(&object),
        kind: TemplateKind::Plain,
        has_outputs: false,
        secret: true,
    };
    assert_eq!(
        shown(&rule.judge(subject)),
        "True/MatchedField/field value: <redacted>, message: <redacted>"
    );
}

#[test]
fn members_of_a_family_are_healthy_without_a_rule() {
    let object = json!({"status": {"conditions": [{"type": "Succeeded", "status": "False"}]}});
    let cases = [
        (CompiledRule::None, ConditionStatus::True),
        (rule("{alwaysHealthy: {}}"), ConditionStatus::True),
        (
            rule("{singleConditionType: Succeeded}"),
            ConditionStatus::False,
        ),
        (
            rule("{singleConditionType: Ready}"),
            ConditionStatus::Unknown,
        ),
        (CompiledRule::new(None, true), ConditionStatus::False),
    ];
    for (rule, expected) in cases {
        assert_eq!(
            rule.judge_member(&object, TemplateKind::Image),
            expected,
            "{rule:?}"
        );
    }
}

#[test]
fn tekton_implies_succeeded_unless_a_rule_is_given() {
    let succeeded = with_conditions(&[("Succeeded", "True", "done")]);
    assert_eq!(
        judged(&CompiledRule::new(None, true), Some(&succeeded)),
        "True/SucceededCondition/done"
    );
    let given: HealthRule = serde_saphyr::from_str("{alwaysHealthy: {}}").unwrap();
    assert_eq!(
        judged(&CompiledRule::new(Some(&given), true), Some(&json!({}))),
        "True/AlwaysHealthy/"
    );
}
