//! ClusterSupplyChain: the blueprint of Workloads.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use crate::blueprint::{BlueprintSpec, BlueprintStatus};

/// The steps that turn a Workload into objects, and which Workloads they are for.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterSupplyChain",
    plural = "clustersupplychains",
    shortname = "csc",
    status = "BlueprintStatus",
    schema = "disabled",
    doc = "The steps that turn a Workload into objects, and which Workloads they are for.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    ),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
pub struct ClusterSupplyChainSpec {
    /// Everything; written inline.
    #[serde(flatten)]
    pub blueprint: BlueprintSpec,
}
