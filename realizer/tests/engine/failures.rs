//! What goes wrong: conditions, retries and events (docs/behaviour/status.md#submitted,
//! docs/behaviour/events.md#events).

use std::sync::Arc;

use realizer::{
    AskFeed, Outcome, Retry, SubmitFailure, SubmitFailureKind, Template, TemplateState,
};
use serde_json::json;

use crate::scenario::Scenario;

const CHAIN: &str = "
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: plain}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
    data: {image: $(workload.spec.image)$}
---
kind: ClusterSupplyChain
apiVersion: carto.run/v1alpha1
metadata: {name: chain}
spec:
  selector: {type: web}
  resources:
  - {name: one, templateRef: {kind: ClusterTemplate, name: plain}}
  - {name: two, templateRef: {kind: ClusterTemplate, name: plain}}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {image: i}
";

fn failing(step: &str, kind: SubmitFailureKind, message: &str) -> Scenario {
    let mut scenario = Scenario::new(CHAIN);
    scenario.cluster.failing.insert(
        step.to_owned(),
        SubmitFailure {
            kind,
            message: message.to_owned(),
        },
    );
    scenario
}

fn warnings(outcome: &Outcome) -> Vec<String> {
    outcome
        .events
        .iter()
        .filter(|event| event.warning)
        .map(|event| format!("{} {}", event.reason, event.message))
        .collect()
}

#[test]
fn an_error_in_one_step_does_not_stop_the_others() {
    let mut scenario = failing("one", SubmitFailureKind::Rejected, "create: no");
    let outcome = scenario.reconcile();
    assert_eq!(scenario.cluster.log, ["one: failed", "two: Created"]);
    assert_eq!(
        scenario.owner_condition("ResourcesSubmitted"),
        "False/TemplateRejectedByAPIServer/unable to apply object [ns/one] for resource [one] in supply chain [chain]: \
         create: no"
    );
    assert_eq!(scenario.step_condition("two", "Ready"), "True/Ready/");
    assert_eq!(
        scenario.owner_condition("ResourcesHealthy"),
        "Unknown/HealthyConditionRule/"
    );
    assert_eq!(outcome.retry, Retry::Backoff);
    assert_eq!(outcome.reason, "TemplateRejectedByAPIServer");
}

#[test]
fn every_failing_step_is_told_once_and_again_when_the_text_changes() {
    let mut scenario = failing("one", SubmitFailureKind::Rejected, "create: no");
    let failure = SubmitFailure {
        kind: SubmitFailureKind::Forbidden,
        message: "create: forbidden".to_owned(),
    };
    scenario.cluster.failing.insert("two".to_owned(), failure);
    let text = |step: &str, cause: &str| {
        format!(
            "ResourceFailed [{step}] unable to apply object [ns/{step}] for resource [{step}] in supply chain [chain]: {cause}"
        )
    };
    assert_eq!(
        warnings(&scenario.reconcile()),
        [text("one", "create: no"), text("two", "create: forbidden")]
    );
    assert_eq!(warnings(&scenario.reconcile()), Vec::<String>::new());
    scenario.cluster.failing.get_mut("one").unwrap().message = "create: still no".to_owned();
    assert_eq!(
        warnings(&scenario.reconcile()),
        [text("one", "create: still no")]
    );
}

#[test]
fn the_most_urgent_retry_wins() {
    assert_eq!(
        failing("one", SubmitFailureKind::Forbidden, "x")
            .reconcile()
            .retry,
        Retry::Slow
    );
    assert_eq!(
        failing("one", SubmitFailureKind::List, "x")
            .reconcile()
            .retry,
        Retry::Backoff
    );
    assert_eq!(
        failing("one", SubmitFailureKind::Contested, "x")
            .reconcile()
            .retry,
        Retry::Slow
    );
    let mut both = failing("one", SubmitFailureKind::Forbidden, "x");
    let failure = SubmitFailure {
        kind: SubmitFailureKind::Rejected,
        message: "y".to_owned(),
    };
    both.cluster.failing.insert("two".to_owned(), failure);
    let outcome = both.reconcile();
    assert_eq!(outcome.retry, Retry::Backoff);
    assert!(
        outcome.again.is_some_and(|again| again.as_secs() < 60),
        "a right that is missing is not forgotten over a back-off of minutes: {:?}",
        outcome.again
    );
    assert_eq!(Scenario::new(CHAIN).reconcile().retry, Retry::AwaitChange);
}

