//! Which delivery is chosen, with which parameters and options, and what is told about a blueprint that cannot work.

use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};
use test_support::{Stage, all_objects, eventually};

use crate::chain::smallest;
use crate::stage::{
    DELIVERABLE, NOTHING, PATIENCE, SOURCE, condition, condition_types, delivery, open, says, sink,
    step, sunk,
};

fn deliveries(stage: &Stage) -> Api<DynamicObject> {
    all_objects(&stage.client, "carto.run/v1alpha1", "ClusterDelivery")
}

#[tokio::test]
async fn a_deliverable_is_told_why_no_delivery_was_chosen() {
    let stage = open().await;
    stage
        .apply(&DELIVERABLE.replace(", labels: {type: web}", ""))
        .await;
    says(
        &stage,
        "DeliveryReady",
        "False",
        "DeliverableLabelsMissing",
        "deliverable has no labels to match to delivery",
    )
    .await;
    stage.apply(DELIVERABLE).await;
    let nowhere = says(
        &stage,
        "DeliveryReady",
        "False",
        "DeliveryNotFound",
        "no delivery found where full selector is satisfied by labels: map[type:web]",
    )
    .await;
    assert_eq!(
        condition_types(&nowhere["status"]),
        ["DeliveryReady", "Ready", "Reconciling"]
    );

    stage.apply(&smallest()).await;
    stage.ready("app", "True", "Ready").await;
    let twin = delivery("    []").replace("{name: delivery}", "{name: twin}");
    stage.apply(&twin).await;
    let torn = says(
        &stage,
        "DeliveryReady",
        "False",
        "MultipleDeliveryMatches",
        "deliverable may only match a single delivery's selector",
    )
    .await;
    assert_eq!(step(&torn, "fetch")["stampedRef"]["name"], "app-src");
    let by = DeleteParams::default();
    deliveries(&stage).delete("twin", &by).await.unwrap();
    stage.ready("app", "True", "Ready").await;
}

#[tokio::test]
async fn a_delivery_whose_templates_are_missing_says_so_to_its_deliverables() {
    let stage = open().await;
    stage.apply(DELIVERABLE).await;
    let steps = "    - {name: fetch, templateRef: {kind: ClusterSourceTemplate, name: src}}";
    stage.apply(&delivery(steps)).await;
    let message = "did not find the template of the resource(s) [fetch]";
    says(
        &stage,
        "DeliveryReady",
        "False",
        "TemplatesNotFound",
        message,
    )
    .await;
    stage.apply(SOURCE).await;
    stage.ready("app", "True", "Ready").await;
}

/// Upstream accepts such a delivery (docs/behaviour/admission.md#deliveries) and says nothing
/// anywhere.
#[tokio::test]
async fn an_input_that_nobody_provides_leaves_the_delivery_ready_and_is_warned_about() {
    let stage = open().await;
    let unknown = smallest().replace(
        "{resource: fetch, name: code}",
        "{resource: ghost, name: code}",
    );
    stage.apply(&unknown).await;
    stage.apply(DELIVERABLE).await;
    let event = eventually("the blueprint is warned about", PATIENCE, async || {
        let events = stage.all_in("default", "v1", "Event").await;
        let found = events.iter().find(|event| {
            event["involvedObject"]["kind"] == "ClusterDelivery" && event["type"] == "Warning"
        });
        found.cloned().map(Some).ok_or(events)
    })
    .await;
    let message = event["message"].as_str().unwrap();
    assert!(
        message.contains("ghost") && message.contains("publish"),
        "{message}"
    );
    let blueprint = deliveries(&stage).get("delivery").await.unwrap().data;
    assert_eq!(condition(&blueprint["status"], "Ready")["status"], "True");
    let held = stage
        .until(
            "app",
            "the step without its input is not stamped",
            |owner| {
                condition(&step(owner, "publish"), "ResourceSubmitted")["reason"]
                    == "TemplateStampFailure"
            },
        )
        .await;
    assert_eq!(step(&held, "publish")["stampedRef"], Value::Null);
    assert_eq!(step(&held, "fetch")["stampedRef"]["name"], "app-src");

    stage.apply(&smallest()).await;
    stage.ready("app", "True", "Ready").await;
}

