//! Laws that hold for any input.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test says what went wrong by panicking"
)]
#![expect(
    clippy::needless_pass_by_value,
    reason = "fixtures are written where they are used"
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use realizer::{Family, Template, TemplateState};
use serde_json::{Value, json};

#[path = "properties/hostile.rs"]
mod hostile;

#[expect(
    dead_code,
    reason = "shared with the scenarios of tests/engine.rs, which use more of it"
)]
#[path = "engine/scenario.rs"]
mod scenario;

use hostile::{Case, Submitted, any_json};
use scenario::Scenario;

const TEMPLATES: &str = "
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: source}
spec:
  urlPath: .spec.url
  revisionPath: .spec.inputs
  template:
    apiVersion: test.run/v1
    kind: Test
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
    spec: {url: 'url-$(labels[''carto\\.run/resource-name''])$', inputs: $(sources)$}
---
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: silent}
spec:
  urlPath: .status.url
  revisionPath: .status.revision
  template:
    apiVersion: test.run/v1
    kind: Test
    metadata:
      name: $(labels['carto\\.run/resource-name'])$
---
kind: ClusterSourceTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: run}
spec:
  lifecycle: immutable
  urlPath: .spec.url
  revisionPath: .spec.inputs
  template:
    apiVersion: test.run/v1
    kind: Run
    metadata:
      generateName: $(labels['carto\\.run/resource-name'])$-
    spec: {url: r, inputs: $(sources)$}
---
kind: ClusterTemplate
apiVersion: carto.run/v1alpha1
metadata: {name: broken}
spec: {template: {apiVersion: v1, kind: ConfigMap, metadata: {name: $(params.nowhere)$}}}
---
kind: Workload
apiVersion: carto.run/v1alpha1
metadata: {name: app, labels: {type: web}}
spec: {}
";

/// One step: which template, and which steps it takes (by index, possibly itself, later ones or none at all).
#[derive(Debug, Clone)]
struct StepSpec {
    template: usize,
    inputs: Vec<usize>,
}

fn steps(acyclic: bool) -> impl Strategy<Value = Vec<StepSpec>> {
    prop::collection::vec((0..4_usize, prop::collection::vec(0..7_usize, 0..3)), 1..6).prop_map(
        move |steps| {
            let of_index = |(index, (template, inputs)): (usize, (usize, Vec<usize>))| StepSpec {
                template,
                inputs: inputs
                    .into_iter()
                    .filter(|input| !acyclic || *input < index)
                    .collect(),
            };
            steps.into_iter().enumerate().map(of_index).collect()
        },
    )
}

fn resource(index: usize, step: &StepSpec) -> Value {
    let (kind, name) = [
        ("ClusterSourceTemplate", "source"),
        ("ClusterSourceTemplate", "silent"),
        ("ClusterSourceTemplate", "run"),
        ("ClusterTemplate", "broken"),
    ][step.template];
    let inputs: Vec<Value> = step
        .inputs
        .iter()
        .map(|input| json!({"name": format!("in-{input}"), "resource": format!("s{input}")}))
        .collect();
    json!({"name": format!("s{index}"), "templateRef": {"kind": kind, "name": name}, "sources": inputs})
}

fn scenario(resources: Vec<Value>) -> Scenario {
    let mut scenario = Scenario::new(TEMPLATES);
    scenario.blueprints = vec![json!({
        "apiVersion": "carto.run/v1alpha1", "kind": "ClusterSupplyChain", "metadata": {"name": "chain", "generation": 1},
        "spec": {"selector": {"type": "web"}, "resources": resources},
    })];
    scenario
}

fn resources(steps: &[StepSpec]) -> Vec<Value> {
    steps
        .iter()
        .enumerate()
        .map(|(index, step)| resource(index, step))
        .collect()
}

/// What was stamped, by step: kind and spec, which carries the inputs.
fn stamped(scenario: &Scenario) -> BTreeMap<String, Value> {
    scenario
        .cluster
        .objects()
        .iter()
        .map(|object| {
            let step = object["metadata"]["labels"]["carto.run/resource-name"]
                .as_str()
                .unwrap()
                .to_owned();
            (step, json!([object["kind"], object["spec"]]))
        })
        .collect()
}

