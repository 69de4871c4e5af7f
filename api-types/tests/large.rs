//! Admission of what is as large as etcd takes.

use api_types::validation::validate;
use serde_json::{Value, json};
use test_support::takes_about_ten_times_as_long;

/// A megabyte and a half: no blueprint is larger.
const MOST: usize = 10_000;

/// Each step takes what the one before it gives; the first one that of the last, if it is a ring.
fn blueprint(kind: &str, steps: usize, is_ring: bool) -> Value {
    let step = |number: usize| {
        let before = (number + steps - 1) % steps;
        let mut step = json!({
            "name": format!("s{number}"),
            "templateRef": {"kind": "ClusterConfigTemplate", "name": "t"},
        });
        if number > 0 || is_ring {
            step["configs"] = json!([{"name": "c", "resource": format!("s{before}")}]);
        }
        step
    };
    let resources: Vec<Value> = (0..steps).map(step).collect();
    json!({"apiVersion": "carto.run/v1alpha1", "kind": kind, "metadata": {"name": "large"},
           "spec": {"selector": {"a": "b"}, "resources": resources}})
}

/// What looks through all steps for each step would take longer than the API server waits.
#[test]
fn ten_times_the_steps_take_about_ten_times_as_long_to_validate() {
    for kind in ["ClusterSupplyChain", "ClusterDelivery"] {
        for is_ring in [false, true] {
            takes_about_ten_times_as_long(MOST, |steps| {
                let blueprint = blueprint(kind, steps, is_ring);
                move || {
                    let verdict = validate(kind, &blueprint);
                    assert_eq!(verdict.error, None);
                    assert_eq!(verdict.warnings.len(), usize::from(is_ring));
                }
            });
        }
    }
}
