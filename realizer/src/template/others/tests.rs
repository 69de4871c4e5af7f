use api_types::ClusterConfigTemplateSpec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

use super::*;
use crate::template::goodness::{Goodness, NotDone, RuleInputs};
use crate::template::outputs::ReadError;

const GATE: &str = "{apiVersion: v1, kind: ConfigMap, name: gate}";
const LABELLED: &str = "{apiVersion: v1, kind: ConfigMap, matchLabels: {app: web}}";

/// The rules of a template.
fn goodness(rules: &str) -> Goodness {
    let spec: ClusterConfigTemplateSpec = serde_saphyr::from_str(rules).unwrap();
    let template = json!({"metadata": {"name": "t"}, "spec": spec});
    let kind = api_types::TemplateKind::Config;
    Goodness::new(&api_types::Template::from_value(kind, template).unwrap())
}

fn query(object: &NamedObject) -> ObjectQuery {
    let context = |text: &Text| Ok(Value::from(text.text.clone()));
    let step = ResourceName::from("step");
    object.query(&step, "dev", &context).unwrap()
}

/// What an object that was asked for holds.
type Found = Result<Arc<Value>, Unread>;

/// What the rules say with this stamped object, and what was found of each of the others.
fn check(rules: &str, stamped: &Value, found: &[Found]) -> String {
    let goodness = goodness(rules);
    let others = goodness.others().iter().zip(found);
    let others: Vec<ReadObject> = others
        .map(|(object, found)| ReadObject::new(&query(object), found.clone().into(), &Taint::NONE))
        .collect();
    assert_eq!(goodness.others().len(), found.len());
    let beside = RuleInputs {
        others: &others,
        ..RuleInputs::default()
    };
    match goodness.check(Some(stamped), &Taint::NONE, beside, false) {
        Ok(()) => "good".to_owned(),
        Err(ReadError::NotDone(NotDone::Condition(text))) => format!("not yet: {text}"),
        Err(ReadError::NotDone(NotDone::Hopeless(text))) => format!("never: {text}"),
        Err(ReadError::NotDone(NotDone::Failed(text))) => format!("failed: {text}"),
        Err(ReadError::NotDone(NotDone::Refused(text))) => format!("refused: {text}"),
        Err(ReadError::NotDone(NotDone::Unavailable(text))) => format!("unavailable: {text}"),
        Err(other) => format!("other: {other}"),
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "one of several answers, of which others are errors"
)]
fn there(object: Value) -> Found {
    Ok(Arc::new(object))
}

fn gate(open: &str) -> Found {
    there(json!({"kind": "ConfigMap", "data": {"open": open}}))
}

fn completion(condition: &str) -> String {
    format!("{{observedCompletion: {{succeeded: {condition}}}}}")
}

fn leaf(object: &str) -> String {
    format!("{{object: {object}, key: .data.open, value: 'yes'}}")
}

#[test]
fn what_another_object_says_is_told_without_what_it_holds() {
    let rules = completion(&leaf(GATE));
    let pending =
        |why: &str| format!("success condition is not known yet: object [ConfigMap/gate] {why}");
    let several = |names: &[&str]| Unread::Several(names.iter().map(ToString::to_string).collect());
    for (found, expected) in [
        (gate("yes"), "good".to_owned()),
        (
            gate("hunter2"),
            "not yet: success condition does not hold: [.data.open] of object [ConfigMap/gate] is not yes".to_owned(),
        ),
        (
            there(json!({"kind": "ConfigMap"})),
            format!("not yet: {}", pending("has nothing at [.data.open]")),
        ),
        (Err(Unread::Missing), format!("not yet: {}", pending("is not there"))),
        (
            Err(Unread::Unserved("no kind".to_owned())),
            format!("not yet: {}", pending("cannot be read: no kind")),
        ),
        (
            Err(Unread::Refused("cannot get".to_owned())),
            format!("refused: {}", pending("cannot be read: cannot get")),
        ),
        (
            Err(Unread::Unavailable("503".to_owned())),
            format!("unavailable: {}", pending("cannot be read: 503")),
        ),
        (
            Err(several(&["b", "a"])),
            format!("never: {}", pending("is not one but several: a, b; give its labels to one only")),
        ),
        (
            Err(several(&["d", "c", "b", "a"])),
            format!("never: {}", pending("is not one but several: a, b, c and more; give its labels to one only")),
        ),
    ] {
        assert_eq!(check(&rules, &json!({}), std::slice::from_ref(&found)), expected, "{found:?}");
    }
}