#[tokio::test]
async fn parameters_go_from_the_template_over_the_delivery_to_the_deliverable() {
    let stage = open().await;
    let base = smallest().replace("$(source.url)$", "$(source.revision)$");
    stage.apply(&base).await;
    stage.apply(DELIVERABLE).await;
    sunk(&stage, "app", "main").await;

    let in_delivery = base.replace(
        "selector:",
        "params: [{name: rev, default: of-delivery}]\n  selector:",
    );
    stage.apply(&in_delivery).await;
    sunk(&stage, "app", "of-delivery").await;

    let in_step = |field: &str| {
        in_delivery.replace(
            "name: src}}\n    - name: publish",
            &format!(
                "name: src}}, params: [{{name: rev, {field}: of-step}}]}}\n    - name: publish"
            ),
        )
    };
    stage.apply(&in_step("default")).await;
    sunk(&stage, "app", "of-step").await;
    let own = json!({"spec": {"params": [{"name": "rev", "value": "of-deliverable"}]}});
    stage.edit_owner("app", own).await;
    sunk(&stage, "app", "of-deliverable").await;
    // A value is not for the owner to change.
    stage.apply(&in_step("value")).await;
    sunk(&stage, "app", "of-step").await;
}

#[tokio::test]
async fn a_source_passes_through_a_step_whose_option_says_so() {
    let stage = open().await;
    let tested = SOURCE
        .replace("{name: src}", "{name: tested}")
        .replace("$-src}", "$-tested}")
        .replace("rev: $(params.rev)$", "rev: tested")
        .replace("$(deliverable.spec.source.git.url)$", "$(source.url)$");
    let option = |name: &str, answer: &str| {
        format!(
            "          - {{{name}, selector: {{matchFields: [{{key: 'spec.params[?(@.name==\"test\")].value', operator: In, \
             values: ['{answer}']}}]}}}}\n"
        )
    };
    let steps = format!(
        "    - {{name: fetch, templateRef: {{kind: ClusterSourceTemplate, name: src}}}}
    - name: test
      templateRef:
        kind: ClusterSourceTemplate
        options:
{}{}      sources: [{{resource: fetch, name: code}}]
    - name: publish
      templateRef: {{kind: ClusterTemplate, name: sink}}
      sources: [{{resource: test, name: code}}]",
        option("name: tested", "yes"),
        option("passThrough: code", "no")
    );
    let answer = |answer: &str| json!({"spec": {"params": [{"name": "test", "value": answer}]}});
    stage
        .apply(
            &[
                SOURCE,
                &tested,
                &sink("$(source.revision)$"),
                &delivery(&steps),
            ]
            .concat(),
        )
        .await;
    stage.apply(DELIVERABLE).await;
    let neither = stage
        .ready("app", "False", "TemplateOptionsMatchError")
        .await;
    assert_eq!(
        condition(&neither["status"], "Ready")["message"],
        "get template name from resource: find matching template option: \
         expected exactly 1 option to match, found [0] matching options for resource [test] in supply chain [delivery]"
    );
    stage.edit_owner("app", answer("yes")).await;
    sunk(&stage, "app", "tested").await;
    stage.edit_owner("app", answer("no")).await;
    sunk(&stage, "app", "main").await;
    let passed = stage
        .until("app", "the step passes through", |owner| {
            condition(&owner["status"], "Ready")["status"] == "True"
                && condition(&step(owner, "test"), "ResourceSubmitted")["reason"] == "PassThrough"
        })
        .await;
    let entry = step(&passed, "test");
    assert_eq!(entry["stampedRef"], Value::Null);
    assert_eq!(entry["outputs"][1]["preview"], "main\n");
    assert_eq!(stage.requests_of_reconciles("app", 2).await, NOTHING);
}
