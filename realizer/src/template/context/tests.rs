use std::sync::Arc;

use super::*;
use crate::{Blueprint, Family, Owner};
use api_types::vocabulary::{RUN, STEP};

struct Case {
    owner: Owner,
    step: BlueprintStep,
    outputs: Vec<Option<Output>>,
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the place of an output may be empty"
)]
fn source(url: &str) -> Option<Output> {
    Some(Output::of(
        OutputValues::Source {
            url: json!(url),
            revision: json!("main"),
        },
        Taint::NONE,
    ))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the place of an output may be empty"
)]
fn value(values: OutputValues) -> Option<Output> {
    Some(Output::of(values, Taint::NONE))
}

/// A step with inputs from the steps `s1 s2 i c`, which have the given outputs.
fn case(inputs: Value, outputs: Vec<Option<Output>>) -> Case {
    let mut last = inputs;
    last["name"] = json!("step");
    last["templateRef"] = json!({"kind": "ClusterTemplate", "name": "t"});
    let resources: Vec<Value> = ["s1", "s2", "i", "c"]
        .iter()
        .map(|name| json!({"name": name, "templateRef": {"kind": "ClusterTemplate", "name": "t"}}))
        .chain([last])
        .collect();
    let object = json!({"metadata": {"name": "b"}, "spec": {"resources": resources}});
    let blueprint = Blueprint::compile(Family::SupplyChain, &object).unwrap();
    let object = json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "Workload",
        "metadata": {"namespace": "ns", "name": "app", "uid": "u"},
        "spec": {
            "params": [{"name": "p", "value": {"deep": "x"}}], "source": {"git": {"url": "u"}},
            "env": [{"name": "A", "value": "1"}],
        },
    });
    Case {
        owner: Owner::parse(Family::SupplyChain, Arc::new(object)).unwrap(),
        step: blueprint.steps[4].clone(),
        outputs,
    }
}

impl Case {
    fn context(&self) -> Context<'_> {
        let inputs = ResolvedInputs::of(
            &self.step,
            |step| self.outputs.get(step)?.as_ref(),
            |_| true,
        );
        let (one, big) = (json!(1), json!(1_000_000));
        let object = json!({"sub": [true, {"a": null}]});
        let params = BTreeMap::from([("a-b", &one), ("big", &big), ("o", &object)]);
        let labels = BTreeMap::from([("carto.run/workload-name", "app".to_owned())]);
        Context::new(self.owner.views(), &self.step, &params, &inputs, &labels)
    }

    fn keys(&self) -> Vec<String> {
        let values = self.context().into_values();
        let all: Map<String, Value> = values.clone().into_iter().collect();
        assert!(STEP.covers(&Value::Object(all)), "{values:?}");
        values.into_keys().collect()
    }

    fn render(&self, text: &str) -> Result<Value, String> {
        let rendered = self
            .context()
            .render(&Compiled::compile(&json!({"x": text})));
        rendered.map(|mut rendered| rendered["x"].take())
    }

    fn missing(&self) -> Vec<&str> {
        ResolvedInputs::of(
            &self.step,
            |step| self.outputs.get(step)?.as_ref(),
            |_| true,
        )
        .missing
        .iter()
        .map(|input| input.local_name.as_str())
        .collect()
    }
}

const ALWAYS: [&str; 8] = [
    "configs",
    "deliverable",
    "deployment",
    "images",
    "labels",
    "params",
    "sources",
    "workload",
];

#[test]
fn every_key_is_there_without_inputs_but_the_shortcuts() {
    let case = case(json!({}), vec![]);
    assert_eq!(case.keys(), ALWAYS);
    let values = case.context().into_values();
    for key in ["sources", "images", "configs"] {
        assert_eq!(values[key], json!({}), "{key}");
    }
    assert_eq!(values["deployment"], Value::Null);
    assert_eq!(values["workload"], values["deliverable"]);
    assert_eq!(values["labels"], json!({"carto.run/workload-name": "app"}));
}

