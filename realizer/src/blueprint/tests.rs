#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

use std::sync::Arc;

use serde_json::json;

use super::*;

fn compile(yaml: &str) -> Blueprint {
    let spec: Value = serde_saphyr::from_str(yaml).unwrap();
    let object = json!({"metadata": {"name": "chain", "uid": "u", "generation": 7}, "spec": spec});
    Blueprint::compile(Family::SupplyChain, &object).unwrap()
}

fn owner(labels: &Value, spec: Value) -> Owner {
    let object = json!({"metadata": {"namespace": "ns", "name": "app", "uid": "u", "labels": labels}, "spec": spec});
    Owner::parse(Family::SupplyChain, Arc::new(object)).unwrap()
}

#[test]
fn metadata_is_taken_over() {
    let blueprint = compile("{resources: []}");
    assert_eq!(
        (
            blueprint.name.as_str(),
            blueprint.uid.as_str(),
            blueprint.generation
        ),
        ("chain", "u", 7)
    );
}

#[test]
fn template_refs_are_named_once_with_options_and_without_pass_through() {
    let blueprint = compile(
        "resources:
        - {name: a, templateRef: {kind: ClusterSourceTemplate, name: t}}
        - {name: b, templateRef: {kind: ClusterSourceTemplate, name: t}}
        - name: c
          templateRef:
            kind: ClusterImageTemplate
            options: [{name: x, selector: {}}, {passThrough: in, selector: {}}, {name: z, selector: {}}]
        - {name: d, templateRef: {kind: ClusterTemplate, name: t}}",
    );
    let refs: Vec<_> = blueprint.template_refs().collect();
    assert_eq!(
        refs,
        [
            (TemplateKind::Source, "t"),
            (TemplateKind::Image, "x"),
            (TemplateKind::Image, "z"),
            (TemplateKind::Plain, "t")
        ]
    );
    assert!(blueprint.has_resource("c") && !blueprint.has_resource("x"));
}

#[test]
fn the_providers_of_a_step_are_all_that_it_names_and_nobody_has_them_who_is_not_there() {
    let blueprint = compile(
        "resources:
        - {name: a, templateRef: {kind: ClusterSourceTemplate, name: t}}
        - name: b
          templateRef: {kind: ClusterTemplate, name: t}
          sources: [{name: code, resource: a}]
          configs: [{name: config, resource: ghost}]
          dependsOn: [{resource: c}]
        - {name: c, templateRef: {kind: ClusterConfigTemplate, name: t}}",
    );
    let providers = |name: &str| blueprint.providers(name).collect::<Vec<_>>().join(" ");
    assert_eq!(providers("b"), "a ghost c");
    assert_eq!(providers("a"), "");
    assert_eq!(providers("x"), "");
}

#[test]
fn inputs_stand_in_the_order_of_the_status() {
    let blueprint = compile(
        "resources:
        - name: all
          templateRef: {kind: ClusterTemplate, name: t}
          configs: [{name: c, resource: config}]
          deployment: {resource: deploy}
          images: [{name: i, resource: image}]
          sources: [{name: s1, resource: source}, {name: s2, resource: source}]",
    );
    let inputs: Vec<&str> = blueprint.steps[0]
        .inputs
        .iter()
        .map(|input| input.resource.as_str())
        .collect();
    assert_eq!(inputs, ["source", "source", "image", "deploy", "config"]);
}

#[test]
fn service_account_is_the_owners_then_the_blueprints_then_default() {
    let none = "{resources: []}";
    let own = "{resources: [], serviceAccountRef: {name: chain-sa}}";
    let foreign = "{resources: [], serviceAccountRef: {name: chain-sa, namespace: builds}}";
    let empty = "{resources: [], serviceAccountRef: {name: '', namespace: builds}}";
    let cases = [
        (none, json!({}), ("ns", "usual")),
        (none, json!({"serviceAccountName": ""}), ("ns", "usual")),
        (own, json!({}), ("ns", "chain-sa")),
        (foreign, json!({}), ("builds", "chain-sa")),
        (
            foreign,
            json!({"serviceAccountName": "mine"}),
            ("ns", "mine"),
        ),
        (empty, json!({}), ("ns", "usual")),
    ];
    for (yaml, spec, (namespace, name)) in cases {
        let found = compile(yaml).service_account(&owner(&json!({}), spec.clone()), "usual");
        assert_eq!(
            found,
            (namespace.to_owned(), name.to_owned()),
            "{yaml} {spec}"
        );
    }
}