/// Cases of one family; none may panic, and most have to come to a submission, or nothing of what follows one is tried.
fn never_panics(cases: BoxedStrategy<Case>, walk: fn(&Case) -> Submitted, kinds: &[&'static str]) {
    const CASES: u32 = 160;
    // By chance a kind may be in none of so few cases that comes as far.
    const MOST_ROUNDS: u32 = 5;
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let wanted: Submitted = kinds.iter().copied().collect();
    let (came, seen) = (Cell::new(0), RefCell::new(Submitted::new()));
    let mut tried = 0;
    while tried < MOST_ROUNDS * CASES && (tried == 0 || *seen.borrow() != wanted) {
        let result = TestRunner::new(config.clone()).run(&cases, |case| {
            let submitted = walk(&case);
            came.set(came.get() + u32::from(!submitted.is_empty()));
            seen.borrow_mut().extend(submitted);
            Ok(())
        });
        if let Err(error) = result {
            panic!("{error}");
        }
        tried += CASES;
    }
    let came = came.get();
    assert!(
        came * 10 >= tried * 8,
        "only {came} of {tried} cases came to a submission"
    );
    assert_eq!(
        seen.into_inner(),
        wanted,
        "each kind of template came to a submission"
    );
}

/// The naive model of docs/behaviour/context.md#params: go through the levels one by one and
/// remember who may still override.
fn model(levels: &[(usize, bool, Value)]) -> Option<Value> {
    let mut value = None;
    let mut blueprint_fixed = false;
    for level in 0..4 {
        for (_, fixed, given) in levels.iter().filter(|(at, ..)| *at == level) {
            match level {
                0 => value = Some(given.clone()),
                1 | 2 => {
                    value = Some(given.clone());
                    blueprint_fixed = *fixed;
                }
                _ if !blueprint_fixed => value = Some(given.clone()),
                _ => {}
            }
        }
    }
    value
}

#[test]
fn no_owner_no_template_and_no_object_makes_a_supply_chain_panic() {
    let kinds = [
        "ClusterSourceTemplate",
        "ClusterImageTemplate",
        "ClusterConfigTemplate",
        "ClusterTemplate",
    ];
    let walk = |case: &Case| case.walk(Family::SupplyChain);
    never_panics(hostile::supply_chain(), walk, &kinds);
}

#[test]
fn no_owner_no_template_and_no_object_makes_a_delivery_panic() {
    let kinds = [
        "ClusterSourceTemplate",
        "ClusterDeploymentTemplate",
        "ClusterDeploymentValidationTemplate",
        "ClusterTemplate",
    ];
    let walk = |case: &Case| case.walk(Family::Delivery);
    never_panics(hostile::delivery(), walk, &kinds);
}

#[test]
fn no_runnable_no_template_and_no_object_makes_the_engine_panic() {
    never_panics(hostile::runnable(), Case::run, &["ClusterRunTemplate"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn realizing_again_changes_nothing_and_tells_nothing(steps in steps(false)) {
        let mut scenario = scenario(resources(&steps));
        scenario.advance();
        scenario.advance();
        let status = scenario.owner["status"].clone();
        let objects = scenario.cluster.objects();
        let outcome = scenario.reconcile();
        prop_assert!(!outcome.changed);
        prop_assert_eq!(&outcome.status, &status);
        prop_assert!(outcome.events.is_empty());
        prop_assert!(outcome.removals.is_empty());
        prop_assert_eq!(&scenario.cluster.objects(), &objects);
    }

    #[test]
    fn what_is_stamped_does_not_depend_on_the_order_in_the_blueprint(
        (steps, shuffled) in steps(true).prop_flat_map(|steps| {
            let resources = resources(&steps);
            (Just(steps), Just(resources).prop_shuffle())
        }),
    ) {
        let mut straight = scenario(resources(&steps));
        let mut shuffled = scenario(shuffled);
        straight.advance();
        shuffled.advance();
        prop_assert_eq!(stamped(&straight), stamped(&shuffled));
    }

    #[test]
    fn nothing_is_stamped_from_a_part_of_its_inputs(steps in steps(false)) {
        let mut scenario = scenario(resources(&steps));
        scenario.advance();
        let stamped = stamped(&scenario);
        for (index, step) in steps.iter().enumerate() {
            let entry = scenario.entry(&format!("s{index}"));
            let inputs_ready = step.inputs.iter().all(|input| {
                *input < steps.len() && scenario.entry(&format!("s{input}")).get("outputs").is_some()
            });
            let is_stamped = stamped.contains_key(&format!("s{index}"));
            prop_assert_eq!(is_stamped, entry.get("stampedRef").is_some());
            prop_assert!(inputs_ready || !is_stamped, "s{} was stamped without all its inputs", index);
        }
    }

    #[test]
    fn params_follow_the_naive_model(
        levels in prop::collection::vec((0..4_usize, any::<bool>(), any_json()), 0..6),
    ) {
        let of_level = |wanted: usize| -> Vec<Value> {
            levels
                .iter()
                .filter(|(level, ..)| *level == wanted)
                .map(|(level, fixed, value)| {
                    let field = match (level, fixed) {
                        (0, _) => "default",
                        (3, _) | (_, true) => "value",
                        (_, false) => "default",
                    };
                    json!({"name": "p", field: value})
                })
                .collect()
        };
        let mut scenario = scenario(vec![json!({
            "name": "s", "templateRef": {"kind": "ClusterTemplate", "name": "params"}, "params": of_level(2),
        })]);
        scenario.blueprints[0]["spec"]["params"] = json!(of_level(1));
        scenario.owner["spec"]["params"] = json!(of_level(3));
        let object = json!({
            "apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "metadata": {"name": "params"},
            "spec": {"params": of_level(0), "template": {
                "apiVersion": "test.run/v1", "kind": "Test", "metadata": {"name": "x"}, "spec": {"params": "$(params)$"}}},
        });
        let key = ("ClusterTemplate".to_owned(), "params".to_owned());
        scenario.templates.0.insert(key, TemplateState::Found(Arc::new(Template::compile(&object).unwrap())));
        scenario.advance();
        let merged = scenario.cluster.object("x")["spec"]["params"].get("p").cloned();
        prop_assert_eq!(merged.map(|value| value.to_string()), model(&levels).map(plain).map(|value| value.to_string()));
    }
}

/// Integral doubles as the engine writes them.
fn plain(value: Value) -> Value {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "checked to be integral and small"
    )]
    match value {
        Value::Number(number) => match number
            .as_f64()
            .filter(|double| number.is_f64() && double.fract() == 0.0 && double.abs() < 9e15)
        {
            Some(double) => json!(double as i64),
            None => Value::Number(number),
        },
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::Object(entries) => Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key, plain(value)))
                .collect(),
        ),
        other => other,
    }
}
