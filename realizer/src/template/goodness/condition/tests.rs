use serde_json::json;

use super::*;
use crate::values::redaction::Taint;

const TRUE: &str = "{key: .t, value: yes}";
const FALSE: &str = "{key: .t, value: other}";
const UNKNOWN: &str = "{key: .u, value: yes}";

fn of(condition: &str, object: &Value) -> Truth {
    let condition: CompletionCondition = serde_saphyr::from_str(condition).unwrap();
    let nothing = Taint::NONE;
    Condition::new(&condition, true, &[]).of(Evidence::of(object, &nothing, &[]))
}

fn letter(condition: &str) -> char {
    match of(condition, &json!({"t": "yes"})) {
        Truth::Holds => 't',
        Truth::HoldsNot(_) => 'f',
        Truth::NotKnown { .. } => 'u',
    }
}

#[test]
fn conditions_follow_the_tables_of_kleene() {
    let all = [('t', TRUE), ('f', FALSE), ('u', UNKNOWN)];
    for (name, condition) in all {
        assert_eq!(letter(condition), name);
        let not = letter(&format!("{{not: {condition}}}"));
        assert_eq!(
            not,
            if name == 't' {
                'f'
            } else if name == 'f' {
                't'
            } else {
                'u'
            }
        );
        for (other, second) in all {
            let pair = [name, other];
            let parts = format!("[{condition}, {second}]");
            let both = if pair.contains(&'f') {
                'f'
            } else if pair.contains(&'u') {
                'u'
            } else {
                't'
            };
            assert_eq!(letter(&format!("{{allOf: {parts}}}")), both, "all {pair:?}");
            let either = if pair.contains(&'t') {
                't'
            } else if pair.contains(&'u') {
                'u'
            } else {
                'f'
            };
            assert_eq!(
                letter(&format!("{{anyOf: {parts}}}")),
                either,
                "any {pair:?}"
            );
        }
    }
}

#[test]
fn numbers_and_booleans_are_read_as_texts_and_nothing_else_is() {
    for (value, text, holds) in [
        (json!(3), "3", true),
        (json!(3.0), "3", true),
        (json!(true), "true", true),
        (json!("true"), "true", true),
        (json!(null), "null", false),
        (json!(["3"]), "3", false),
        (json!({"3": 3}), "3", false),
    ] {
        let condition = format!("{{key: .v, value: '{text}'}}");
        let truth = of(&condition, &json!({"v": value}));
        assert_eq!(truth == Truth::Holds, holds, "{value} {truth:?}");
    }
}

#[test]
fn what_does_not_hold_is_told_with_its_values_and_how_it_could() {
    let object = json!({"phase": "Running", "list": "x"});
    for (condition, told) in [
        (
            "{key: .phase, value: Done}",
            "[.phase] was: Running, expected: Done",
        ),
        (
            "{not: {key: .phase, value: Running}}",
            "[.phase] is Running",
        ),
        (
            "{anyOf: [{key: .phase, value: Done}, {allOf: [{key: .list, value: y}, {key: .gone, value: z}]}]}",
            "[.phase] was: Running, expected: Done; [.list] was: x, expected: y",
        ),
        (
            "{not: {anyOf: [{key: .phase, value: Running}, {not: {key: .list, value: x}}]}}",
            "([.phase] is Running or not [.list] is x)",
        ),
    ] {
        assert_eq!(of(condition, &object), Truth::HoldsNot(told.to_owned()));
    }
}

#[test]
fn a_path_that_can_never_be_read_is_told_as_such() {
    let object = json!({"list": ["a"]});
    let hopeless = of("{key: '.list[7]', value: x}", &object);
    assert!(
        matches!(
            &hopeless,
            Truth::NotKnown {
                unknown: Unknown::Hopeless,
                ..
            }
        ),
        "{hopeless:?}"
    );
    let absent = of("{not: {key: .absent, value: x}}", &object);
    assert!(
        matches!(
            &absent,
            Truth::NotKnown {
                unknown: Unknown::Awaited,
                ..
            }
        ),
        "{absent:?}"
    );
}
