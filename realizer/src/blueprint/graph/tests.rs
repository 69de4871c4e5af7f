use serde_json::json;

use super::*;
use crate::{Blueprint, Family};

/// Steps as `name<input,input`.
fn blueprint(steps: &[&str]) -> Blueprint {
    let resources: Vec<_> = steps
        .iter()
        .map(|step| {
            let (name, inputs) = step.split_once('<').unwrap_or((step, ""));
            let sources: Vec<_> = inputs
                .split(',')
                .filter(|input| !input.is_empty())
                .map(|input| json!({"name": format!("from-{input}"), "resource": input}))
                .collect();
            json!({"name": name, "templateRef": {"kind": "ClusterTemplate", "name": "t"}, "sources": sources})
        })
        .collect();
    let object = json!({"metadata": {"name": "b"}, "spec": {"resources": resources}});
    Blueprint::compile(Family::SupplyChain, &object).unwrap()
}

fn order_of(steps: &[&str]) -> String {
    let blueprint = blueprint(steps);
    let names: Vec<&str> = blueprint
        .order
        .iter()
        .map(|&step| blueprint.steps[step].name.as_str())
        .collect();
    names.join(" ")
}

#[test]
fn providers_come_before_consumers_and_ties_keep_the_blueprint_order() {
    let cases: [(&[&str], &str); 9] = [
        (&[], ""),
        (&["c", "b", "a"], "c b a"),
        (&["a", "b<a", "c<b"], "a b c"),
        (&["c<b", "b<a", "a"], "a b c"),
        (&["d<a,b", "c", "b", "a"], "c b a d"),
        (&["x<z", "y", "z"], "y z x"),
        (&["a<a", "b"], "a b"),
        (&["a<nowhere", "b"], "a b"),
        (&["a<b,b,b", "b"], "b a"),
    ];
    for (steps, expected) in cases {
        assert_eq!(order_of(steps), expected, "{steps:?}");
    }
}

#[test]
fn cycles_are_broken_at_the_first_step_of_the_blueprint() {
    let cases: [(&[&str], &str); 4] = [
        (&["a<b", "b<a", "c"], "c a b"),
        (&["a<c", "b<a", "c<b"], "a b c"),
        (&["z<a", "a<b", "b<a", "y"], "y z a b"),
        (&["a<b", "b<a", "c<d", "d<c"], "a b c d"),
    ];
    for (steps, expected) in cases {
        assert_eq!(order_of(steps), expected, "{steps:?}");
    }
}

#[test]
fn warnings_name_what_cannot_work() {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["a", "b<a"], &[]),
        (&["b<a", "a"], &[]),
        (
            &["a<a"],
            &["resource [a] takes its own output; the input will never be there"],
        ),
        (
            &["a<x"],
            &["resource [a] takes input [from-x] from resource [x], which does not exist"],
        ),
        (
            &["a<b", "b<c", "c<a", "d<a", "e"],
            &[
                "resources [a -> b -> c -> a] wait for one another; none of them will ever have its inputs",
            ],
        ),
        (
            &["a<b", "b<a", "c<d,x", "d<c"],
            &[
                "resource [c] takes input [from-x] from resource [x], which does not exist",
                "resources [a -> b -> a] wait for one another; none of them will ever have its inputs",
                "resources [c -> d -> c] wait for one another; none of them will ever have its inputs",
            ],
        ),
    ];
    for (steps, expected) in cases {
        let warnings: Vec<String> = blueprint(steps)
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(warnings, expected, "{steps:?}");
    }
}

#[test]
fn an_unknown_deployment_is_named_as_such() {
    let object = json!({"metadata": {"name": "b"}, "spec": {"resources": [
        {"name": "deploy", "templateRef": {"kind": "ClusterDeploymentTemplate", "name": "t"}, "deployment": {"resource": "x"}},
    ]}});
    let blueprint = Blueprint::compile(Family::Delivery, &object).unwrap();
    assert_eq!(
        blueprint.warnings(),
        [GraphWarning::UnknownInput {
            resource: "deploy".into(),
            input: "deployment".into(),
            provider: "x".into()
        }]
    );
}

#[test]
fn long_chains_in_reverse_order_are_ordered() {
    let steps: Vec<String> = (0..2000)
        .map(|step| {
            if step == 1999 {
                format!("s{step}")
            } else {
                format!("s{step}<s{}", step + 1)
            }
        })
        .collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    let blueprint = blueprint(&steps);
    assert_eq!(blueprint.order, (0..2000).rev().collect::<Vec<_>>());
    assert!(blueprint.warnings().is_empty());
}

#[test]
fn of_very_many_cycles_the_first_are_told() {
    let pairs: Vec<String> = (0..10_000)
        .map(|step| format!("s{step}<s{}", step ^ 1))
        .collect();
    let pairs: Vec<&str> = pairs.iter().map(String::as_str).collect();
    assert_eq!(blueprint(&pairs).warnings().len(), super::MOST_CYCLES);
    let ring: Vec<String> = (0..10_000)
        .map(|step| format!("s{step}<s{}", (step + 1) % 10_000))
        .collect();
    let ring: Vec<&str> = ring.iter().map(String::as_str).collect();
    assert_eq!(blueprint(&ring).warnings().len(), 1);
}
