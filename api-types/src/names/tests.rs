use super::*;

fn long(length: usize) -> String {
    "n".repeat(length)
}

#[test]
fn every_rule_keeps_to_its_length_and_its_characters() {
    use NameRule::{DnsLabel, LabelValue, Subdomain};
    // Text, then whether it keeps: subdomain, DNS label, value of a label.
    let cases: [(&str, [bool; 3]); 17] = [
        ("a", [true, true, true]),
        ("0-9", [true, true, true]),
        ("", [false, false, true]),
        ("a.b", [true, false, true]),
        ("a..b", [false, false, true]),
        (".a", [false, false, false]),
        ("a.", [false, false, false]),
        ("a.-b", [false, false, true]),
        ("-a", [false, false, false]),
        ("a-", [false, false, false]),
        ("A", [false, false, true]),
        ("a_b", [false, false, true]),
        ("a b", [false, false, false]),
        ("a,b!=c", [false, false, false]),
        ("a/b", [false, false, false]),
        ("a\n", [false, false, false]),
        ("é", [false, false, false]),
    ];
    for (text, expected) in cases {
        let kept = [Subdomain, DnsLabel, LabelValue].map(|rule| rule.is_kept_by(text));
        assert_eq!(kept, expected, "{text:?}");
    }
    for (length, expected) in [
        (63, [true, true, true]),
        (64, [true, false, false]),
        (253, [true, false, false]),
        (254, [false, false, false]),
    ] {
        let kept = [Subdomain, DnsLabel, LabelValue].map(|rule| rule.is_kept_by(&long(length)));
        assert_eq!(kept, expected, "{length} characters");
    }
}

#[test]
fn an_error_names_the_value_the_rule_and_what_to_do() {
    let error = NamespaceName::try_from("Team").unwrap_err();
    assert_eq!(
        (error.rule, error.value.as_str()),
        (NameRule::DnsLabel, "Team")
    );
    assert_eq!(
        error.to_string(),
        "[Team] is not a valid namespace name: it must be 1 to 63 lower case letters, digits and '-', with a letter or digit \
         at both ends; rename it"
    );
    let error = LabelValue::try_from("a b").unwrap_err().to_string();
    assert!(
        error.ends_with("; shorten or rename what it is taken from"),
        "{error}"
    );
}

#[test]
fn names_are_written_as_the_text_they_are() {
    let name = ObjectName::try_from("app").unwrap();
    assert_eq!(serde_json::to_value(&name).unwrap(), "app");
    assert_eq!((name.to_string(), name.as_ref()), ("app".to_owned(), "app"));
    assert_eq!(String::from(name), "app");
    assert_eq!(
        ResourceName::from("any text, really").as_str(),
        "any text, really"
    );
}
