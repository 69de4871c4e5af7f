//! The worked example (docs/behaviour/examples.md#smallest-chain), which tests of several crates go
//! through.

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::stage::PATIENCE;
use crate::{Stage, eventually};

/// The blueprint and its templates: a source, and a sink that takes its url.
pub const CHAIN: &str = include_str!("../fixtures/smallest-chain.yaml");

/// The owner.
pub const WORKLOAD: &str = include_str!("../fixtures/smallest-workload.yaml");

/// The same manifests in the words of deliveries.
#[must_use]
pub fn for_delivery(manifests: &str) -> String {
    [
        ("workload", "deliverable"),
        ("Workload", "Deliverable"),
        ("ClusterSupplyChain", "ClusterDelivery"),
        ("{name: chain}", "{name: delivery}"),
    ]
    .iter()
    .fold(manifests.to_owned(), |text, (word, other)| {
        text.replace(word, other)
    })
}

/// What differs in the status of the two families.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// Field that names the blueprint.
    pub reference: &'static str,
    /// Kind of the blueprint.
    pub kind: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Condition type that speaks of it.
    pub ready: &'static str,
}

/// The digest of an output: of its value as YAML, which is what a preview shows of a short one.
fn digest_of(yaml: &str) -> String {
    let digest = Sha256::digest(yaml);
    let hex: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{}", hex.concat())
}

/// The status in which the example settles, without times. What was applied is as in `seen`.
///
/// # Panics
///
/// When `seen` does not say what was applied.
#[must_use]
pub fn settled(words: Words, namespace: &str, seen: &Value) -> Value {
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason, "message": ""});
    let submitted = condition("ResourceSubmitted", "ResourceSubmissionComplete");
    let ready = condition("Ready", "Ready");
    // What was applied is told by uid and by a digest.
    let applied = |index: usize| {
        let applied = &seen["resources"][index]["applied"];
        let is_digest = applied["state"]
            .as_str()
            .is_some_and(|state| state.len() == 32);
        assert!(applied["uid"].is_string() && is_digest, "{applied}");
        applied.clone()
    };
    let output = |name: &str, preview: &str| json!({"name": name, "preview": preview, "digest": digest_of(preview)});
    json!({
        "observedGeneration": 1,
        words.reference: {"kind": words.kind, "name": words.name},
        "conditions": [
            condition(words.ready, "Ready"),
            condition("ResourcesSubmitted", "ResourceSubmissionComplete"),
            condition("ResourcesHealthy", "HealthyConditionRule"),
            ready,
        ],
        "resources": [
            {
                "name": "fetch",
                "stampedRef": {"apiVersion": "test.run/v1alpha1", "kind": "Test", "name": "app-src", "namespace": namespace, "resource": "tests.test.run"},
                "templateRef": {"apiVersion": "carto.run/v1alpha1", "kind": "ClusterSourceTemplate", "name": "src"},
                "outputs": [output("url", "https://git.example/app\n"), output("revision", "main\n")],
                "conditions": [submitted, condition("Healthy", "OutputsAvailable"), ready],
                "applied": applied(0),
            },
            {
                "name": "publish",
                "stampedRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "app-sink", "namespace": namespace, "resource": "configmaps"},
                "templateRef": {"apiVersion": "carto.run/v1alpha1", "kind": "ClusterTemplate", "name": "sink"},
                "inputs": [{"name": "fetch"}],
                "conditions": [submitted, condition("Healthy", "AlwaysHealthy"), ready],
                "applied": applied(1),
            },
        ],
    })
}

/// Gives the owner `app`, which has settled, another source, and waits until every event of its life so far is told, by a
/// component named as its kind.
///
/// # Panics
///
/// When other events are told, or of another object.
pub async fn tells_of_another_source(stage: &Stage, kind: &str) {
    let other = json!({"spec": {"source": {"git": {"url": "https://git.example/other"}}}});
    stage.edit_owner("app", other).await;
    let expected = [
        "Normal ResourceHealthyStatusChanged: [fetch] found healthy status in [tests.test.run/app-src] changed to [True]",
        "Normal ResourceHealthyStatusChanged: [publish] found healthy status in [configmaps/app-sink] changed to [True]",
        "Normal ResourceOutputChanged: [fetch] found a new output in [tests.test.run/app-src]",
        "Normal StampedObjectApplied: Created object [configmaps/app-sink]",
        "Normal StampedObjectApplied: Created object [tests.test.run/app-src]",
        "Normal StampedObjectApplied: Patched object [configmaps/app-sink]",
        "Normal StampedObjectApplied: Patched object [tests.test.run/app-src]",
    ];
    eventually("the events are there", PATIENCE, async || {
        let mut seen = stage.events().await;
        seen.sort();
        seen.dedup();
        if seen == expected { Ok(()) } else { Err(seen) }
    })
    .await;
    let uid = stage.owner("app").await["metadata"]["uid"].clone();
    for event in stage.all("v1", "Event").await {
        assert_eq!(event["involvedObject"]["kind"], kind);
        assert_eq!(event["involvedObject"]["uid"], uid);
        assert_eq!(event["source"]["component"], kind);
    }
}

/// Takes all transition times out.
pub fn strip_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("lastTransitionTime");
            fields.values_mut().for_each(strip_times);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_times),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By `printf 'main\n' | sha256sum`.
    #[test]
    fn a_digest_is_what_everybody_else_computes() {
        assert_eq!(
            digest_of("main\n"),
            "sha256:6403203dd5a0867eb14d104ee8a73730bd72dd9ad92e78d996a6dba0a5dcfc01"
        );
    }
}
