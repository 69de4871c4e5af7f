//! The admission rules against the corpus.

use std::collections::BTreeMap;
use std::path::Path;

use api_types::validation::{Verdict, validate};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_support::admission_corpus::cases;

#[test]
fn every_case_of_the_corpus_gets_its_verdict() {
    for case in cases() {
        let expected = Verdict {
            error: case.error,
            warnings: case.warnings,
        };
        assert_eq!(
            validate(&case.kind, &case.object),
            expected,
            "{}: {}",
            case.rule,
            case.object
        );
    }
}

/// Manifests that other tests and people apply and that work: nothing is to be said about them.
#[test]
fn no_template_that_works_is_warned_about() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = [
        "examples",
        "api-types/tests/apiserver/examples",
        "realizer/tests",
        "cli/tests/golden",
    ];
    let mut folders: Vec<_> = folders.map(|folder| root.join(folder)).into();
    let mut templates = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "yaml")
            {
                templates += templates_without_warnings(&path);
            }
        }
    }
    assert!(templates > 30, "{templates}");
}

#[expect(
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]
fn templates_without_warnings(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap();
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let mut templates = 0;
    for object in documents {
        let kind = object["kind"].as_str().unwrap_or_default();
        if kind.starts_with("Cluster") && kind.ends_with("Template") {
            let verdict = validate(kind, &object);
            assert_eq!(verdict, Verdict::default(), "{}: {object}", file.display());
            templates += 1;
        }
    }
    templates
}

#[test]
fn every_rule_has_an_admitted_and_a_refused_case() {
    let mut rules: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    for case in cases() {
        rules.entry(case.rule).or_default()[usize::from(case.error.is_some())] += 1;
    }
    assert!(rules.len() >= 36, "{}", rules.len());
    for (rule, [admitted, refused]) in rules {
        let is_refusing = !rule.starts_with("warnings about ");
        assert!(admitted > 0, "{rule}");
        assert_eq!(refused > 0, is_refusing, "{rule}");
    }
}

#[test]
fn neither_policies_nor_schemas_refuse_what_is_admitted() {
    for case in cases().into_iter().filter(|case| case.error.is_none()) {
        assert!(
            case.policy.is_none() && !case.refused_by_schema,
            "{}: {}",
            case.rule,
            case.object
        );
    }
}

#[test]
fn earlier_rules_win() {
    let spec = json!({"selector": {"-": "-"}, "params": [{"name": "p"}], "resources": [
        {"name": "a", "templateRef": {"kind": "ClusterTemplate"}, "params": [{"name": "q"}]},
        {"name": "a", "templateRef": {"kind": "ClusterTemplate"}, "sources": [{"name": "s", "resource": "x"}]},
    ]});
    let mut object = json!({"metadata": {"name": "n"}, "spec": spec});
    let mut next = |expected: &str, pointer: &str, fix: Value| {
        let verdict = validate("ClusterSupplyChain", &object);
        let error = verdict.error.unwrap();
        let text = error
            .strip_prefix("error validating clustersupplychain [n]: ")
            .unwrap();
        assert!(text.starts_with(expected), "{text}");
        *object.pointer_mut(pointer).unwrap() = fix;
    };
    next("param [p]", "/spec/params", json!([]));
    next(
        "resource [a] is invalid: param [q]",
        "/spec/resources/0/params",
        json!([]),
    );
    next("selector is not valid", "/spec/selector", json!({"a": "b"}));
    next(
        "duplicate resource name [a]",
        "/spec/resources/1/name",
        json!("b"),
    );
    next(
        "error validating resource [a]: exactly",
        "/spec/resources/0/templateRef",
        json!({"kind": "ClusterTemplate", "name": "t"}),
    );
    next(
        "error validating resource [b]: exactly",
        "/spec/resources/1/templateRef",
        json!({"kind": "ClusterTemplate", "name": "t"}),
    );
    next(
        "invalid sources for resource [b]",
        "/spec/resources/1/sources",
        json!([]),
    );
    assert_eq!(validate("ClusterSupplyChain", &object), Verdict::default());
}

#[test]
fn kinds_without_a_webhook_are_admitted() {
    for kind in ["Workload", "Deliverable", "Runnable", "ConfigMap"] {
        assert_eq!(validate(kind, &json!({})), Verdict::default());
    }
}