#[test]
fn a_blueprint_asks_for_the_labels_of_namespaces_only_where_its_selector_requires_any() {
    let labels = |pairs: &[(&str, &str)]| {
        pairs
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    let unmet = |yaml: &str, pairs: &[(&str, &str)]| {
        let blueprint = compile(&format!("{{resources: [], allowedNamespaces: {yaml}}}"));
        assert_eq!(blueprint.asks_for_namespaces(), yaml.contains("team"));
        blueprint.unmet_by_namespace(&labels(pairs))
    };
    assert_eq!(unmet("{}", &[]), None);
    assert_eq!(unmet("{matchLabels: {}}", &[]), None);
    let one = "{matchLabels: {team: a}}";
    assert_eq!(unmet(one, &[("team", "a"), ("other", "b")]), None);
    let missing = "its label [team] must be one of [a], but is not there";
    assert_eq!(unmet(one, &[("other", "b")]).as_deref(), Some(missing));
    let other = "its label [team] must be one of [a], but is [b]";
    assert_eq!(unmet(one, &[("team", "b")]).as_deref(), Some(other));
    // Nobody can say what is meant, so nobody is let in.
    let broken = "{matchExpressions: [{key: team, operator: Equals, values: [a]}]}";
    let why = "allowedNamespaces is not valid: \"Equals\" is not a valid pod selector operator";
    assert_eq!(unmet(broken, &[("team", "a")]).as_deref(), Some(why));
}

#[test]
fn could_match_looks_at_labels_only() {
    let blueprint = compile(
        "{resources: [], selector: {a: b}, selectorMatchFields: [{key: spec.image, operator: Exists}]}",
    );
    let labels = |labels: Value| owner(&labels, json!({})).labels;
    assert!(blueprint.could_match(&labels(json!({"a": "b"}))));
    assert!(!blueprint.could_match(&labels(json!({"a": "c"}))));
    let fields_only =
        compile("{resources: [], selectorMatchFields: [{key: spec.image, operator: Exists}]}");
    assert!(fields_only.could_match(&labels(json!({"any": "label"}))));
    assert!(
        !fields_only.could_match(&labels(json!({}))),
        "an owner without labels is never selected"
    );
}

#[test]
fn readiness_is_read_from_the_status() {
    let with_status = |status: Value| {
        let object =
            json!({"metadata": {"name": "b"}, "spec": {"resources": []}, "status": status});
        Blueprint::compile(Family::Delivery, &object)
            .unwrap()
            .is_ready()
    };
    let ready = |status: &str| {
        json!({"conditions": [
            {"type": "TemplatesReady", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"},
            {"type": "Ready", "status": status, "reason": "Ready", "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"},
        ]})
    };
    assert!(with_status(ready("True")));
    assert!(!with_status(ready("False")));
    assert!(!with_status(ready("Unknown")));
    assert!(!with_status(json!({"conditions": []})));
    assert!(!with_status(json!(null)));
    assert!(!with_status(json!({"conditions": "nonsense"})));
}

#[test]
fn objects_of_another_shape_are_errors() {
    let error = |object: Value| {
        Blueprint::compile(Family::SupplyChain, &object)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error(json!({})), "object has no metadata.name");
    assert_eq!(
        error(json!({"metadata": {"name": 5}})),
        "object has no metadata.name"
    );
    assert!(
        error(json!({"metadata": {"name": "B"}}))
            .starts_with("metadata.name: [B] is not a valid object name: ")
    );
    let text = error(json!({"metadata": {"name": "b"}, "spec": {"resources": "x"}}));
    assert!(
        text.starts_with("spec of blueprint [b] cannot be read: "),
        "{text}"
    );
}