#[test]
fn conditions_of_several_objects_follow_kleene() {
    let both =
        |list: &str| completion(&format!("{{{list}: [{}, {}]}}", leaf(GATE), leaf(LABELLED)));
    let missing = || Err(Unread::Missing);
    let starts = |rules: &str, found: &[Found]| {
        let said = check(rules, &json!({}), found);
        said.split_inclusive(['d', 'e']).next().unwrap().to_owned()
    };
    assert_eq!(starts(&both("allOf"), &[gate("yes"), gate("yes")]), "good");
    let half = check(&both("allOf"), &json!({}), &[gate("yes"), missing()]);
    assert!(
        half.contains("object [ConfigMap with labels app=web] is not there"),
        "{half}"
    );
    let no = check(&both("allOf"), &json!({}), &[missing(), gate("no")]);
    assert!(no.contains("does not hold"), "{no}");
    assert_eq!(starts(&both("anyOf"), &[missing(), gate("yes")]), "good");
    let not = completion(&format!("{{not: {}}}", leaf(GATE)));
    let unknown = check(&not, &json!({}), &[missing()]);
    assert!(
        unknown.contains("not known yet"),
        "not of unknown: {unknown}"
    );
    assert_eq!(check(&not, &json!({}), &[gate("no")]), "good");
}

#[test]
fn an_object_that_may_say_failed_and_cannot_be_read_is_not_passed_over() {
    let rules = format!(
        "{{observedCompletion: {{succeeded: {{key: .a, value: b}}, failed: {}}}}}",
        leaf(GATE)
    );
    let stamped =
        json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1}, "a": "b"});
    assert_eq!(check(&rules, &stamped, &[Err(Unread::Missing)]), "good");
    assert_eq!(check(&rules, &stamped, &[gate("no")]), "good");
    let failed = "failed: failure condition holds: [.data.open] of object [ConfigMap/gate] is yes";
    assert_eq!(check(&rules, &stamped, &[gate("yes")]), failed);
    let refused = check(&rules, &stamped, &[Err(Unread::Refused("no".to_owned()))]);
    assert_eq!(
        refused,
        "refused: object [ConfigMap/gate] cannot be read: no"
    );
}

#[test]
fn the_stamped_object_must_have_observed_its_generation_where_it_is_read_or_tells_it() {
    let other = completion(&leaf(GATE));
    let mixed = completion(&format!("[{}, {{key: .a, value: b}}]", leaf(GATE)));
    let silent = json!({"a": "b"});
    assert_eq!(check(&other, &silent, &[gate("yes")]), "good");
    let said = check(&mixed, &silent, &[gate("yes")]);
    assert!(said.contains("metadata.generation"), "{said}");
    let late =
        json!({"a": "b", "metadata": {"generation": 2}, "status": {"observedGeneration": 1}});
    for rules in [&other, &mixed] {
        let said = check(rules, &late, &[gate("yes")]);
        assert!(
            said.contains("does not equal metadata.generation"),
            "{said}"
        );
    }
}

#[test]
fn a_pair_compares_the_stamped_object_with_another_one_and_shows_neither() {
    let rules =
        format!("{{observedMatches: [{{input: .spec.v, output: .data.open, object: {GATE}}}]}}");
    let stamped = json!({"spec": {"v": "hunter2"}});
    assert_eq!(check(&rules, &stamped, &[gate("hunter2")]), "good");
    let differs =
        "not yet: input [.spec.v] and output [.data.open] of object [ConfigMap/gate] do not match";
    assert_eq!(check(&rules, &stamped, &[gate("hunter3")]), differs);
    let missing = "not yet: could not find value on output [.data.open]: object [ConfigMap/gate] is not there";
    assert_eq!(check(&rules, &stamped, &[Err(Unread::Missing)]), missing);
    let deep = there(json!({"data": {"open": {"a": [1]}}}));
    assert_eq!(
        check(&rules, &json!({"spec": {"v": {"a": [1]}}}), &[deep]),
        "good"
    );
}

#[test]
fn an_object_that_several_rules_read_is_asked_for_once_with_all_paths() {
    let rules = format!(
        "{{failed: {{object: {GATE}, key: .status.bad, value: 'yes'}},
        observedMatches: [{{input: .spec.v, output: .data.open, object: {GATE}}}]}}"
    );
    let goodness = goodness(&rules);
    let [object] = goodness.others() else {
        panic!("{:?}", goodness.others())
    };
    let query = query(object);
    assert_eq!(*query.reads, [["data", "open"], ["status", "bad"]]);
    let own: Vec<&str> = goodness.paths().into_iter().map(FieldPath::text).collect();
    assert_eq!(
        own,
        [
            ".spec.v",
            "metadata.generation",
            "status.observedGeneration"
        ]
    );
}

