//! ClusterDelivery: the blueprint of Deliverables.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use crate::blueprint::{BlueprintSpec, BlueprintStatus};

/// The steps that turn a Deliverable into objects, and which Deliverables they are for.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterDelivery",
    plural = "clusterdeliveries",
    shortname = "cd",
    status = "BlueprintStatus",
    schema = "disabled",
    doc = "The steps that turn a Deliverable into objects, and which Deliverables they are for.",
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
pub struct ClusterDeliverySpec {
    /// Everything; written inline.
    #[serde(flatten)]
    pub blueprint: BlueprintSpec,
}
