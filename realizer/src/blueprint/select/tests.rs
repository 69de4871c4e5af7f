#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

use serde_json::{Value, json};

use super::*;
use crate::Family;

fn owner(labels: Value, spec: Value) -> Owner {
    let object = json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
        "metadata": {"namespace": "ns", "name": "app", "uid": "u", "labels": labels}, "spec": spec,
    });
    Owner::parse(Family::SupplyChain, Arc::new(object)).unwrap()
}

fn chain(name: &str, yaml: &str) -> Arc<Blueprint> {
    let mut spec: Value = serde_saphyr::from_str(yaml).unwrap();
    spec["resources"] = json!([]);
    let object = json!({"metadata": {"name": name}, "spec": spec});
    Arc::new(Blueprint::compile(Family::SupplyChain, &object).unwrap())
}

fn chosen(owner: &Owner, blueprints: &[Arc<Blueprint>]) -> String {
    match select_blueprint(owner, blueprints) {
        Selection::One(blueprint) => blueprint.name.to_string(),
        Selection::LabelsMissing => "labels missing".to_owned(),
        Selection::NotFound(None) => "not found".to_owned(),
        Selection::NotFound(Some(cause)) => format!("not found, skipped {cause}"),
        Selection::Multiple(names) => format!("multiple {}", names.join(",")),
        Selection::Broken(cause) => format!("broken {cause}"),
    }
}

const GIT: &str = "{key: spec.source.git, operator: Exists}";

/// docs/behaviour/selection.md#specificity.
#[test]
fn the_most_specific_selector_wins() {
    let x = chain("x", "{selector: {type: web}}");
    let y = chain("y", "{selector: {type: web, test: tekton}}");
    let with_git = chain(
        "git",
        &format!("{{selector: {{type: web}}, selectorMatchFields: [{GIT}]}}"),
    );
    let branch = |name: &str, branches: &str| {
        chain(
            name,
            &format!(
                "{{selector: {{type: web}}, selectorMatchFields: [{GIT}, \
                 {{key: spec.source.git.ref.branch, operator: In, values: [{branches}]}}]}}"
            ),
        )
    };
    let (main, master) = (branch("main", "main"), branch("master", "main, master"));
    let fields_only = chain("fields", &format!("{{selectorMatchFields: [{GIT}]}}"));
    let on_main = json!({"source": {"git": {"ref": {"branch": "main"}}}});
    let cases = [
        (
            json!({"type": "web", "test": "tekton"}),
            json!({}),
            vec![&x, &y],
            "y",
        ),
        (json!({"type": "web"}), json!({}), vec![&x, &y], "x"),
        (
            json!({"type": "web"}),
            on_main.clone(),
            vec![&with_git, &main],
            "main",
        ),
        (
            json!({"type": "web"}),
            on_main.clone(),
            vec![&main, &master],
            "multiple main,master",
        ),
        (
            json!({"type": "web"}),
            on_main.clone(),
            vec![&master, &main],
            "multiple main,master",
        ),
        (
            json!({}),
            on_main.clone(),
            vec![&fields_only],
            "labels missing",
        ),
        (
            json!({"any": "label"}),
            on_main,
            vec![&fields_only],
            "fields",
        ),
        (json!({"type": "api"}), json!({}), vec![&x, &y], "not found"),
        (json!({"type": "web"}), json!({}), vec![], "not found"),
    ];
    for (labels, spec, blueprints, expected) in cases {
        let blueprints: Vec<Arc<Blueprint>> = blueprints.into_iter().cloned().collect();
        assert_eq!(
            chosen(&owner(labels.clone(), spec), &blueprints),
            expected,
            "{labels}"
        );
    }
}

#[test]
fn an_empty_selector_selects_nobody() {
    assert_eq!(
        chosen(
            &owner(json!({"a": "b"}), json!({})),
            &[chain("all", "{selector: {}}")]
        ),
        "not found"
    );
}

#[test]
fn unset_fields_are_seen_as_go_sees_them() {
    let cases = [
        ("{key: spec.build, operator: Exists}", "c"),
        ("{key: spec.serviceAccountName, operator: Exists}", "c"),
        ("{key: spec.source, operator: Exists}", "not found"),
        ("{key: spec.source, operator: DoesNotExist}", "c"),
        ("{key: spec.source.git.url, operator: DoesNotExist}", "c"),
        ("{key: spec.env, operator: DoesNotExist}", "c"),
        (
            "{key: metadata.labels.missing, operator: DoesNotExist}",
            "c",
        ),
        ("{key: spec.image, operator: NotIn, values: [x]}", "c"),
        (
            "{key: metadata.labels.missing, operator: NotIn, values: [x]}",
            "not found",
        ),
        (
            "{key: 'spec.params[?(@.name==\"x\")].value', operator: DoesNotExist}",
            "c",
        ),
        ("{key: 'metadata.generation', operator: Exists}", "c"),
    ];
    for (field, expected) in cases {
        let blueprints = [chain("c", &format!("{{selectorMatchFields: [{field}]}}"))];
        assert_eq!(
            chosen(&owner(json!({"a": "b"}), json!({})), &blueprints),
            expected,
            "{field}"
        );
    }
}

