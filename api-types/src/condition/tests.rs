use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn now() -> Time {
    Time(Timestamp::from_nanosecond(1_700_000_000_999_999_999).unwrap())
}

#[test]
fn condition_has_the_wire_names_and_whole_seconds() {
    let condition = Condition::new(
        ConditionType::Healthy,
        ConditionStatus::Unknown,
        &Reason::NoStampedObject,
        "m",
        &now(),
    );
    assert_eq!(
        serde_json::to_value(condition).unwrap(),
        json!({"type": "Healthy", "status": "Unknown", "reason": "NoStampedObject", "message": "m",
               "lastTransitionTime": "2023-11-14T22:13:20Z"})
    );
}

#[test]
fn message_is_cut_by_characters_not_bytes() {
    let long = "é".repeat(MAX_MESSAGE_CHARS + 1);
    let condition = Condition::new(
        ConditionType::Ready,
        ConditionStatus::False,
        &Reason::UnknownError,
        long,
        &now(),
    );
    assert_eq!(condition.message.chars().count(), MAX_MESSAGE_CHARS);
}

#[test]
fn foreign_reasons_and_types_parse() {
    let text = r#"{"type":"x.y/Z","status":"True","reason":"no such","message":"","lastTransitionTime":"2023-11-14T22:13:20Z","observedGeneration":3}"#;
    let condition: Condition = serde_json::from_str(text).unwrap();
    assert_eq!(
        (condition.reason.as_str(), condition.observed_generation),
        ("no such", Some(3))
    );
    assert_eq!(serde_json::to_string(&condition).unwrap(), text);
}

#[test]
fn time_alone_does_not_make_conditions_differ() {
    let early = Condition::new(
        ConditionType::Ready,
        ConditionStatus::True,
        &Reason::Ready,
        "",
        &now(),
    );
    let later = Condition {
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
        ..early.clone()
    };
    assert!(early.says_the_same_as(&later));
    assert!(!early.says_the_same_as(&Condition {
        message: "x".into(),
        ..early.clone()
    }));
}

#[test]
fn one_bad_entry_spoils_the_observed_list() {
    let object = json!({"status": {"conditions": [
        {"type": "A", "status": "True", "lastTransitionTime": null, "severity": "Info"},
        {"type": "B", "status": "Maybe", "message": "m"},
    ]}});
    let conditions = ObservedCondition::all_of(&object);
    assert_eq!(
        conditions
            .iter()
            .map(|c| c.status.as_str())
            .collect::<Vec<_>>(),
        ["True", "Maybe"]
    );
    let object = json!({"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "message": 5}]}});
    assert!(ObservedCondition::all_of(&object).is_empty());
    assert!(ObservedCondition::all_of(&json!({"status": {"conditions": {}}})).is_empty());
    assert!(ObservedCondition::all_of(&json!({})).is_empty());
}

#[test]
fn null_spoils_nothing() {
    let object = json!({"status": {"conditions": [
        null,
        {"type": "A", "status": "True", "reason": null, "message": null, "observedGeneration": null},
        {"type": null, "status": null},
    ]}});
    let empty = ObservedCondition::default();
    let expected = ObservedCondition {
        type_: "A".to_owned(),
        status: "True".to_owned(),
        ..empty.clone()
    };
    assert_eq!(
        ObservedCondition::all_of(&object),
        [empty.clone(), expected, empty]
    );
}

#[test]
fn awkward_condition_types_give_valid_reasons() {
    for (type_, reason) in [
        ("Ready", "ReadyCondition"),
        ("my-cond", "my_condCondition"),
        ("example.com/Ready", "example_com_ReadyCondition"),
        ("9lives", "livesCondition"),
        ("", "Condition"),
        ("é", "Condition"),
        ("a:", "a:Condition"),
    ] {
        assert_eq!(Reason::condition(type_).as_str(), reason);
        assert!(is_valid_reason(reason));
    }
    let long = Reason::condition(&"x".repeat(2000));
    assert_eq!(long.as_str().len(), 1024);
}

#[test]
fn copied_reasons_are_unknown_when_nothing_is_left() {
    for (given, reason) in [
        ("", "Unknown"),
        ("::", "Unknown"),
        ("A,:", "A"),
        ("TemplatesNotFound", "TemplatesNotFound"),
    ] {
        assert_eq!(Reason::copied(given).as_str(), reason);
    }
}

#[test]
fn every_condition_type_has_its_own_text() {
    let texts: std::collections::BTreeSet<_> =
        ConditionType::ALL.iter().map(|t| t.as_str()).collect();
    assert_eq!(texts.len(), ConditionType::ALL.len());
    assert_eq!(
        ConditionType::ALL.iter().filter(|t| t.is_extra()).count(),
        8
    );
}

proptest! {
    #[test]
    fn sanitised_reasons_always_fit_the_pattern(text in "\\PC{0,40}|[A-Za-z0-9_,:./-]{0,1100}") {
        prop_assert!(is_valid_reason(&Reason::condition(&text).as_str()));
        prop_assert!(is_valid_reason(&Reason::copied(&text).as_str()));
    }

    #[test]
    fn valid_reasons_are_copied_unchanged(text in "[A-Za-z]([A-Za-z0-9_,:]{0,60}[A-Za-z0-9_])?") {
        let reason = Reason::copied(&text);
        prop_assert_eq!(reason.as_str(), text.as_str());
    }
}
