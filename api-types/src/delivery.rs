//! ClusterDelivery: the blueprint of Deliverables.

use crate::blueprint::{BlueprintSpec, BlueprintStatus};
use crate::custom_resource::custom_resource;

custom_resource! {
    /// The steps that turn a Deliverable into objects, and which Deliverables they are for.
    #[kube(
        kind = "ClusterDelivery",
        plural = "clusterdeliveries",
        shortname = "cd",
        status = "BlueprintStatus",
        doc = "The steps that turn a Deliverable into objects, and which Deliverables they are for.",
        printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
        printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
        printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
    )]
    pub struct ClusterDeliverySpec {
        /// Everything; written inline.
        #[serde(flatten)]
        pub blueprint: BlueprintSpec,
    }
}
