//! What the bench reads of the objects it watches: a few fields. Parsing whole objects would take CPU time from the
//! control plane that is measured on the same machine.

use serde::Deserialize;
use test_support::Observed;

use crate::layout::Key;

/// A stamped object or an owner, which is a Workload, a Deliverable or a Runnable. Each has some of these fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Seen {
    pub(crate) metadata: Metadata,
    pub(crate) spec: Spec,
    pub(crate) status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// Counts changes of the spec.
    pub(crate) generation: i64,
    /// Where to go on watching.
    pub(crate) resource_version: String,
}

/// The spec of a stamped object: handed on from step to step, but for the note, which an edit of the template sets.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    pub(crate) value: String,
    pub(crate) revision: String,
    pub(crate) note: String,
}

/// What a controller reported, or of a stamped object the bench.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    /// The generation it speaks of.
    pub(crate) observed_generation: i64,
    pub(crate) conditions: Vec<Condition>,
    /// Of a Runnable: what its last good run gave.
    pub(crate) outputs: Outputs,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Outputs {
    /// The revision it was made for.
    pub(crate) revision: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    pub(crate) r#type: String,
    pub(crate) status: String,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Observed for Seen {
    fn version(&self) -> &str {
        &self.metadata.resource_version
    }
}

impl Seen {
    /// Its namespace and name.
    pub(crate) fn key(&self) -> Key {
        Key::new(&*self.metadata.namespace, &*self.metadata.name)
    }

    /// Whether the status speaks of the present spec.
    pub(crate) fn is_settled(&self) -> bool {
        self.status.observed_generation == self.metadata.generation
    }

    /// Of an owner: whether it is Ready, for its present spec.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_settled() && self.ready().is_some_and(|ready| ready.status == "True")
    }

    /// Its Ready condition.
    pub(crate) fn ready(&self) -> Option<&Condition> {
        let mut conditions = self.status.conditions.iter();
        conditions.find(|condition| condition.r#type == "Ready")
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A stamped object of this generation, with a status of another.
    pub(crate) fn step(name: &str, generation: i64, observed: i64) -> Seen {
        read(
            json!({"metadata": {"name": name, "uid": "u", "generation": generation},
            "status": {"observedGeneration": observed}}),
        )
    }

    fn read(object: Value) -> Seen {
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_status_counts_only_for_the_generation_it_speaks_of() {
        let workload = |observed: i64, ready: &str| {
            read(json!({
                "metadata": {"name": "a", "generation": 2, "managedFields": [{"manager": "x"}]},
                "spec": {"source": {"git": {}}},
                "status": {"observedGeneration": observed, "conditions": [
                    {"type": "SupplyChainReady", "status": "True"}, {"type": "Ready", "status": ready},
                ]},
            }))
        };
        assert!(workload(2, "True").is_ready());
        assert!(!workload(1, "True").is_ready());
        assert!(!workload(2, "Unknown").is_ready());
        let new = read(json!({"metadata": {"name": "a", "generation": 1}, "status": {}}));
        assert!(!new.is_settled() && step("a", 1, 1).is_settled());
    }
}
