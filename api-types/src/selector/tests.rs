use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|&(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

fn expression(key: &str, operator: &str, values: &[&str]) -> LabelRequirement {
    LabelRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: values.iter().map(|&value| value.to_owned()).collect(),
    }
}

fn error_of(labels: &BTreeMap<String, String>, expressions: &[LabelRequirement]) -> String {
    CompiledSelector::from_parts(labels, expressions)
        .unwrap_err()
        .to_string()
}

#[test]
fn requirements_match_as_in_kubernetes() {
    let web = labels(&[("type", "web"), ("tier", "")]);
    for (key, operator, values, matches) in [
        ("type", "In", &["web", "job"][..], true),
        ("type", "In", &["job"], false),
        ("none", "In", &["web"], false),
        ("tier", "In", &[""], true),
        ("type", "NotIn", &["web"], false),
        ("type", "NotIn", &["job"], true),
        ("none", "NotIn", &["web"], true),
        ("type", "Exists", &[], true),
        ("none", "Exists", &[], false),
        ("type", "DoesNotExist", &[], false),
        ("none", "DoesNotExist", &[], true),
    ] {
        let compiled =
            CompiledSelector::from_parts(&BTreeMap::new(), &[expression(key, operator, values)])
                .unwrap();
        assert_eq!(
            compiled.matches(&web),
            matches,
            "{key} {operator} {values:?}"
        );
    }
}

#[test]
fn all_requirements_must_match_and_none_match_everything() {
    let compiled = CompiledSelector::from_parts(
        &labels(&[("a", "1"), ("b", "2")]),
        &[expression("c", "Exists", &[])],
    )
    .unwrap();
    assert!(compiled.matches(&labels(&[("a", "1"), ("b", "2"), ("c", "x"), ("d", "")])));
    assert!(!compiled.matches(&labels(&[("a", "1"), ("b", "2")])));
    assert!(CompiledSelector::default().matches(&BTreeMap::new()));
}

#[test]
fn invalid_requirements_get_the_text_of_kubernetes() {
    let none = BTreeMap::new();
    for (key, operator, values, text) in [
        ("a", "Near", &[][..], r#""Near" is not a valid pod selector operator"#.to_owned()),
        ("a", "In", &[], "values: Invalid value: []string(nil): for 'in', 'notin' operators, values set can't be empty".to_owned()),
        ("a", "Exists", &["x"], r#"values: Invalid value: []string{"x"}: values set must be empty for exists and does not exist"#.to_owned()),
        ("-a", "Exists", &[], format!(r#"key: Invalid value: "-a": name part {NAME_RULE}"#)),
        ("", "Exists", &[], format!(r#"key: Invalid value: "": name part must be non-empty; name part {NAME_RULE}"#)),
        ("a/b/c", "Exists", &[], format!(r#"key: Invalid value: "a/b/c": a qualified name {NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"#)),
        ("/b", "Exists", &[], r#"key: Invalid value: "/b": prefix part must be non-empty"#.to_owned()),
        ("A/b", "Exists", &[], r#"key: Invalid value: "A/b": prefix part a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#.to_owned()),
    ] {
        assert_eq!(error_of(&none, &[expression(key, operator, values)]), text);
    }
}

#[test]
fn several_errors_of_one_requirement_are_listed() {
    let long = "x".repeat(64);
    assert_eq!(
        error_of(&labels(&[("-a", &long)]), &[]),
        format!(
            r#"[key: Invalid value: "-a": name part {NAME_RULE}, values[0][-a]: Invalid value: "{long}": must be no more than 63 characters]"#
        )
    );
}

#[test]
fn invalid_label_values_get_the_text_of_kubernetes() {
    assert_eq!(
        error_of(&labels(&[("type", "not valid")]), &[]),
        r#"values[0][type]: Invalid value: "not valid": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#
    );
}

#[test]
fn long_keys_are_counted_by_part() {
    let name = "n".repeat(63);
    let prefix = format!("{}.{}", "p".repeat(126), "p".repeat(126));
    let fits = format!("{prefix}/{name}");
    assert!(CompiledSelector::from_parts(&labels(&[(&fits, "")]), &[]).is_ok());
    assert!(
        error_of(&labels(&[(&format!("{prefix}p/a"), "")]), &[])
            .contains("prefix part must be no more than 253")
    );
    assert!(
        error_of(&labels(&[(&format!("{name}n"), "")]), &[])
            .contains("name part must be no more than 63")
    );
}

#[test]
fn specificity_counts_requirements_of_any_kind() {
    let selector: Selector = serde_json::from_str(
        r#"{"matchLabels": {"a": "1", "b": "2"}, "matchExpressions": [{"key": "c", "operator": "Exists"}],
            "matchFields": [{"key": "spec.image", "operator": "Exists"}]}"#,
    )
    .unwrap();
    assert_eq!(selector.specificity(), 4);
    assert!(Selector::default().is_empty());
}

proptest! {
    #[test]
    fn opposite_operators_never_agree(key in "[a-z]{1,3}", value in "[a-z]{0,2}", given in proptest::collection::btree_map("[a-z]{1,3}", "[a-z]{0,2}", 0..4)) {
        let matches = |operator: &str, values: &[&str]| {
            CompiledSelector::from_parts(&BTreeMap::new(), &[expression(&key, operator, values)]).unwrap().matches(&given)
        };
        prop_assert_ne!(matches("In", &[&value]), matches("NotIn", &[&value]));
        prop_assert_ne!(matches("Exists", &[]), matches("DoesNotExist", &[]));
    }

    #[test]
    fn any_text_compiles_or_is_refused_without_panic(key in "\\PC{0,70}", value in "\\PC{0,70}", operator in "In|Exists|\\PC{0,5}") {
        let _ = CompiledSelector::from_parts(&labels(&[(&key, &value)]), &[expression(&key, &operator, &[&value])]);
    }
}