#[test]
fn a_contested_object_is_told_by_a_condition_of_its_own_after_ready() {
    let mut scenario = failing(
        "one",
        SubmitFailureKind::Contested,
        "object belongs to Workload [ns/other]",
    );
    let outcome = scenario.reconcile();
    let text = "unable to apply object [ns/one] for resource [one] in supply chain [chain]: object belongs to Workload [ns/other]";
    assert_eq!(
        scenario.step_condition("one", "ResourceSubmitted"),
        format!("False/ObjectContested/{text}")
    );
    let types: Vec<_> = scenario.owner["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| condition["type"].clone())
        .collect();
    assert_eq!(
        types,
        [
            "SupplyChainReady",
            "ResourcesSubmitted",
            "ResourcesHealthy",
            "Ready",
            "ObjectContested",
            "Stalled"
        ]
    );
    assert_eq!(
        scenario.owner_condition("ObjectContested"),
        format!("True/ObjectContested/{text}")
    );
    assert_eq!(
        warnings(&outcome),
        [format!("ObjectContested [one] {text}")]
    );
    scenario.cluster.failing.clear();
    scenario.advance();
    assert_eq!(scenario.owner_condition("ObjectContested"), "absent");
    assert_eq!(scenario.owner_condition("Ready"), "True/Ready/");
}

/// `<condition>/<reason>` of the one for tools that wait, `state/step/object/reason` of the summary.
fn progress(scenario: &Scenario) -> (Vec<String>, String) {
    let status = &scenario.owner["status"];
    let conditions = status["conditions"].as_array().unwrap();
    let for_tools = conditions
        .iter()
        .filter(|condition| condition["type"] == "Reconciling" || condition["type"] == "Stalled");
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
    let for_tools: Vec<String> = for_tools
        .map(|it| format!("{}/{}", text(&it["type"]), text(&it["reason"])))
        .collect();
    let summary = &status["summary"];
    let summary = ["state", "step", "object", "reason"].map(|field| text(&summary[field]));
    (for_tools, summary.join("/"))
}

#[test]
fn an_owner_that_is_not_ready_says_in_one_line_why_and_whether_it_goes_on_by_itself() {
    let nothing = (vec![], "-/-/-/-".to_owned());
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    assert_eq!(progress(&scenario), nothing);

    let failure = |kind| SubmitFailure {
        kind,
        message: "no\n  such thing".to_owned(),
    };
    let cases = [
        (
            SubmitFailureKind::List,
            "Reconciling/FailedToListCreatedObjects",
            "Waiting",
        ),
        (
            SubmitFailureKind::Rejected,
            "Stalled/TemplateRejectedByAPIServer",
            "Failing",
        ),
        (
            SubmitFailureKind::Forbidden,
            "Stalled/TemplateRejectedByAPIServer",
            "Failing",
        ),
        (
            SubmitFailureKind::Contested,
            "Stalled/ObjectContested",
            "Failing",
        ),
    ];
    for (kind, condition, state) in cases {
        scenario
            .cluster
            .failing
            .insert("two".to_owned(), failure(kind));
        scenario.advance();
        let reason = condition.split_once('/').unwrap().1;
        assert_eq!(
            progress(&scenario),
            (
                vec![condition.to_owned()],
                format!("{state}/two/configmaps/two/{reason}")
            )
        );
        assert!(
            !scenario.reconcile().changed,
            "a steady state is not written again"
        );
        let summary = scenario.owner["status"]["summary"].clone();
        let message = summary["message"].as_str().unwrap();
        assert!(message.ends_with("no such thing"), "{message}");
        let next = summary["next"].as_str().unwrap();
        assert_eq!(
            next.starts_with("it is tried again by itself"),
            state == "Waiting"
        );
    }
    scenario.cluster.failing.clear();
    scenario.advance();
    assert_eq!(progress(&scenario), nothing);
}

/// What can be mended is told before what waits for it.
#[test]
fn the_summary_names_the_step_that_holds_the_others_back() {
    let mut scenario = with_image_path("data.image", &json!({}));
    scenario.blueprints[0]["spec"]["resources"] = json!([
        {"name": "after", "templateRef": {"kind": "ClusterTemplate", "name": "plain"},
            "images": [{"name": "image", "resource": "one"}]},
        {"name": "one", "templateRef": {"kind": "ClusterImageTemplate", "name": "image"}}]);
    scenario.advance();
    let waiting = "Waiting/one/configmaps/one/MissingValueAtPath".to_owned();
    assert_eq!(
        progress(&scenario),
        (vec!["Reconciling/MissingValueAtPath".to_owned()], waiting)
    );
    let mut scenario = with_image_path("data[", &json!({}));
    scenario.advance();
    assert_eq!(
        progress(&scenario),
        (
            vec!["Stalled/MissingValueAtPath".to_owned()],
            "Failing/one/configmaps/one/MissingValueAtPath".to_owned()
        )
    );
    let message = scenario.owner["status"]["summary"]["message"]
        .as_str()
        .unwrap();
    assert!(
        message.contains("failed to evaluate the url path [data[]"),
        "{message}"
    );
}

/// A value that is awaited does not come from an object that says it is broken.
#[test]
fn the_summary_tells_what_a_broken_object_says_rather_than_what_is_awaited_from_it() {
    let mut scenario = with_image_path("status.image", &json!({}));
    scenario.apply(
        "
kind: ClusterImageTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: image}
spec:
  imagePath: status.image
  healthRule: {singleConditionType: Ready}
  template: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}",
    );
    scenario.advance();
    let told = |state: &str, reason: &str| {
        let condition = if state == "Failing" {
            "Stalled"
        } else {
            "Reconciling"
        };
        (
            vec![format!("{condition}/{reason}")],
            format!("{state}/one/configmaps/one/{reason}"),
        )
    };
    assert_eq!(progress(&scenario), told("Waiting", "MissingValueAtPath"));
    scenario.cluster.held.objects[0].object["status"] = json!({"conditions": [
        {"type": "Ready", "status": "False", "reason": "No", "message": "authentication required"}]});
    scenario.advance();
    assert_eq!(progress(&scenario), told("Failing", "ReadyCondition"));
    let summary = &scenario.owner["status"]["summary"];
    assert!(
        summary["message"]
            .as_str()
            .unwrap()
            .contains("authentication required"),
        "{summary}"
    );
}

