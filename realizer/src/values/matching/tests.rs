use serde_json::json;

use super::*;

struct Thing {
    labels: BTreeMap<String, String>,
    fields: Value,
}

impl Matched for Thing {
    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }
}

impl Fields for Thing {
    fn read(&self, path: &FieldPath) -> Result<Cow<'_, Value>, PathProblem> {
        path.read(&self.fields)
    }
}

fn thing(labels: &[(&str, &str)], fields: Value) -> Thing {
    let labels = labels
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Thing { labels, fields }
}

fn matcher(yaml: &str) -> Matcher {
    Matcher::new(&serde_saphyr::from_str(yaml).unwrap())
}

fn field(operator: &str, key: &str, values: &[&str]) -> FieldMatcher {
    FieldMatcher::new(&FieldRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    })
}

#[test]
fn field_operators_follow_the_table_of_found_null_and_absent() {
    let object = json!({"text": "a", "null": null, "number": 5, "bool": true, "list": ["a"], "map": {"a": "a"}});
    // Columns: In [a 5 true], NotIn [a 5 true], Exists, DoesNotExist.
    let cases = [
        ("text", [true, false, true, false]),
        ("null", [false, true, false, true]),
        ("absent", [false, false, false, true]),
        ("number", [false, true, true, false]),
        ("bool", [false, true, true, false]),
        ("list", [false, true, true, false]),
        ("map", [false, true, true, false]),
        ("text.below", [false, false, false, true]),
    ];
    for (key, expected) in cases {
        let operators = ["In", "NotIn", "Exists", "DoesNotExist"];
        for (operator, expected) in operators.into_iter().zip(expected) {
            let values: &[&str] = if operator.ends_with("In") {
                &["a", "5", "true"]
            } else {
                &[]
            };
            assert_eq!(
                field(operator, key, values).matches(&object),
                Ok(expected),
                "{key} {operator}"
            );
        }
    }
}

#[test]
fn field_errors_name_the_requirement() {
    let object = json!({"list": ["a", "b"]});
    let cases = [
        (
            field("In", "list[*]", &["a", "b"]),
            "unable to match field requirement with key [list[*]] operator [In] values [[a b]]: too many results for \
             the query: list[*]",
        ),
        (
            field("Exists", "list[9]", &[]),
            "unable to match field requirement with key [list[9]] operator [Exists] values [[]]: evaluate: failed to \
             find results: array index out of bounds: index 9, length 2",
        ),
        (
            field("Like", "list", &["a"]),
            "unable to match field requirement with key [list] operator [Like] values [[a]]: invalid operator Like for \
             field selector",
        ),
    ];
    for (matcher, expected) in cases {
        assert_eq!(matcher.matches(&object).unwrap_err().to_string(), expected);
    }
}

#[test]
fn score_is_the_number_of_requirements() {
    let web = thing(
        &[("type", "web"), ("team", "a")],
        json!({"spec": {"image": "i"}}),
    );
    let cases = [
        ("{}", Match::Yes(0)),
        ("{matchLabels: {type: web}}", Match::Yes(1)),
        ("{matchLabels: {type: web, team: a}}", Match::Yes(2)),
        (
            "{matchLabels: {type: web}, matchExpressions: [{key: team, operator: Exists}]}",
            Match::Yes(2),
        ),
        (
            "{matchLabels: {type: web}, matchExpressions: [{key: x, operator: DoesNotExist}], \
              matchFields: [{key: spec.image, operator: Exists}]}",
            Match::Yes(3),
        ),
        (
            "{matchFields: [{key: spec.image, operator: In, values: [i]}]}",
            Match::Yes(1),
        ),
    ];
    for (yaml, expected) in cases {
        assert_eq!(matcher(yaml).matches(&web), Ok(expected), "{yaml}");
    }
}

#[test]
fn a_selector_that_does_not_match_names_the_first_requirement_that_is_not_met() {
    let web = thing(
        &[("type", "web"), ("team", "a")],
        json!({"spec": {"image": "i", "count": 5}}),
    );
    let cases = [
        (
            "{matchLabels: {type: api}}",
            "label [type] must be one of [api], but is [web]",
        ),
        (
            "{matchLabels: {team: a, unit: u}, matchFields: [{key: spec.absent, operator: Exists}]}",
            "label [unit] must be one of [u], but is not there",
        ),
        (
            "{matchExpressions: [{key: type, operator: NotIn, values: [web, api]}]}",
            "label [type] must be none of [web, api], but is [web]",
        ),
        (
            "{matchExpressions: [{key: type, operator: DoesNotExist}]}",
            "label [type] must not be there, but is [web]",
        ),
        (
            "{matchLabels: {type: web}, matchFields: [{key: spec.image, operator: DoesNotExist}]}",
            "field [spec.image] must not be there, but is [i]",
        ),
        (
            "{matchFields: [{key: spec.image, operator: Exists}, {key: spec.count, operator: In, values: ['5']}]}",
            "field [spec.count] must be one of [5], but is [5], which is no text",
        ),
        (
            "{matchFields: [{key: spec.absent, operator: NotIn, values: [x]}]}",
            "field [spec.absent] must be none of [x], but is not there",
        ),
    ];
    for (yaml, expected) in cases {
        let matcher = matcher(yaml);
        let Ok(Match::No(unmet)) = matcher.matches(&web) else {
            panic!("{yaml} matches");
        };
        assert_eq!(unmet.to_string(), expected, "{yaml}");
    }
}