#[test]
fn a_broken_blueprint_stalls_only_owners_its_labels_match() {
    let good = chain("good", "{selector: {type: web}}");
    let elsewhere = chain(
        "elsewhere",
        "{selector: {type: api}, selectorMatchFields: [{key: 'spec[', operator: Exists}]}",
    );
    let hopeless = chain(
        "hopeless",
        "{selectorMatchExpressions: [{key: a, operator: Like}]}",
    );
    let unparsable = chain(
        "unparsable",
        "{selectorMatchFields: [{key: 'spec[', operator: Exists}]}",
    );
    let web = owner(json!({"type": "web"}), json!({}));
    for broken in [&elsewhere, &hopeless, &unparsable] {
        assert!(
            !broken.warnings().is_empty(),
            "{} is reported on the blueprint",
            broken.name
        );
        assert_eq!(
            chosen(&web, &[Arc::clone(broken), Arc::clone(&good)]),
            "good",
            "{}",
            broken.name
        );
    }
    let meant = chain(
        "meant",
        "{selector: {type: web, test: x}, selectorMatchExpressions: [{key: a, operator: Like}]}",
    );
    let meant_for = owner(json!({"type": "web", "test": "x"}), json!({}));
    assert!(
        chosen(&meant_for, &[meant, good])
            .starts_with("broken failed to get supply chains for workload [ns/app]")
    );
}

/// Every labelled owner without that item would be stalled by a blueprint that is not meant for it.
#[test]
fn a_selector_by_fields_alone_stalls_nobody_whose_data_it_does_not_fit() {
    let indexing = chain(
        "indexing",
        "{selectorMatchFields: [{key: 'spec.env[0].name', operator: Exists}]}",
    );
    assert!(indexing.warnings().is_empty());
    let good = chain("good", "{selector: {a: b}}");
    let without = owner(json!({"a": "b"}), json!({"env": []}));
    let with = owner(json!({"c": "d"}), json!({"env": [{"name": "x"}]}));
    let both = [Arc::clone(&indexing), good];
    assert_eq!(chosen(&without, &both), "good");
    assert_eq!(chosen(&with, &both), "indexing");
    assert_eq!(
        chosen(&without, &[indexing]),
        "not found, skipped failed to get supply chains for workload [ns/app]: evaluating supply chain selectors against \
         workload [ns/app] failed: error handling selectors, selectorMatchExpressions or selectorMatchFields of \
         [ClusterSupplyChain/indexing]: failed to evaluate selector matchFields: unable to match field requirement \
         with key [spec.env[0].name] operator [Exists] values [[]]: evaluate: failed to find results: array index out \
         of bounds: index 0, length 0"
    );
}

/// Most owners lack a label that a selector wants not to be there, whatever the selector is for.
#[test]
fn a_selector_that_asks_only_for_labels_not_to_be_there_claims_no_owner() {
    let field = "selectorMatchFields: [{key: 'spec.env[0].name', operator: Exists}]";
    let broken = "{key: a, operator: Like}";
    let cases = [
        (
            format!(
                "{{selectorMatchExpressions: [{{key: legacy, operator: DoesNotExist}}], {field}}}"
            ),
            true,
        ),
        (
            format!(
                "{{selectorMatchExpressions: [{{key: type, operator: NotIn, values: [api]}}], {field}}}"
            ),
            true,
        ),
        (
            format!(
                "{{selectorMatchExpressions: [{{key: legacy, operator: DoesNotExist}}, {broken}]}}"
            ),
            true,
        ),
        (
            format!("{{selectorMatchExpressions: [{{key: type, operator: Exists}}], {field}}}"),
            false,
        ),
        (
            format!(
                "{{selectorMatchExpressions: [{{key: type, operator: In, values: [web]}}, {broken}]}}"
            ),
            false,
        ),
        (
            format!(
                "{{selector: {{type: web}}, selectorMatchExpressions: [{{key: legacy, operator: DoesNotExist}}], {field}}}"
            ),
            false,
        ),
    ];
    let web = owner(json!({"type": "web", "team": "a"}), json!({}));
    let good = chain("good", "{selector: {type: web, team: a}}");
    for (selector, is_skipped) in cases {
        let text = chosen(&web, &[chain("other", &selector), Arc::clone(&good)]);
        let expected = if is_skipped {
            "good"
        } else {
            "broken failed to get"
        };
        assert!(text.starts_with(expected), "{selector}: {text}");
    }
}

#[test]
fn an_error_made_by_the_data_of_an_owner_that_the_labels_choose_is_the_owners() {
    let indexing = chain(
        "indexing",
        "{selector: {a: b}, selectorMatchFields: [{key: 'spec.env[0].name', operator: Exists}]}",
    );
    let good = chain("good", "{selector: {a: b}}");
    let text = chosen(
        &owner(json!({"a": "b"}), json!({"env": []})),
        &[indexing, good],
    );
    assert!(
        text.starts_with("broken failed to get supply chains for workload [ns/app]: ")
            && text.ends_with("array index out of bounds: index 0, length 0"),
        "{text}"
    );
}

#[test]
fn deliverables_say_deliveries_outside_and_supply_chain_inside() {
    let object =
        json!({"metadata": {"namespace": "ns", "name": "app", "uid": "u", "labels": {"a": "b"}}});
    let owner = Owner::parse(Family::Delivery, Arc::new(object)).unwrap();
    let object = json!({"metadata": {"name": "d"}, "spec": {"selector": {"a": "b"}, "resources": [],
        "selectorMatchExpressions": [{"key": "a", "operator": "Like"}]}});
    let blueprint = Arc::new(Blueprint::compile(Family::Delivery, &object).unwrap());
    let text = chosen(&owner, &[blueprint]);
    assert!(
        text.starts_with(
            "broken failed to get deliveries for deliverable [ns/app]: evaluating supply chain selectors against \
             deliverable [ns/app] failed: error handling selectors, selectorMatchExpressions or selectorMatchFields \
             of [ClusterDelivery/d]: selector labels or matchExpressions are not valid: "
        ),
        "{text}"
    );
}