#[test]
fn a_failing_step_keeps_the_entry_it_had() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    let before = scenario.entry("one").clone();
    let failure = SubmitFailure {
        kind: SubmitFailureKind::Rejected,
        message: "no".to_owned(),
    };
    scenario.cluster.failing.insert("one".to_owned(), failure);
    scenario.owner["spec"]["image"] = json!("j");
    scenario.advance();
    for field in ["stampedRef", "templateRef"] {
        assert_eq!(scenario.entry("one")[field], before[field]);
    }
    assert_eq!(
        scenario.step_condition("one", "Healthy"),
        "True/AlwaysHealthy/"
    );
    let healthy_since =
        |entry: &serde_json::Value| entry["conditions"][1]["lastTransitionTime"].clone();
    assert_eq!(healthy_since(scenario.entry("one")), healthy_since(&before));
    assert_eq!(
        scenario.cluster.names(),
        ["one", "two"],
        "what exists is left as it is"
    );
}

#[test]
fn a_template_that_vanished_after_the_blueprint_was_ready_is_an_unknown_error() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    let ready = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "",
        "lastTransitionTime": "2024-01-01T00:00:00Z"}]});
    scenario.blueprints[0]["status"] = ready;
    scenario.templates.0.clear();
    let outcome = scenario.reconcile();
    assert_eq!(
        scenario.owner_condition("ResourcesSubmitted"),
        "False/UnknownError/failed to get cluster template [{Kind:ClusterTemplate Name:plain}]: resource does not match \
         a known template"
    );
    assert_eq!(outcome.retry, Retry::Backoff);
    assert_eq!(scenario.cluster.names(), ["one", "two"]);
}

#[test]
fn a_template_that_cannot_be_read_is_told_with_its_cause() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.blueprints[0]["status"] = json!({"conditions": [{"type": "Ready", "status": "True", "reason": "Ready",
        "message": "", "lastTransitionTime": "2024-01-01T00:00:00Z"}]});
    let key = ("ClusterTemplate".to_owned(), "plain".to_owned());
    scenario
        .templates
        .0
        .insert(key, TemplateState::Unreadable("etcd is on fire".to_owned()));
    scenario.advance();
    assert_eq!(
        scenario.step_condition("one", "ResourceSubmitted"),
        "False/TemplateObjectRetrievalFailure/unable to get template [plain] for resource [one] in supply chain [chain]: \
         etcd is on fire"
    );
    assert_eq!(scenario.step_condition("one", "Healthy"), "absent");
}

