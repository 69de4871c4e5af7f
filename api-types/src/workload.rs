//! Workload: what a developer submits to get an application built and running.

use k8s_openapi::api::core::v1::{EnvVar, ResourceRequirements};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::custom_resource::custom_resource;
use crate::params::OwnerParam;
use crate::source::Source;
use crate::status::{BlueprintRef, OwnerSummary, ResourceStatus, StampedRef};

custom_resource! {
    /// What the developer wants; a ClusterSupplyChain is chosen by the Workload's labels and fields.
    #[kube(
        kind = "Workload",
        plural = "workloads",
        shortname = "wld",
        category = "all",
        namespaced,
        status = "WorkloadStatus",
        doc = "What a developer submits to get an application built and running.",
        printcolumn = r#"{"name":"Source","type":"string","jsonPath":".spec.source['git.url','image']"}"#,
        printcolumn = r#"{"name":"SupplyChain","type":"string","jsonPath":".status.supplyChainRef.name"}"#,
        printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
        printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
        printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
        printcolumn = r#"{"name":"Step","type":"string","priority":1,"jsonPath":".status.summary.step"}"#,
        printcolumn = r#"{"name":"Message","type":"string","priority":1,"jsonPath":".status.summary.message"}"#
    )]
    #[serde(default, rename_all = "camelCase")]
    pub struct WorkloadSpec {
        /// Parameters for the templates of the supply chain.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub params: Vec<OwnerParam>,
        /// Where the source code is.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub source: Option<Source>,
        /// A prebuilt image, as an alternative to source; that only one is given is not enforced.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub image: Option<String>,
        /// What the build needs.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub build: Option<Build>,
        /// Environment of the running application.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub env: Vec<EnvVar>,
        /// Compute resources of the running application.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub resources: Option<ResourceRequirements>,
        /// ServiceAccount in the Workload's namespace whose rights are used; wins over the supply chain's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub service_account_name: Option<String>,
        /// Services the application needs. Data for templates; no controller acts on it.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub service_claims: Vec<ServiceClaim>,
    }
}

/// What the build of a Workload needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Build {
    /// Environment of the build.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
}

/// A service the application needs, by a name of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceClaim {
    /// Name of the claim.
    pub name: String,
    /// The object that is claimed.
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<ServiceClaimRef>,
}

/// The object a [`ServiceClaim`] means.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceClaimRef {
    /// `<group>/<version>` of the object.
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
}

/// What became of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WorkloadStatus {
    /// `metadata.generation` this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `SupplyChainReady`, `ResourcesSubmitted`, `ResourcesHealthy`, `Ready`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The chosen supply chain; `{}` as long as none was.
    pub supply_chain_ref: BlueprintRef,
    /// One entry per resource (step) of the supply chain.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceStatus>,
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