#[test]
fn inputs_appear_under_their_local_names_and_single_ones_as_shortcuts() {
    let inputs = json!({
        "sources": [{"name": "code", "resource": "s1"}], "images": [{"name": "built", "resource": "i"}],
        "configs": [{"name": "cfg", "resource": "c"}], "deployment": {"resource": "s2"},
    });
    let outputs = vec![
        source("u1"),
        source("u2"),
        value(OutputValues::Image(json!("img"))),
        value(OutputValues::Config(json!({"a": 1}))),
    ];
    let case = case(inputs, outputs);
    let all = [
        "config",
        "configs",
        "deliverable",
        "deployment",
        "image",
        "images",
        "labels",
        "params",
        "source",
        "sources",
        "workload",
    ];
    assert_eq!(case.keys(), all);
    let values = case.context().into_values();
    let code = json!({"url": "u1", "revision": "main", "name": "code"});
    assert_eq!(values["sources"], json!({"code": code}));
    assert_eq!(values["source"], code);
    assert_eq!(
        values["images"],
        json!({"built": {"image": "img", "name": "built"}})
    );
    assert_eq!(values["image"], json!("img"));
    assert_eq!(
        values["configs"],
        json!({"cfg": {"config": {"a": 1}, "name": "cfg"}})
    );
    assert_eq!(values["config"], json!({"a": 1}));
    assert_eq!(
        values["deployment"],
        json!({"url": "u2", "revision": "main", "name": ""})
    );
}

#[test]
fn a_run_sees_its_runnable_and_what_it_selects() {
    let runnable = json!({"apiVersion": "carto.run/v1alpha1", "kind": "Runnable", "metadata": {"name": "r"},
        "spec": {"inputs": {"a": 1}}, "status": {}});
    let runnable = Views::of_runnable(&runnable);
    let selected = json!({"any": {"thing": 1}});
    for selected in [None, Some(&selected)] {
        let values = Context::of_run(&runnable, selected).into_values();
        assert_eq!(values["selected"], selected.cloned().unwrap_or_default());
        let all: Map<String, Value> = values.into_iter().collect();
        assert_eq!(all.len(), 2);
        assert!(RUN.covers(&Value::Object(all)));
    }
}

#[test]
fn shortcuts_follow_the_number_of_declared_inputs_so_they_never_flicker() {
    let two =
        json!({"sources": [{"name": "a", "resource": "s1"}, {"name": "b", "resource": "s2"}]});
    for outputs in [
        vec![source("u1"), None],
        vec![None, source("u2")],
        vec![source("u1"), source("u2")],
    ] {
        assert!(
            !case(two.clone(), outputs)
                .keys()
                .contains(&"source".to_owned())
        );
    }
    let one = json!({"sources": [{"name": "a", "resource": "s1"}]});
    assert!(
        !case(one.clone(), vec![None])
            .keys()
            .contains(&"source".to_owned())
    );
    assert!(
        case(one, vec![source("u1")])
            .keys()
            .contains(&"source".to_owned())
    );
}

/// Admitted with a warning; a map holds one entry for them.
#[test]
fn inputs_of_one_name_are_one_input_the_last() {
    let twice =
        json!({"sources": [{"name": "a", "resource": "s1"}, {"name": "a", "resource": "s2"}]});
    let values = case(twice, vec![source("u1"), source("u2")])
        .context()
        .into_values();
    let last = json!({"url": "u2", "revision": "main", "name": "a"});
    assert_eq!(values["sources"], json!({"a": last}));
    assert_eq!(values["source"], last);
}

#[test]
fn inputs_without_fitting_output_are_missing() {
    let inputs = json!({
        "sources": [{"name": "a", "resource": "s1"}, {"name": "unknown", "resource": "nowhere"}, {"name": "self", "resource": "step"}],
        "images": [{"name": "null", "resource": "i"}, {"name": "wrong", "resource": "s1"}],
        "configs": [{"name": "c", "resource": "c"}],
    });
    let outputs = vec![
        source("u"),
        None,
        value(OutputValues::Image(Value::Null)),
        value(OutputValues::Config(Value::Null)),
        None,
    ];
    assert_eq!(
        case(inputs, outputs).missing(),
        ["unknown", "self", "null", "wrong", "c"]
    );
}

#[test]
fn a_null_url_is_an_input_all_the_same() {
    let inputs = json!({"sources": [{"name": "a", "resource": "s1"}]});
    let output = value(OutputValues::Source {
        url: Value::Null,
        revision: Value::Null,
    });
    assert_eq!(case(inputs, vec![output]).missing(), Vec::<&str>::new());
}