fn with_image_path(path: &str, image: &serde_json::Value) -> Scenario {
    let mut scenario = Scenario::new(CHAIN);
    let object = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "plain"},
        "spec": {"imagePath": path, "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"},
            "data": image}}});
    let mut object = object;
    object["kind"] = json!("ClusterImageTemplate");
    scenario.templates.0.insert(
        ("ClusterImageTemplate".to_owned(), "image".to_owned()),
        TemplateState::Found(Arc::new(Template::compile(&object).unwrap())),
    );
    scenario.blueprints[0]["spec"]["resources"] = json!([{"name": "one",
        "templateRef": {"kind": "ClusterImageTemplate", "name": "image"}}]);
    scenario
}

/// The condition says what it says while a value is awaited; who wrote the path learns that none will come, and why.
#[test]
fn a_path_that_can_never_be_read_is_told_to_its_author() {
    let list = json!({"list": [{"type": "a", "image": "x"}, {"type": "a", "image": "y"}]});
    let cases = [
        ("data[", "failed to evaluate the url path [data[]: "),
        (
            "data.list[9].image",
            "failed to evaluate the url path [data.list[9].image]: evaluate: failed to find results: array index out of \
             bounds: index 9, length 2",
        ),
        (
            "data.list[*].image",
            "failed to evaluate the url path [data.list[*].image]: too many results for the query: data.list[*].image",
        ),
        (
            "data.list.#(type==\"a\").image",
            "failed to evaluate the url path [data.list.#(type==\"a\").image]: `data.list.#(type==\"a\").image` is not \
             JSONPath; write `data.list[?(@.type==\"a\")].image`",
        ),
    ];
    for (path, cause) in cases {
        let mut scenario = with_image_path(path, &list);
        let outcome = scenario.reconcile();
        let message = format!(
            "waiting to read value [{path}] from object [configmaps/one] in namespace [ns]"
        );
        assert_eq!(
            scenario.owner_condition("Ready"),
            format!("Unknown/MissingValueAtPath/{message}")
        );
        let told = scenario.step_condition("one", "OutputUnreadable");
        assert!(
            told.starts_with(&format!("True/OutputUnreadable/{cause}")),
            "{told}"
        );
        let told = told.trim_start_matches("True/OutputUnreadable/");
        assert_eq!(
            warnings(&outcome),
            [format!(
                "ResourceFailed [one] {message}: {told}; correct the template"
            )]
        );
        let again = scenario.reconcile();
        assert!(!again.changed && warnings(&again).is_empty(), "{path}");
    }
}

#[test]
fn a_value_that_may_still_come_is_nobodys_fault() {
    let cases = [
        ("data.image", json!({})),
        ("data.list[0].image", json!({"list": []})),
        ("data.list[?(@.type==\"a\")].image", json!({"list": []})),
        ("data.list[?(@.type==\"a\")].image", json!({"list": null})),
    ];
    for (path, data) in cases {
        let mut scenario = with_image_path(path, &data);
        assert_eq!(warnings(&scenario.reconcile()), [""; 0], "{path}");
        assert_eq!(
            scenario.step_condition("one", "OutputUnreadable"),
            "absent",
            "{path}"
        );
        assert!(
            scenario
                .owner_condition("Ready")
                .starts_with("Unknown/MissingValueAtPath/waiting to read value"),
            "{path}"
        );
    }
}

fn with_template(template: serde_json::Value) -> Scenario {
    let mut scenario = Scenario::new(CHAIN);
    let object = json!({"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "plain"},
        "spec": {"template": template}});
    let key = ("ClusterTemplate".to_owned(), "plain".to_owned());
    scenario.templates.0.insert(
        key,
        TemplateState::Found(Arc::new(Template::compile(&object).unwrap())),
    );
    scenario
}

