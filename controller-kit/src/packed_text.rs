//! JSON text of which there are many, kept small.
//!
//! A store holds one text for each object: ten thousand owners with their statuses, and what they stamp, would take
//! hundreds of MiB. Most of it is the same in all: keys, kinds, reasons. LZ4 packs a text in microseconds, a fraction of
//! what parsing it takes; what all texts have in common stands in a dictionary, so that short ones become small, too.

use serde_json::Value;

/// What nearly every object of ours says, in the order in which it says it: short texts refer to it.
const DICTIONARY: &[u8] = br#""message":"","observedGeneration":,"stampedRef":{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"GitRepository","name":"","namespace":"","resource":".source.toolkit.fluxcd.io","uid":"-4"},"templateRef":{"apiVersion":"carto.run/v1alpha1","kind":"ClusterSourceTemplate","name":""}},{"applied":{"state":"","uid":"-4"},"conditions":[{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"","reason":"ResourceSubmissionComplete","status":"True","type":"ResourceSubmitted"},{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"","reason":"OutputsAvailable","status":"True","type":"Healthy"},{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"","reason":"Ready","status":"True","type":"Ready"}],"inputs":[{"name":""}],"name":"","outputs":[{"digest":"sha256:","lastTransitionTime":"2026-01-01T00:00:00Z","name":"revision","preview":"\n"},"name":"url","preview":"https://\n"}]ClusterImageTemplateClusterConfigTemplateClusterTemplateUnknownFalseConditionNotMetMissingValueAtPath"supplyChainRef":{"kind":"ClusterSupplyChain","name":""},"deliveryRef":{"kind":"ClusterDelivery","name":""}{"apiVersion":"carto.run/v1alpha1","kind":"Workload","metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"carto.run/v1alpha1\"","creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"apps.tanzu.vmware.com/workload-type":"web","resourceVersion":"","spec":{"serviceAccountName":"","params":[{"name":"","value":""}],"source":{"git":{"ref":{"branch":"main"},"url":"https://"}}},"status":{"conditions":[{"apiVersion":"v1","data":{"spec":{"status":{"kind":"ConfigMap","metadata":{"creationTimestamp":"2026-01-01T00:00:00Z","generation":1,"labels":{"carto.run/cluster-template-name":"","carto.run/delivery-name":"","carto.run/deliverable-name":"","carto.run/deliverable-namespace":"","carto.run/run-template-name":"","carto.run/runnable-name":"","carto.run/resource-name":"","carto.run/supply-chain-name":"","carto.run/template-kind":"ClusterTemplate","carto.run/template-lifecycle":"mutable","carto.run/workload-name":"","carto.run/workload-namespace":""},"name":"","namespace":"","uid":"-4"}}"#;

/// A JSON value, packed.
#[derive(Clone, PartialEq, Eq)]
pub struct PackedText(Box<[u8]>);

impl PackedText {
    /// Packs a value.
    pub fn of(value: &Value) -> Self {
        Self::of_text(&value.to_string())
    }

    /// Packs a value that is there as text.
    pub fn of_text(text: &str) -> Self {
        let packed = lz4_flex::block::compress_prepend_size_with_dict(text.as_bytes(), DICTIONARY);
        Self(packed.into())
    }

    /// The value.
    pub fn value(&self) -> Value {
        // Only what `of` made is here.
        let text = lz4_flex::block::decompress_size_prepended_with_dict(&self.0, DICTIONARY);
        text.ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Bytes it takes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl std::fmt::Debug for PackedText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.value(), f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map(".*", inner, 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_comes_back_as_it_was(value in any_json()) {
            prop_assert_eq!(PackedText::of(&value).value(), value);
        }
    }

    #[test]
    fn a_long_text_comes_back_too() {
        let items =
            (0..20_000).map(|number| json!({"number": number, "text": "x".repeat(number % 90)}));
        let value: Value = items.collect();
        assert_eq!(PackedText::of(&value).value(), value);
    }

    #[test]
    fn what_a_template_stamps_takes_little_room() {
        let object = json!({
            "apiVersion": "steps.example/v1", "kind": "Step",
            "metadata": {
                "creationTimestamp": "2026-11-21T10:11:12Z", "generation": 3, "name": "workload-17-build", "namespace": "team-17",
                "uid": "7c0e3a52-6f2a-4a0e-9d0a-1d3a1b2c3d4e",
                "labels": {
                    "carto.run/cluster-template-name": "build", "carto.run/resource-name": "build",
                    "carto.run/supply-chain-name": "linear", "carto.run/template-kind": "ClusterSourceTemplate",
                    "carto.run/template-lifecycle": "mutable", "carto.run/workload-name": "workload-17",
                    "carto.run/workload-namespace": "team-17",
                },
            },
            "status": {"revision": "main@sha1:4f2e1", "url": "https://artifacts.example/workload-17"},
        });
        let packed = PackedText::of(&object);
        let plain = object.to_string().len();
        assert!(packed.len() * 2 < plain, "{} of {plain}", packed.len());
    }
}