#[test]
fn tags_see_the_typed_view_where_they_end_at_a_scalar_and_json_where_they_end_at_an_object() {
    let case = case(json!({}), vec![]);
    let cases = [
        ("$(workload.spec.serviceAccountName)$", json!("")),
        ("$(workload.spec.image)$", json!(null)),
        ("$(workload.spec.build)$", json!({})),
        ("$(workload.spec.build.env)$", json!(null)),
        ("$(workload.metadata.generation)$", json!(0)),
        ("$(workload.spec.source)$", json!({"git": {"url": "u"}})),
        (
            "$(workload.spec.env)$",
            json!([{"name": "A", "value": "1"}]),
        ),
        // The filter finds it by a field that is unset, and left out of what is handed on.
        (
            "$(workload.spec.env[?(@.valueFrom)])$",
            json!({"name": "A", "value": "1"}),
        ),
        ("$(workload.spec.source.subPath)$", json!(null)),
        ("$(deliverable.spec.source.git.url)$", json!("u")),
        (
            "$(workload.spec.params[?(@.name==\"p\")].value)$",
            json!({"deep": "x"}),
        ),
        // Upstream cannot go into params; nobody can depend on that failure
        // (docs/behaviour/paths.md#typed-view).
        (
            "$(workload.spec.params[?(@.name==\"p\")].value.deep)$",
            json!("x"),
        ),
        ("$(params.o.sub[0])$", json!(true)),
        ("$(params.a-b)$", json!(1)),
        ("x$(params.big)$", json!("x1000000")),
        ("$(deployment)$", json!(null)),
        (
            "$(workload.kind)$/$(workload.apiVersion)$",
            json!("Workload/carto.run/v1alpha1"),
        ),
        ("$(workload.status.observedGeneration)$", json!(0)),
        ("$(labels['carto\\.run/workload-name'])$", json!("app")),
    ];
    for (text, expected) in cases {
        assert_eq!(case.render(text), Ok(expected), "{text}");
    }
}

#[test]
fn tags_that_find_nothing_name_their_place() {
    let case = case(json!({}), vec![]);
    let wrap =
        "failed to recursively evaluate template: failed to interpolate template at path [x]: ";
    let cases = [
        (
            "$(source.url)$",
            "evaluate tag $(source.url)$: jsonpath returned empty list: source.url",
        ),
        (
            "$(deployment.url)$",
            "evaluate tag $(deployment.url)$: jsonpath returned empty list: deployment.url",
        ),
        (
            "a$(params.none)$",
            "interpolate tag: evaluate jsonpath: jsonpath returned empty list: params.none",
        ),
        (
            "a$(workload.spec.image)$",
            "interpolate tag: tag must not point to nil value: workload.spec.image",
        ),
        (
            "$(workload.spec.serviceClaims[0])$",
            "evaluate tag $(workload.spec.serviceClaims[0])$: evaluate: failed to find results: array index out of \
             bounds: index 0, length 0",
        ),
        (
            "$(workload.Name)$",
            "evaluate tag $(workload.Name)$: jsonpath returned empty list: workload.Name",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            case.render(text),
            Err(format!("{wrap}{expected}")),
            "{text}"
        );
    }
}

#[test]
fn ytt_sees_json_with_integers_and_unset_fields_left_out() {
    let values = case(json!({}), vec![]).context().into_values();
    assert_eq!(values["params"]["big"], json!(1_000_000));
    assert_eq!(values["workload"].pointer("/spec/image"), None);
    assert_eq!(values["workload"].pointer("/spec/build"), Some(&json!({})));
    assert_eq!(
        values["workload"].pointer("/status/supplyChainRef"),
        Some(&json!({}))
    );
    assert_eq!(
        values["workload"].pointer("/metadata/creationTimestamp"),
        Some(&Value::Null)
    );
}

#[test]
fn secrets_are_told_from_other_inputs() {
    let inputs = json!({"configs": [{"name": "c", "resource": "c"}], "sources": [{"name": "a", "resource": "s1"}]});
    let secret = Some(Output::of(
        OutputValues::Config(json!("hunter2")),
        Taint::of([&json!("hunter2")]),
    ));
    let case = case(inputs, vec![source("u"), None, None, secret]);
    let inputs = ResolvedInputs::of(
        &case.step,
        |step| case.outputs.get(step)?.as_ref(),
        |_| true,
    );
    assert_eq!(inputs.taint(), Taint::of([&json!("hunter2")]));
}
