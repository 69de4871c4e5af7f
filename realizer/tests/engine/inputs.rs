//! Inputs: order of submission, missing ones, and the steps they hold.

use serde_json::json;

use crate::scenario::Scenario;

/// A source template that yields what the object's `spec` holds, a plain one that needs no input, and a Workload.
const TEMPLATES: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: src}
spec:
  urlPath: .spec.url
  revisionPath: .spec.rev
  params: [{name: rev, default: main}]
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
    spec: {url: u, rev: $(params.rev)$}
---
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: silent}
spec:
  urlPath: .status.url
  revisionPath: .status.rev
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: plain}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: needs-source}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
    data: {url: $(source.url)$}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {}
";

fn scenario(resources: &str) -> Scenario {
    let mut scenario = Scenario::new(TEMPLATES);
    scenario.apply(&format!(
        "kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {{name: chain}}
spec:
  selector: {{type: web}}
  resources: {resources}"
    ));
    scenario
}

#[test]
fn a_step_may_take_the_output_of_a_later_one() {
    let mut scenario = scenario(
        "
  - {name: publish, templateRef: {kind: ClusterTemplate, name: needs-source}, sources: [{name: s, resource: fetch}]}
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}",
    );
    assert_eq!(scenario.reconcile().reason, "Ready");
    assert_eq!(scenario.cluster.log, ["fetch: Created", "publish: Created"]);
    let names: Vec<_> = scenario.owner["status"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["name"])
        .collect();
    assert_eq!(
        names,
        ["publish", "fetch"],
        "status keeps the blueprint's order"
    );
}

#[test]
fn the_first_error_is_the_first_in_blueprint_order_whatever_was_submitted_first() {
    let mut scenario = scenario(
        "
  - {name: publish, templateRef: {kind: ClusterTemplate, name: needs-source}, sources: [{name: s, resource: fetch}]}
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: silent}}",
    );
    scenario.advance();
    assert!(
        scenario.owner_condition("ResourcesSubmitted").starts_with(
            "False/TemplateStampFailure/unable to stamp object for resource [publish]"
        )
    );
}

#[test]
fn a_step_whose_rendering_does_not_need_the_missing_input_is_held_with_its_own_reason() {
    let mut scenario = scenario(
        "
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: silent}}
  - {name: publish, templateRef: {kind: ClusterTemplate, name: plain}, sources: [{name: code, resource: fetch}]}",
    );
    let outcome = scenario.reconcile();
    assert_eq!(
        scenario.step_condition("publish", "ResourceSubmitted"),
        "Unknown/InputsNotReady/waiting for input(s) [code] of resource [publish]: not available from resource(s) [fetch]"
    );
    assert_eq!(
        scenario.step_condition("publish", "Healthy"),
        "Unknown/NoStampedObject/"
    );
    assert_eq!(scenario.entry("publish")["templateRef"]["name"], "plain");
    assert_eq!(scenario.cluster.names(), ["fetch"]);
    assert!(
        outcome.events.iter().all(|event| !event.warning),
        "nobody has to act"
    );
    assert!(
        scenario
            .owner_condition("Ready")
            .starts_with("Unknown/MissingValueAtPath/waiting to read value [.status.url]")
    );

    scenario.cluster.object("fetch")["status"] = json!({"url": "u", "rev": "r"});
    assert_eq!(scenario.reconcile().reason, "Ready");
    assert_eq!(scenario.cluster.names(), ["fetch", "publish"]);
}

#[test]
fn an_existing_object_of_a_held_step_is_left_as_it_is() {
    let mut scenario = scenario(
        "
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: silent}}
  - {name: publish, templateRef: {kind: ClusterTemplate, name: plain}, sources: [{name: code, resource: fetch}]}",
    );
    scenario.advance();
    scenario.cluster.object("fetch")["status"] = json!({"url": "u", "rev": "r"});
    scenario.advance();
    let before = scenario.cluster.object("publish").clone();
    scenario.cluster.object("fetch")["status"] = json!({});
    scenario.advance();
    assert_eq!(*scenario.cluster.object("publish"), before);
    assert_eq!(scenario.entry("publish")["stampedRef"]["name"], "publish");
    assert!(
        scenario
            .step_condition("publish", "ResourceSubmitted")
            .starts_with("Unknown/InputsNotReady/")
    );
    assert_eq!(
        scenario.step_condition("publish", "Healthy"),
        "True/AlwaysHealthy/"
    );
}

#[test]
fn unknown_and_own_inputs_are_missing_for_ever_but_harm_nobody_else() {
    let mut scenario = scenario(
        "
  - {name: lost, templateRef: {kind: ClusterTemplate, name: plain}, sources: [{name: s, resource: nowhere}]}
  - {name: self, templateRef: {kind: ClusterSourceTemplate, name: src}, sources: [{name: s, resource: self}]}
  - {name: fine, templateRef: {kind: ClusterTemplate, name: plain}}",
    );
    scenario.advance();
    assert_eq!(
        scenario.step_condition("lost", "ResourceSubmitted"),
        "Unknown/InputsNotReady/waiting for input(s) [s] of resource [lost]: not available from resource(s) [nowhere]; \
         resource [lost] takes input [s] from resource [nowhere], which does not exist"
    );
    assert_eq!(
        scenario.step_condition("self", "ResourceSubmitted"),
        "Unknown/InputsNotReady/waiting for input(s) [s] of resource [self]: not available from resource(s) [self]; \
         resource [self] takes its own output; the input will never be there"
    );
    assert_eq!(scenario.step_condition("fine", "Ready"), "True/Ready/");
    assert_eq!(scenario.cluster.log, ["fine: Created"]);
}