#[test]
fn fields_are_not_evaluated_where_labels_do_not_match() {
    let broken =
        matcher("{matchLabels: {type: api}, matchFields: [{key: 'spec[', operator: Exists}]}");
    assert!(matches!(
        broken.matches(&thing(&[("type", "web")], json!({}))),
        Ok(Match::No(Unmet::Label { .. }))
    ));
    assert!(
        broken
            .matches(&thing(&[("type", "api")], json!({})))
            .is_err()
    );
}

#[test]
fn label_selectors_that_cannot_be_built_are_hard_errors() {
    let broken = matcher("{matchExpressions: [{key: a, operator: Like, values: [b]}]}");
    let error = broken
        .matches(&thing(&[], json!({})))
        .unwrap_err()
        .to_string();
    let expected = "selector labels or matchExpressions are not valid: \"Like\" is not a valid ";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn field_errors_of_a_selector_are_wrapped() {
    let broken = matcher("{matchFields: [{key: 'list[*]', operator: Exists}]}");
    assert_eq!(
        broken
            .matches(&thing(&[], json!({"list": [1, 2]})))
            .unwrap_err()
            .to_string(),
        "failed to evaluate selector matchFields: unable to match field requirement with key [list[*]] operator \
         [Exists] values [[]]: too many results for the query: list[*]"
    );
}

#[test]
fn best_matches_are_all_of_the_highest_score() {
    let web = thing(&[("type", "web"), ("test", "tekton")], json!({}));
    let cases: [(&[&str], &[usize]); 6] = [
        (
            &[
                "{matchLabels: {type: web}}",
                "{matchLabels: {type: web, test: tekton}}",
            ],
            &[1],
        ),
        (
            &[
                "{matchLabels: {type: web, test: tekton}}",
                "{matchLabels: {type: web}}",
            ],
            &[0],
        ),
        (
            &[
                "{matchLabels: {type: web}}",
                "{matchLabels: {test: tekton}}",
            ],
            &[0, 1],
        ),
        (&["{}", "{matchLabels: {type: web}}"], &[1]),
        (&["{}"], &[]),
        (&["{matchLabels: {type: api}}"], &[]),
    ];
    for (selectors, expected) in cases {
        let matchers: Vec<Matcher> = selectors.iter().map(|yaml| matcher(yaml)).collect();
        assert_eq!(
            best_matches(&matchers, &web),
            Ok(expected.to_vec()),
            "{selectors:?}"
        );
    }
}

#[test]
fn the_first_selector_that_cannot_be_evaluated_ends_the_choice() {
    let matchers = [
        matcher("{matchLabels: {type: web}}"),
        matcher("{matchExpressions: [{key: a, operator: Like}]}"),
    ];
    let (index, _) = best_matches(&matchers, &thing(&[("type", "web")], json!({}))).unwrap_err();
    assert_eq!(index, 1);
}

#[test]
fn broken_selectors_still_tell_by_their_valid_labels() {
    let labels = |pairs: &[(&str, &str)]| thing(pairs, json!({})).labels;
    let broken =
        matcher("{matchLabels: {type: web}, matchExpressions: [{key: a, operator: Like}]}");
    assert!(broken.could_match(&labels(&[("type", "web")])));
    assert!(!broken.could_match(&labels(&[("type", "api")])));
    assert!(broken.is_chosen_by_labels(&labels(&[("type", "web")])));
    let hopeless = matcher("{matchExpressions: [{key: a, operator: Like}]}");
    assert!(hopeless.could_match(&labels(&[("type", "web")])));
    assert!(!hopeless.is_chosen_by_labels(&labels(&[("type", "web")])));
    let fields_only = matcher("{matchFields: [{key: 'spec[', operator: Exists}]}");
    assert!(!fields_only.is_chosen_by_labels(&labels(&[("type", "web")])));
    assert!(fields_only.broken().is_some());
    assert!(
        matcher("{matchFields: [{key: 'spec.env[0]', operator: Exists}]}")
            .broken()
            .is_none()
    );
}