/// As Go writes a struct whose lists are not set.
#[test]
fn a_null_is_an_absent_field_but_where_any_json_is_allowed() {
    let chain = |spec: Value| {
        let object = json!({"metadata": {"name": "n", "creationTimestamp": null}, "spec": spec, "status": {}});
        validate("ClusterSupplyChain", &object).error
    };
    let nothing =
        json!({"selector": null, "selectorMatchFields": null, "params": null, "resources": null});
    assert_eq!(
        chain(nothing).unwrap(),
        "error validating clustersupplychain [n]: at least one selector, selectorMatchExpression, selectorMatchField must be specified"
    );
    let option = |name: &str, selector: Value| json!({"name": name, "selector": selector});
    let resource = json!({"name": "a", "sources": null, "templateRef": {"kind": "ClusterTemplate", "options": [
        option("x", json!({"matchLabels": {"a": "b"}, "matchFields": null})), option("v", json!({"matchLabels": {"a": "b"}}))]}});
    let params = json!([{"name": "p", "value": null}]);
    assert_eq!(
        chain(json!({"selector": {"a": "b"}, "params": params, "resources": [resource]})).unwrap(),
        "error validating clustersupplychain [n]: error validating resource [a]: duplicate selector found in options [x, v]"
    );
    let template =
        json!({"spec": {"template": {"kind": null}, "params": null, "healthRule": null}});
    assert_eq!(
        validate("ClusterTemplate", &template).error.unwrap(),
        "invalid template: failed to parse object: Object 'Kind' is missing in '{\"kind\":null}'"
    );
}

#[test]
fn objects_that_do_not_decode_are_refused() {
    for kind in [
        "ClusterSupplyChain",
        "ClusterDelivery",
        "ClusterTemplate",
        "ClusterRunTemplate",
    ] {
        for object in [json!({}), json!({"spec": 5}), json!(null)] {
            let error = validate(kind, &object).error.unwrap();
            assert!(error.starts_with("invalid object: "), "{error}");
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("a"),
        Just("In"),
        Just("Exists"),
        Just("ClusterSourceTemplate"),
        Just("ClusterTemplate"),
        Just("spec.image"),
        Just("")
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        words.prop_map(Value::from)
    ];
    let keys = prop_oneof![
        Just("name"),
        Just("resources"),
        Just("templateRef"),
        Just("kind"),
        Just("options"),
        Just("selector"),
        Just("sources"),
        Just("resource"),
        Just("matchLabels"),
        Just("matchFields"),
        Just("key"),
        Just("operator"),
        Just("values"),
        Just("params"),
        Just("template"),
        Just("healthRule"),
        Just("multiMatch"),
        Just("passThrough"),
        Just("deployment")
    ];
    leaf.prop_recursive(6, 60, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(keys.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_object_makes_validation_panic(spec in any_json()) {
        let object = json!({"spec": spec});
        for kind in ["ClusterSupplyChain", "ClusterDelivery", "ClusterDeploymentTemplate", "ClusterSourceTemplate", "ClusterRunTemplate"] {
            validate(kind, &object);
        }
    }

    /// Any graph of steps: a step is reported as waiting for itself exactly if it can reach itself.
    #[test]
    fn loops_are_found_exactly(edges in prop::collection::vec((0..6_usize, 0..6_usize), 0..9)) {
        let resources: Vec<Value> = (0..6).map(|step| {
            let inputs: Vec<Value> = edges.iter().filter(|(from, _)| *from == step).enumerate()
                .map(|(index, (_, to))| json!({"name": format!("i{index}"), "resource": format!("r{to}")})).collect();
            json!({"name": format!("r{step}"), "templateRef": {"kind": "ClusterSourceTemplate", "name": "t"}, "sources": inputs})
        }).collect();
        let object = json!({"spec": {"selector": {"a": "b"}, "resources": resources}});
        let verdict = validate("ClusterSupplyChain", &object);
        prop_assert_eq!(&verdict.error, &None);
        let mut reach = [[false; 6]; 6];
        for (from, to) in &edges {
            reach[*from][*to] = true;
        }
        for via in 0..6 {
            for from in 0..6 {
                for to in 0..6 {
                    reach[from][to] |= reach[from][via] && reach[via][to];
                }
            }
        }
        let looping = (0..6).filter(|step| reach[*step][*step]).count();
        let told = |warning: &&String| warning.contains("never there");
        let loops: Vec<&String> = verdict.warnings.iter().filter(told).collect();
        prop_assert_eq!(looping > 0, !loops.is_empty());
        for (step, reached) in reach.iter().enumerate() {
            let named = loops.iter().any(|warning| {
                let names = warning.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(names, _)| names);
                names.is_some_and(|names| names.split(", ").any(|name| name == format!("r{step}")))
            });
            prop_assert_eq!(named, reached[step], "r{}: {:?}", step, verdict.warnings);
        }
    }
}
