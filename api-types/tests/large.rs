//! Admission of what is as large as etcd takes.

use std::time::{Duration, Instant};

use api_types::validation::{AnyPath, validate};
use serde_json::{Value, json};

const STEPS: usize = 10_000;

/// Each step takes what the one before it gives; the first one that of the last, if it is a ring.
fn blueprint(kind: &str, is_ring: bool) -> Value {
    let step = |number: usize| {
        let before = (number + STEPS - 1) % STEPS;
        let mut step = json!({
            "name": format!("s{number}"),
            "templateRef": {"kind": "ClusterConfigTemplate", "name": "t"},
        });
        if number > 0 || is_ring {
            step["configs"] = json!([{"name": "c", "resource": format!("s{before}")}]);
        }
        step
    };
    let steps: Vec<Value> = (0..STEPS).map(step).collect();
    json!({"apiVersion": "carto.run/v1alpha1", "kind": kind, "metadata": {"name": "large"},
           "spec": {"selector": {"a": "b"}, "resources": steps}})
}

#[test]
fn ten_thousand_steps_validate_in_well_under_a_second() {
    for kind in ["ClusterSupplyChain", "ClusterDelivery"] {
        for is_ring in [false, true] {
            let blueprint = blueprint(kind, is_ring);
            // The best of three: the machine may be busy.
            let mut best = Duration::MAX;
            for _ in 0..3 {
                let began = Instant::now();
                let verdict = validate(kind, &blueprint, &AnyPath);
                best = best.min(began.elapsed());
                assert_eq!(verdict.error, None);
                assert_eq!(verdict.warnings.len(), usize::from(is_ring));
            }
            assert!(best < Duration::from_secs(1), "{kind}: {best:?}");
        }
    }
}
