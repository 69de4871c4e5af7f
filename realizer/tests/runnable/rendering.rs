//! What templates see, and what is made of a rendering (docs/behaviour/runnables.md#context).

use realizer::runnable::SelectError;
use realizer::{RenderFailure, Retry};
use serde_json::{Value, json};

use crate::stage::Stage;

fn rendered(spec: Value) -> Result<Value, String> {
    let mut stage = Stage::new(json!({"inputs": {"revision": "a", "deep": {"list": [1, "two"]}}}));
    stage.selected = Ok(Some(
        json!({"metadata": {"name": "pipeline"}, "spec": {"tasks": [{"name": "t"}]}}),
    ));
    stage.template["spec"]["template"]["spec"] = spec;
    stage.walk();
    match stage.cluster.objects.first() {
        Some(run) => Ok(run.object["spec"].clone()),
        None => Err(stage.condition("RunTemplateReady").unwrap()[2].clone()),
    }
}

#[test]
fn templates_see_the_runnable_and_the_selected_object() {
    let cases = [
        ("$(runnable.metadata.name)$", json!("app")),
        ("$(runnable.spec.inputs.deep)$", json!({"list": [1, "two"]})),
        ("$(runnable.spec.inputs.deep.list[1])$", json!("two")),
        ("$(selected.metadata.name)$", json!("pipeline")),
        ("$(selected.spec.tasks[0])$", json!({"name": "t"})),
        ("$(runnable.spec.serviceAccountName)$", json!("")),
        ("$(runnable.spec.selector)$", json!(null)),
        ("$(runnable.status.observedGeneration)$", json!(0)),
        (
            "$(runnable.spec.runTemplateRef.kind)$",
            json!("ClusterRunTemplate"),
        ),
        (
            "$(runnable.spec.runTemplateRef)$",
            json!({"kind": "ClusterRunTemplate", "name": "tests"}),
        ),
    ];
    for (tag, expected) in cases {
        assert_eq!(rendered(json!(tag)), Ok(expected), "{tag}");
    }
}

#[test]
fn templates_see_nothing_else() {
    for tag in ["$(workload.metadata.name)$", "$(params)$", "$(labels)$"] {
        let message = rendered(json!(tag)).unwrap_err();
        assert!(
            message.starts_with("unable to stamp object for run template [tests]: "),
            "{message}"
        );
    }
}

#[test]
fn without_a_selector_selected_is_null() {
    let mut stage = Stage::new(json!({}));
    stage.template["spec"]["template"]["spec"] = json!({"selected": "$(selected)$"});
    stage.walk();
    assert_eq!(
        stage.cluster.objects[0].object["spec"],
        json!({"selected": null})
    );
}

#[test]
fn a_ytt_template_renders_the_object() {
    let mut stage = Stage::new(json!({}));
    stage.template["spec"] = json!({"ytt": "kind: X"});
    stage.rendered =
        Ok(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}));
    stage.walk();
    assert_eq!(stage.cluster.objects[0].object["kind"], "ConfigMap");
    stage.rendered = Err("ytt: no".to_owned().into());
    let outcome = stage.outcome();
    assert_eq!(outcome.retry, Retry::AwaitChange);
    assert_eq!(
        stage.condition("RunTemplateReady").unwrap(),
        [
            "False",
            "TemplateStampFailure",
            "unable to stamp object for run template [tests]: ytt: no"
        ]
    );
    stage.rendered = Err(RenderFailure {
        message: "ytt: no room".to_owned(),
        passes_by_itself: true,
    });
    assert_eq!(
        stage.outcome().retry,
        Retry::Backoff,
        "nothing would wake it"
    );
}

#[test]
fn what_cannot_be_a_run_is_told_without_asking() {
    let cases = [
        (
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"namespace": "other", "name": "x"}}),
            "unable to stamp object for run template [tests]: cannot set namespace in resource template",
        ),
        (
            json!({"apiVersion": "v1", "kind": "X"}),
            "unable to apply object [dev/] for run template [tests]: create: X \"\" is invalid: metadata.name: \
             Required value: name or generateName is required",
        ),
        (
            json!({"apiVersion": "g/v1", "kind": "X", "metadata": null}),
            "unable to apply object [/] for run template [tests]: create: X.g \"\" is invalid: metadata.name: \
             Required value: name or generateName is required",
        ),
    ];
    for (object, message) in cases {
        let mut stage = Stage::new(json!({}));
        stage.template["spec"]["template"] = object;
        stage.walk();
        assert_eq!(stage.condition("RunTemplateReady").unwrap()[2], message);
    }
}

#[test]
fn values_of_a_selected_secret_are_taken_out_of_messages() {
    let mut stage = Stage::new(json!({}));
    stage.selected = Ok(Some(
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"p": "aHVudGVyMg=="}}),
    ));
    stage.template["spec"] = json!({"ytt": "kind: X"});
    stage.rendered = Err("ytt: near aHVudGVyMg== or hunter2".to_owned().into());
    stage.walk();
    let message = stage.condition("RunTemplateReady").unwrap()[2].clone();
    assert!(
        message.ends_with("ytt: near <redacted> or <redacted>"),
        "{message}"
    );
}

#[test]
fn nothing_is_rendered_without_the_selected_object() {
    let mut stage = Stage::new(json!({}));
    stage.selected = Err(SelectError::None);
    stage.walk();
    assert!(stage.cluster.objects.is_empty());
}
