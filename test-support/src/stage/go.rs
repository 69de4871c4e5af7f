//! What the Go controller leaves on the objects that it stamps.

use serde_json::{Value, json};

use super::Stage;

impl Stage {
    /// A rendering as the Go controller decorates it for a step of a Workload; `template` is its kind, its name and its
    /// lifecycle. The name is empty for a step with options. It writes no annotation.
    pub fn left_by_go(
        &self,
        workload: &Value,
        step: &str,
        template: [&str; 3],
        mut object: Value,
    ) -> Value {
        let [kind, name, lifecycle] = template;
        let metadata = &mut object["metadata"];
        metadata["namespace"] = json!(self.namespace);
        metadata["labels"] = json!({
            "carto.run/workload-name": workload["metadata"]["name"], "carto.run/workload-namespace": self.namespace,
            "carto.run/supply-chain-name": "chain", "carto.run/resource-name": step, "carto.run/template-kind": kind,
            "carto.run/cluster-template-name": name, "carto.run/template-lifecycle": lifecycle,
        });
        metadata["ownerReferences"] = json!([{
            "apiVersion": "carto.run/v1alpha1", "kind": "Workload", "name": workload["metadata"]["name"],
            "uid": workload["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }]);
        object
    }
}
