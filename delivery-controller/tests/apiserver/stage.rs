//! The stage with the delivery controller on it.

use serde_json::Value;
use test_support::stage::Cast;
pub(crate) use test_support::stage::{NOTHING, PATIENCE, condition, condition_types, step};
use test_support::{Stage, eventually};

const CAST: Cast = Cast {
    binary: env!("CARGO_BIN_EXE_delivery-controller"),
    user_agent: "carto-delivery",
    api_version: "carto.run/v1alpha1",
    owner_kind: "Deliverable",
};

pub(crate) const DELIVERABLE: &str = r"
apiVersion: carto.run/v1alpha1
kind: Deliverable
metadata: {name: app, labels: {type: web}}
spec: {serviceAccountName: sa, source: {git: {url: https://git.example/app}}}
";

/// A source, to be named before the templates that take it.
pub(crate) const SOURCE: &str = r"
apiVersion: carto.run/v1alpha1
kind: ClusterSourceTemplate
metadata: {name: src}
spec:
  urlPath: .spec.value.url
  revisionPath: .spec.value.rev
  params: [{name: rev, default: main}]
  template:
    apiVersion: test.run/v1alpha1
    kind: Test
    metadata: {name: $(deliverable.metadata.name)$-src}
    spec:
      value: {url: $(deliverable.spec.source.git.url)$, rev: $(params.rev)$}
---
";

/// With the controller.
pub(crate) async fn open() -> Stage {
    Stage::open(CAST).await
}

/// Everything but the controller.
pub(crate) async fn set() -> Stage {
    Stage::set(CAST).await
}

/// A ClusterTemplate `sink` that writes this expression into a ConfigMap `<owner>-sink`.
pub(crate) fn sink(expression: &str) -> String {
    format!(
        "
apiVersion: carto.run/v1alpha1
kind: ClusterTemplate
metadata: {{name: sink}}
spec:
  template:
    apiVersion: v1
    kind: ConfigMap
    metadata: {{name: $(deliverable.metadata.name)$-sink}}
    data: {{value: {expression}}}
---
"
    )
}

/// A delivery named `delivery` for `type: web`, with these resources in YAML, indented by four.
pub(crate) fn delivery(resources: &str) -> String {
    format!(
        "
apiVersion: carto.run/v1alpha1
kind: ClusterDelivery
metadata: {{name: delivery}}
spec:
  selector: {{type: web}}
  resources:
{resources}
"
    )
}

/// Waits until the sink of the owner has this value.
pub(crate) async fn sunk(stage: &Stage, owner: &str, value: &str) {
    let name = format!("{owner}-sink");
    eventually(&format!("{name} has {value}"), PATIENCE, async || {
        let found = stage.get("v1", "ConfigMap", &name).await;
        let seen = found.map_or(Value::Null, |config| config["data"]["value"].clone());
        if seen == value { Ok(()) } else { Err(seen) }
    })
    .await;
}

/// Waits until a condition of the owner has this status, reason and message.
pub(crate) async fn says(
    stage: &Stage,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) -> Value {
    stage
        .until(
            "app",
            &format!("{kind} is {status}, {reason}: {message}"),
            |owner| {
                let condition = condition(&owner["status"], kind);
                condition["status"] == status
                    && condition["reason"] == reason
                    && condition["message"] == message
            },
        )
        .await
}