#[test]
fn steps_that_wait_for_one_another_are_all_reported() {
    let mut scenario = scenario(
        "
  - {name: a, templateRef: {kind: ClusterSourceTemplate, name: src}, sources: [{name: s, resource: b}]}
  - {name: b, templateRef: {kind: ClusterSourceTemplate, name: src}, sources: [{name: s, resource: a}]}",
    );
    let outcome = scenario.reconcile();
    let cycle =
        "resources [a -> b -> a] wait for one another; none of them will ever have its inputs";
    for (step, other) in [("a", "b"), ("b", "a")] {
        assert_eq!(
            scenario.step_condition(step, "ResourceSubmitted"),
            format!(
                "Unknown/InputsNotReady/waiting for input(s) [s] of resource [{step}]: not available from resource(s) \
                 [{other}]; {cycle}"
            )
        );
    }
    assert!(scenario.owner_condition("Ready").ends_with(cycle));
    assert_eq!(
        outcome.events.iter().filter(|event| event.warning).count(),
        2
    );
    assert!(scenario.cluster.log.is_empty());
}

/// What upstream says comes first.
#[test]
fn a_rendering_that_lacks_an_input_of_a_cycle_says_so() {
    let mut scenario = scenario(
        "
  - {name: a, templateRef: {kind: ClusterTemplate, name: needs-source}, sources: [{name: s, resource: b}]}
  - {name: b, templateRef: {kind: ClusterSourceTemplate, name: src}, sources: [{name: s, resource: a}]}",
    );
    scenario.advance();
    let text = scenario.owner_condition("Ready");
    assert!(
        text.starts_with(
            "False/TemplateStampFailure/unable to stamp object for resource [a] for template"
        ) && text.ends_with(
            "; resources [a -> b -> a] wait for one another; none of them will ever have its inputs"
        ),
        "{text}"
    );
}

/// What it holds may be what the other writer wants.
#[test]
fn an_object_that_another_writer_keeps_undoing_hands_nothing_on_and_is_not_ready() {
    let mut scenario = scenario(
        "
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - {name: publish, templateRef: {kind: ClusterTemplate, name: needs-source}, sources: [{name: s, resource: fetch}]}",
    );
    assert_eq!(scenario.reconcile().reason, "Ready");
    let (outputs, published) = (
        scenario.entry("fetch")["outputs"].clone(),
        scenario.cluster.object("publish").clone(),
    );

    scenario.cluster.undone.insert("fetch".to_owned());
    scenario.cluster.object("fetch")["spec"]["url"] = json!("forged");
    let outcome = scenario.reconcile();
    let message = "object [ns/fetch] of resource [fetch] in supply chain [chain] does not stay as rendered: another writer \
                   keeps undoing it; stop that writer, or take the fields that it sets out of the template";
    assert_eq!(
        scenario.owner_condition("Ready"),
        format!("False/ObjectUndone/{message}")
    );
    assert_eq!(
        scenario.owner_condition("ObjectContested"),
        format!("True/ObjectContested/{message}")
    );
    assert_eq!(scenario.entry("fetch")["outputs"], outputs);
    assert_eq!(scenario.entry("fetch")["stampedRef"]["name"], "fetch");
    assert_eq!(*scenario.cluster.object("publish"), published);
    assert!(
        outcome.events.iter().all(|event| !event.warning),
        "the shell tells of it: {:?}",
        outcome.events
    );
    assert!(!scenario.reconcile().changed);

    scenario.cluster.undone.clear();
    scenario.cluster.object("fetch")["spec"]["url"] = json!("u");
    assert_eq!(scenario.reconcile().reason, "Ready");
    assert_eq!(scenario.owner_condition("ObjectContested"), "absent");
}

#[test]
fn an_output_of_another_kind_is_no_input() {
    let mut scenario = scenario(
        "
  - {name: first, templateRef: {kind: ClusterTemplate, name: plain}}
  - {name: second, templateRef: {kind: ClusterTemplate, name: plain}, sources: [{name: s, resource: first}]}",
    );
    scenario.advance();
    assert!(
        scenario
            .step_condition("second", "ResourceSubmitted")
            .starts_with("Unknown/InputsNotReady/")
    );
}

#[test]
fn inputs_are_reported_by_resource_in_order_with_duplicates() {
    let mut scenario = scenario(
        "
  - {name: a, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - {name: b, templateRef: {kind: ClusterSourceTemplate, name: src}}
  - name: all
    templateRef: {kind: ClusterTemplate, name: plain}
    sources: [{name: one, resource: b}, {name: two, resource: a}, {name: three, resource: b}]",
    );
    scenario.advance();
    assert_eq!(
        scenario.entry("all")["inputs"],
        json!([{"name": "b"}, {"name": "a"}, {"name": "b"}])
    );
}

#[test]
fn params_reach_the_template_by_precedence() {
    let mut scenario = scenario(
        "
  - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}, params: [{name: rev, default: step}]}",
    );
    scenario.advance();
    assert_eq!(scenario.cluster.object("fetch")["spec"]["rev"], "step");
    scenario.owner["spec"]["params"] = json!([{"name": "rev", "value": {"whole": ["object"]}}]);
    scenario.advance();
    assert_eq!(
        scenario.cluster.object("fetch")["spec"]["rev"],
        json!({"whole": ["object"]})
    );
}