#[test]
fn only_texts_that_name_one_place_are_asked_for() {
    let named = |object: &str, value: Value| {
        let object: OtherObject = serde_saphyr::from_str(object).unwrap();
        let object = NamedObject::new(&object, std::iter::empty());
        let context = |text: &Text| {
            let is_tag = text.text.starts_with("$(");
            Ok(if is_tag {
                value.clone()
            } else {
                Value::from(text.text.clone())
            })
        };
        let step = ResourceName::from("step");
        let asked = object.query(&step, "dev", &context);
        asked
            .map(|query| named(&query.kind, &query.choice))
            .map_err(|unread| unread.found.unwrap_err().0)
    };
    let by_name = "{apiVersion: v1, kind: ConfigMap, name: $(params.x)$}";
    assert_eq!(named(by_name, json!("gate")).unwrap(), "ConfigMap/gate");
    assert_eq!(
        named(by_name, json!("system:node.a_b")).unwrap(),
        "ConfigMap/system:node.a_b"
    );
    assert_eq!(named(by_name, json!(7)).unwrap(), "ConfigMap/7");
    for other in [
        json!(""),
        json!(null),
        json!(["a"]),
        json!("../secrets/a"),
        json!(".."),
        json!("a,b=c"),
        json!("a b"),
    ] {
        let why = named(by_name, other.clone()).unwrap_err();
        assert!(
            why.starts_with("cannot be read: name [$(params.x)$] is ["),
            "{other}: {why}"
        );
    }
    let by_label = "{apiVersion: v1, kind: ConfigMap, matchLabels: {app: $(params.x)$}}";
    assert_eq!(
        named(by_label, json!("")).unwrap(),
        "ConfigMap with labels app="
    );
    assert!(named(by_label, json!("a,b=c")).is_err());
    let broken_key = "{apiVersion: v1, kind: ConfigMap, matchLabels: {'a,b': x}}";
    assert!(named(broken_key, json!("")).is_err());
    let kind = "{apiVersion: $(params.x)$, kind: ConfigMap, name: gate}";
    assert_eq!(named(kind, json!("apps/v1")).unwrap(), "ConfigMap/gate");
    for other in ["v1/../../a", "a/b/c", "v1?x=y"] {
        assert!(named(kind, json!(other)).is_err(), "{other}");
    }
}

#[test]
fn a_name_that_came_from_a_secret_is_not_told() {
    let goodness = goodness(&completion(&leaf(GATE)));
    let query = query(&goodness.others()[0]);
    let taint = Taint::of([&json!("gate"), &json!("forbidden-text")]);
    let found = Err(Unread::Refused("configmaps gate forbidden-text".to_owned()));
    let read = ReadObject::new(&query, found.into(), &taint);
    let (why, _) = read.value(&FieldPath::new(".a")).unwrap_err();
    assert_eq!(
        why,
        "object [ConfigMap/<redacted>] cannot be read: configmaps <redacted> <redacted>"
    );
}

#[test]
fn what_the_stamped_object_decides_by_itself_needs_no_other() {
    let own = |value: &str| json!({"metadata": {"generation": 1}, "status": {"observedGeneration": 1, "own": value}});
    let own_leaf = "{key: .status.own, value: done}";
    let of = |list: &str| completion(&format!("{{{list}: [{}, {own_leaf}]}}", leaf(GATE)));
    let (all, any) = (of("allOf"), of("anyOf"));
    let none = completion(&format!("{{not: {{anyOf: [{}, {own_leaf}]}}}}", leaf(GATE)));
    let alone = completion(&leaf(GATE));
    let or_failed = format!(
        "{{observedMatches: [{{input: .status.own, output: .status.made}}], failed: {}}}",
        leaf(GATE)
    );
    for (rules, stamped, expected) in [
        (&all, json!({}), false),
        (&all, own("running"), false),
        (&all, own("done"), true),
        (&any, json!({}), false),
        (&any, own("running"), true),
        (&any, own("done"), false),
        (&none, own("running"), true),
        (&none, own("done"), false),
        (&alone, json!({}), true),
        (&or_failed, json!({}), true),
    ] {
        let needs = goodness(rules).needs_others(&stamped, false);
        assert_eq!(needs, expected, "{rules}: {stamped}");
    }
    let waits = check(&all, &own("running"), &[Err(Unread::Unneeded)]);
    assert_eq!(
        waits,
        "not yet: success condition does not hold: [.status.own] was: running, expected: done"
    );
    // What it waits for is told first, wherever it stands.
    let started = json!({"status": {"observedGeneration": 1}, "metadata": {"generation": 1}});
    let waits = check(&all, &started, &[Err(Unread::Unneeded)]);
    assert!(waits.contains("[.status.own]"), "{waits}");
}

