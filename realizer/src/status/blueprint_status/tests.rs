use std::sync::Arc;

use api_types::TemplateKind;
use serde_json::json;

use super::*;
use crate::{Family, Template};

/// Templates whose name starts with `x` exist, with `u` cannot be read.
struct Templates;

impl TemplateSource for Templates {
    fn template(&self, _: TemplateKind, name: &str) -> TemplateState {
        match &name[..1] {
            "x" => {
                let object = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate",
                    "metadata": {"name": name}, "spec": {"ytt": ""}});
                TemplateState::Found(Arc::new(Template::compile(&object).unwrap()))
            }
            "u" => TemplateState::Unreadable("why".to_owned()),
            _ => TemplateState::Missing,
        }
    }
}

fn blueprint(resources: &str) -> Blueprint {
    let resources: Value = serde_saphyr::from_str(resources).unwrap();
    let object = json!({"metadata": {"name": "chain"}, "spec": {"resources": resources}});
    Blueprint::compile(Family::SupplyChain, &object).unwrap()
}

fn now() -> Timestamp {
    "2024-05-01T10:00:00Z".parse().unwrap()
}

fn status(resources: &str) -> Outcome {
    blueprint_status(&blueprint(resources), &Templates, &Value::Null, 2, now())
}

fn conditions(outcome: &Outcome) -> Vec<String> {
    let conditions: Vec<Condition> =
        serde_json::from_value(outcome.status["conditions"].clone()).unwrap();
    conditions
        .iter()
        .map(|condition| {
            format!(
                "{} {} {} {}",
                condition.type_, condition.status, condition.reason, condition.message
            )
        })
        .collect()
}

#[test]
fn ready_when_all_templates_exist() {
    let outcome = status(
        "[{name: a, templateRef: {kind: ClusterTemplate, name: x}},
          {name: b, templateRef: {kind: ClusterTemplate, options: [{name: x2, selector: {}}, {passThrough: in, selector: {}}]}}]",
    );
    assert_eq!(
        conditions(&outcome),
        ["TemplatesReady True Ready ", "Ready True Ready "]
    );
    assert_eq!(outcome.status["observedGeneration"], 2);
    assert_eq!(
        (outcome.ready, outcome.retry),
        (ConditionStatus::True, Retry::AwaitChange)
    );
    assert!(outcome.changed && outcome.events.is_empty());
}

#[test]
fn resources_without_template_are_named_once_per_missing_option() {
    let outcome = status(
        "[{name: a, templateRef: {kind: ClusterTemplate, name: gone}}, {name: b, templateRef: {kind: ClusterTemplate, name: x}},
          {name: c, templateRef: {kind: ClusterTemplate, options: [{name: m1, selector: {}}, {name: m2, selector: {}}]}}]",
    );
    let text = "False TemplatesNotFound did not find the template of the resource(s) [a, c, c]";
    assert_eq!(
        conditions(&outcome),
        [format!("TemplatesReady {text}"), format!("Ready {text}")]
    );
    assert_eq!(outcome.reason, "TemplatesNotFound");
}

#[test]
fn templates_that_cannot_be_read_leave_it_unknown() {
    let outcome = status("[{name: a, templateRef: {kind: ClusterTemplate, name: u}}]");
    assert_eq!(conditions(&outcome), ["Ready Unknown Unknown "]);
    assert_eq!(outcome.retry, Retry::Backoff);
    assert_eq!(
        outcome.events[0].message,
        "template [ClusterTemplate/u] of resource [a] cannot be used: why"
    );
    assert!(outcome.events[0].warning);
}

#[test]
fn problems_of_the_graph_are_told_once_per_generation_and_not_in_ready() {
    let blueprint = blueprint(
        "[{name: a, templateRef: {kind: ClusterTemplate, name: x}, sources: [{name: s, resource: a}]}]",
    );
    let first = blueprint_status(&blueprint, &Templates, &Value::Null, 1, now());
    assert_eq!(first.reason, "Ready");
    let told: Vec<_> = first
        .events
        .iter()
        .map(|event| (event.reason.as_str(), event.message.as_str()))
        .collect();
    assert_eq!(
        told,
        [(
            "BlueprintProblem",
            "resource [a] takes its own output; the input will never be there"
        )]
    );
    assert_eq!(
        conditions(&first),
        [
            "TemplatesReady True Ready ",
            "Ready True Ready ",
            "BlueprintProblem True BlueprintProblem resource [a] takes its own output; the input will never be there"
        ]
    );
    let again = blueprint_status(&blueprint, &Templates, &first.status, 1, now());
    assert!(again.events.is_empty() && !again.changed);
    let edited = blueprint_status(&blueprint, &Templates, &first.status, 2, now());
    assert_eq!(edited.events.len(), 1);
    assert!(edited.changed, "the generation moved");
}

#[test]
fn a_problem_that_is_mended_leaves_no_condition() {
    let steps = |provider: &str| {
        blueprint(&format!(
            "[{{name: a, templateRef: {{kind: ClusterTemplate, name: x}}, sources: [{{name: s, resource: {provider}}}]}},
              {{name: b, templateRef: {{kind: ClusterTemplate, name: x}}, sources: [{{name: s, resource: a}}]}},
              {{name: c, templateRef: {{kind: ClusterTemplate, name: x}}}}]"
        ))
    };
    let waiting = blueprint_status(&steps("b"), &Templates, &Value::Null, 1, now());
    assert_eq!(
        conditions(&waiting)[2],
        "BlueprintProblem True BlueprintProblem resources [a -> b -> a] wait for one another; none of them will ever have \
         its inputs"
    );
    let mended = blueprint_status(&steps("c"), &Templates, &waiting.status, 2, now());
    assert_eq!(
        conditions(&mended),
        ["TemplatesReady True Ready ", "Ready True Ready "]
    );
}

#[test]
fn times_stay_while_nothing_changes() {
    let blueprint = blueprint("[{name: a, templateRef: {kind: ClusterTemplate, name: gone}}]");
    let first = blueprint_status(&blueprint, &Templates, &Value::Null, 1, now());
    let later = now().checked_add(jiff::Span::new().hours(1)).unwrap();
    assert_eq!(
        blueprint_status(&blueprint, &Templates, &first.status, 1, later).status,
        first.status
    );
}