#[test]
fn renderings_that_cannot_be_submitted_are_told_by_the_stage_upstream_would_fail_at() {
    let stamp = "False/TemplateStampFailure/unable to stamp object for resource [one] for template [ClusterTemplate/plain] \
                 in supply chain [chain]: ";
    let cases = [
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "other"}}),
            format!("{stamp}cannot set namespace in resource template"),
        ),
        (
            json!({"apiVersion": "v1"}),
            format!("{stamp}rendered object is not an object with a kind: found an object without kind"),
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "$(bad path)$"}}),
            format!(
                "{stamp}failed to recursively evaluate template: failed to interpolate template at path [metadata.name]: \
                 evaluate tag $(bad path)$: evaluate: failed to find results: unrecognized identifier path"
            ),
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}}),
            "False/TemplateRejectedByAPIServer/unable to apply object [ns/] for resource [one] in supply chain [chain]: \
             failed to get unstructured [ns/] from api server: resource name may not be empty"
                .to_owned(),
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": null}),
            "False/TemplateRejectedByAPIServer/unable to apply object [/] for resource [one] in supply chain [chain]: \
             failed to get unstructured [/] from api server: resource name may not be empty"
                .to_owned(),
        ),
    ];
    for (template, expected) in cases {
        let mut scenario = with_template(template);
        scenario.advance();
        assert_eq!(
            scenario.step_condition("one", "ResourceSubmitted"),
            expected
        );
        assert!(scenario.cluster.log.is_empty());
    }
}

#[test]
fn a_name_that_makes_a_label_too_long_is_explained() {
    let mut scenario = Scenario::new(CHAIN);
    let long = "w".repeat(64);
    scenario.owner["metadata"]["name"] = json!(long);
    scenario.advance();
    assert_eq!(
        scenario.step_condition("one", "ResourceSubmitted"),
        format!(
            "False/TemplateRejectedByAPIServer/unable to apply object [ns/one] for resource [one] in supply chain [chain]: \
             label [carto.run/workload-name] would have value [{long}], which is longer than the 63 characters that \
             Kubernetes allows; give the workload a shorter name"
        )
    );
}

/// The schema asks nothing of the names of steps, so only the one whose name can be no label fails.
#[test]
fn a_step_whose_name_can_be_no_label_fails_alone() {
    let chain = CHAIN
        .replace("name: one", "name: 'step,one!=two'")
        .replace(
            "name: $(labels['carto\\.run/resource-name'])$",
            "generateName: x-",
        )
        .replace(
            "spec:\n  template:",
            "spec:\n  lifecycle: immutable\n  template:",
        );
    let mut scenario = Scenario::new(&chain);
    scenario.advance();
    assert_eq!(
        scenario.step_condition("step,one!=two", "ResourceSubmitted"),
        "False/TemplateRejectedByAPIServer/unable to apply object [ns/] for resource [step,one!=two] in supply chain \
         [chain]: label [carto.run/resource-name] would have value [step,one!=two], which must be at most 63 letters, \
         digits, '-', '_' and '.', with a letter or digit at both ends; rename the resource of the blueprint"
    );
    assert_eq!(
        scenario.step_condition("two", "ResourceSubmitted"),
        "True/ResourceSubmissionComplete/"
    );
    assert_eq!(scenario.cluster.log, ["two: look", "two: Created"]);
}

#[test]
fn a_walk_that_ends_early_keeps_what_the_other_steps_have() {
    let mut scenario = Scenario::new(CHAIN);
    scenario.advance();
    let owner = scenario.parsed_owner();
    let blueprints = scenario.compiled_blueprints();
    let mut realization = realizer::Realization::new(
        &owner,
        &blueprints[0],
        &scenario.templates,
        scenario.now,
        scenario.key.clone(),
    );
    let first = realization.next();
    assert_eq!(realization.next(), first, "asked again, it says the same");
    let conclusion = realization.conclude(&[]);
    assert!(conclusion.removals().is_empty());
    let outcome = conclusion.report(&[]);
    assert_eq!(outcome.retry, Retry::Backoff);
    assert_eq!(
        outcome.status["resources"][1]["stampedRef"],
        scenario.entry("two")["stampedRef"]
    );
}

#[test]
fn answers_nobody_asked_for_are_ignored() {
    let scenario = Scenario::new(CHAIN);
    let owner = scenario.parsed_owner();
    let blueprints = scenario.compiled_blueprints();
    let mut realization = realizer::Realization::new(
        &owner,
        &blueprints[0],
        &scenario.templates,
        scenario.now,
        scenario.key.clone(),
    );
    realization.record_rendered(Err("never asked".to_owned().into()));
    let first = realization.next();
    realization.record_rendered(Err("not what was asked".to_owned().into()));
    assert_eq!(realization.next(), first);
}