/// A condition on the stamped object and on another one.
fn condition() -> impl Strategy<Value = Value> {
    // The last one fits no object.
    let own = select(vec![
        ".status.a",
        ".status.b",
        ".status.a",
        ".status.b",
        ".status.a[*].c",
    ]);
    let own = own.prop_map(|path| json!({"key": path, "value": "yes"}));
    let gate = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gate"});
    let other = Just(json!({"object": gate, "key": ".data.open", "value": "yes"}));
    let leaf = prop_oneof![2 => own, 1 => other];
    leaf.prop_recursive(3, 12, 3, |part| {
        let parts = proptest::collection::vec(part.clone(), 1..4);
        prop_oneof![
            parts.clone().prop_map(|parts| json!({"allOf": parts})),
            parts.prop_map(|parts| json!({"anyOf": parts})),
            part.prop_map(|part| json!({"not": part})),
        ]
    })
}

fn rules() -> impl Strategy<Value = Value> {
    let gate = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "gate"});
    let pairs = [
        json!({"input": ".status.a", "output": ".status.b"}),
        json!({"input": ".status.a", "output": ".data.open", "object": gate}),
    ];
    let pairs = proptest::collection::vec(select(pairs.to_vec()), 1..3);
    let failed = || proptest::option::of(condition());
    prop_oneof![
        (condition(), failed()).prop_map(|(succeeded, failed)| match failed {
            Some(failed) =>
                json!({"observedCompletion": {"succeeded": succeeded, "failed": failed}}),
            None => json!({"observedCompletion": {"succeeded": succeeded}}),
        }),
        (pairs, failed()).prop_map(|(pairs, failed)| match failed {
            Some(failed) => json!({"observedMatches": pairs, "failed": failed}),
            None => json!({"observedMatches": pairs}),
        }),
    ]
}

fn stamped() -> impl Strategy<Value = Value> {
    let value = || select(vec![None, Some("yes"), Some("no")]);
    let observed = select(vec![None, Some(1), Some(2)]);
    (value(), value(), observed).prop_map(|(a, b, observed)| {
        let mut status = json!({});
        let texts = [("a", a), ("b", b)];
        for (field, value) in texts
            .into_iter()
            .filter_map(|(field, it)| Some((field, it?)))
        {
            status[field] = json!(value);
        }
        if let Some(observed) = observed {
            status["observedGeneration"] = json!(observed);
        }
        json!({"metadata": {"generation": 1}, "status": status})
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Whatever there is besides, the step comes to the same, and nothing is told of what was not read. What cannot be read
    /// is not passed over.
    #[test]
    fn an_object_that_is_not_needed_decides_nothing(rules in rules(), stamped in stamped()) {
        let written = rules.to_string();
        let count = goodness(&written).others().len();
        let said = |found: &Found| check(&written, &stamped, &vec![found.clone(); count]);
        let verdict = |said: &str| match said {
            "good" => "good",
            failed if failed.starts_with("failed:") => "failed",
            _ => "under way",
        };
        let found = [
            gate("yes"),
            gate("no"),
            Err(Unread::Missing),
            Err(Unread::Refused("no right".to_owned())),
            Err(Unread::Several(vec!["a".to_owned()])),
        ];
        // One that cannot be read may say that it has failed.
        if verdict(&said(&found[3])) == "good" {
            for one in &found[..2] {
                prop_assert!(verdict(&said(one)) != "failed", "{rules:#}: {stamped}");
            }
        }
        if goodness(&written).needs_others(&stamped, false) {
            return Ok(());
        }
        let unread = said(&Err(Unread::Unneeded));
        let all: Vec<String> = found.iter().map(said).collect();
        prop_assert!(!unread.contains("is not read before"), "{unread}");
        for one in all {
            prop_assert_eq!(verdict(&one), verdict(&unread), "{}", one);
        }
    }
}
