//! Deliverable: configuration that is to be deployed.

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::custom_resource::custom_resource;
use crate::params::OwnerParam;
use crate::source::Source;
use crate::status::{BlueprintRef, EnvironmentStatus, OwnerSummary, ResourceStatus, StampedRef};

custom_resource! {
    /// What is to be deployed; a ClusterDelivery is chosen by the Deliverable's labels and fields.
    #[kube(
        kind = "Deliverable",
        plural = "deliverables",
        shortname = "dlv",
        category = "all",
        namespaced,
        status = "DeliverableStatus",
        doc = "Configuration that is to be deployed.",
        printcolumn = r#"{"name":"Source","type":"string","jsonPath":".spec.source['git.url','image']"}"#,
        printcolumn = r#"{"name":"Delivery","type":"string","jsonPath":".status.deliveryRef.name"}"#,
        printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
        printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
        printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
        printcolumn = r#"{"name":"Step","type":"string","priority":1,"jsonPath":".status.summary.step"}"#,
        printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.summary.message"}"#
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct DeliverableSpec {
        /// Parameters for the templates of the delivery.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub params: Vec<OwnerParam>,
        /// Where the configuration is.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source: Option<Source>,
        /// ServiceAccount in the Deliverable's namespace whose rights are used; wins over the delivery's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub service_account_name: Option<String>,
    }
}

/// What became of a Deliverable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeliverableStatus {
    /// `metadata.generation` this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `DeliveryReady`, `ResourcesSubmitted`, `ResourcesHealthy`, `Ready`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The chosen delivery; `{}` as long as none was.
    pub delivery_ref: BlueprintRef,
    /// One entry per resource (step) of the delivery.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStatus>,
    /// The environments that are validated: what is deployed, what is being validated, what waits. An addition to the Go
    /// controller's status, which knew no validations; left out when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<EnvironmentStatus>,
    /// Objects that are no longer wanted and could not be deleted yet, with their uid if it is known. An addition to
    /// the Go controller's status, which forgot them; left out when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending_removals: Vec<StampedRef>,
    /// The owners that led to this one, each stamped for the one before it, as `<Kind>/<name>`; absent for one that nobody
    /// stamped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stamped_for: Vec<String>,
    /// Why it is not Ready, in one line; left out while it is. An addition to the Go controller's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<OwnerSummary>,
}
