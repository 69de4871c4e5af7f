//! ClusterSupplyChain: the blueprint of Workloads.

use crate::blueprint::{BlueprintSpec, BlueprintStatus};
use crate::custom_resource::custom_resource;

custom_resource! {
    /// The steps that turn a Workload into objects, and which Workloads they are for.
    #[kube(
        kind = "ClusterSupplyChain",
        plural = "clustersupplychains",
        shortname = "csc",
        status = "BlueprintStatus",
        doc = "The steps that turn a Workload into objects, and which Workloads they are for.",
        printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
        printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
        printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
    )]
    pub struct ClusterSupplyChainSpec {
        /// Everything; written inline.
        #[serde(flatten)]
        pub blueprint: BlueprintSpec,
    }
}
