//! What the bench reads of the objects it watches: a few fields. Parsing whole objects would take CPU time from the
//! control plane that is measured on the same machine.

use serde::Deserialize;

use crate::layout::Key;

/// An object that can be watched.
pub(crate) trait Seen: for<'de> Deserialize<'de> + Clone + Send + 'static {
    /// Its metadata.
    fn metadata(&self) -> &Metadata;

    /// Its namespace and name.
    fn key(&self) -> Key {
        let Metadata {
            namespace, name, ..
        } = self.metadata();
        Key {
            namespace: namespace.clone(),
            name: name.clone(),
        }
    }
}

/// Metadata.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    /// Namespace.
    pub(crate) namespace: String,
    /// Name.
    pub(crate) name: String,
    /// Unique over time.
    pub(crate) uid: String,
    /// Counts changes of the spec.
    pub(crate) generation: i64,
    /// Where to go on watching.
    pub(crate) resource_version: String,
}

/// A stamped object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Step {
    /// Metadata.
    pub(crate) metadata: Metadata,
    /// What was asked for.
    pub(crate) spec: StepSpec,
    /// What the bench reported, if it did.
    pub(crate) status: StepStatus,
}

/// The spec of a stamped object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StepSpec {
    /// Handed on from step to step.
    pub(crate) value: String,
    /// Handed on from step to step.
    pub(crate) revision: String,
    /// Set by an edit of the template.
    pub(crate) note: String,
}

/// The status of a stamped object.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct StepStatus {
    /// The revision passed on.
    pub(crate) revision: String,
    /// The generation it belongs to.
    pub(crate) observed_generation: i64,
}

impl Step {
    /// Whether the status speaks of the present spec.
    pub(crate) fn is_settled(&self) -> bool {
        self.status.observed_generation == self.metadata.generation
    }
}

/// An owner: a Workload, a Deliverable or a Runnable.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OwnerSeen {
    /// Metadata.
    pub(crate) metadata: Metadata,
    /// What the controller reported.
    pub(crate) status: OwnerStatus,
}

/// The status of an owner.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct OwnerStatus {
    /// The generation it speaks of.
    pub(crate) observed_generation: i64,
    /// Conditions.
    pub(crate) conditions: Vec<Condition>,
    /// Of a Runnable: what its last good run gave.
    pub(crate) outputs: Outputs,
}

/// What a run gave.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Outputs {
    /// The revision it was made for.
    pub(crate) revision: String,
}

/// A condition.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Condition {
    /// Its type.
    pub(crate) r#type: String,
    /// `True`, `False` or `Unknown`.
    pub(crate) status: String,
    /// Why, as one word.
    pub(crate) reason: String,
    /// Why, for people.
    pub(crate) message: String,
}

impl OwnerSeen {
    /// Whether it is Ready, for its present spec.
    pub(crate) fn is_ready(&self) -> bool {
        let current = self.status.observed_generation == self.metadata.generation;
        current && self.ready().is_some_and(|ready| ready.status == "True")
    }

    /// Its Ready condition.
    pub(crate) fn ready(&self) -> Option<&Condition> {
        self.status
            .conditions
            .iter()
            .find(|condition| condition.r#type == "Ready")
    }
}

impl Seen for Step {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Seen for OwnerSeen {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_workload_is_ready_only_for_the_generation_its_status_speaks_of() {
        let workload = |observed: i64, status: &str| -> OwnerSeen {
            serde_json::from_value(json!({
                "metadata": {"name": "a", "namespace": "n", "generation": 2, "managedFields": [{"manager": "x"}]},
                "status": {"observedGeneration": observed, "conditions": [
                    {"type": "SupplyChainReady", "status": "True"}, {"type": "Ready", "status": status},
                ]},
            }))
            .unwrap()
        };
        assert!(workload(2, "True").is_ready());
        assert!(!workload(1, "True").is_ready());
        assert!(!workload(2, "Unknown").is_ready());
    }

    #[test]
    fn a_new_step_is_not_settled() {
        let step = |status| -> Step {
            serde_json::from_value(
                json!({"metadata": {"name": "a", "generation": 1}, "status": status}),
            )
            .unwrap()
        };
        assert!(!step(json!({})).is_settled());
        assert!(step(json!({"observedGeneration": 1})).is_settled());
    }
}
