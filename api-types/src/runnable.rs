//! Runnable and ClusterRunTemplate: objects that are created anew whenever their inputs change.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::condition::Condition;
use crate::templates::RetentionPolicy;

/// Which ClusterRunTemplate to stamp, with which inputs.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "Runnable",
    plural = "runnables",
    shortname = "run",
    namespaced,
    status = "RunnableStatus",
    schema = "disabled",
    doc = "An object that is created anew whenever its inputs change.",
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
#[serde(default, rename_all = "camelCase")]
pub struct RunnableSpec {
    /// The ClusterRunTemplate.
    pub run_template_ref: RunTemplateReference,
    /// An object of the cluster the template may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<ResourceSelector>,
    /// Any JSON by name, for the template.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, Value>,
    /// ServiceAccount in the Runnable's namespace whose rights are used; `default` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// How many finished objects are kept; ten of each when absent, by the schema's default.
    pub retention_policy: RetentionPolicy,
}

/// A ClusterRunTemplate by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RunTemplateReference {
    /// Ignored; always ClusterRunTemplate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the ClusterRunTemplate.
    pub name: String,
}

/// Exactly one object of a kind, by labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceSelector {
    /// The kind.
    pub resource: ResourceType,
    /// Labels the object must have.
    pub matching_labels: BTreeMap<String, String>,
}

/// A kind and the version to read it in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceType {
    /// `<group>/<version>`, or `<version>` for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// What became of a Runnable.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RunnableStatus {
    /// `metadata.generation` this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `RunTemplateReady`, `StampedObjectCondition`, `Ready`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Any JSON by output name, of the newest object that succeeded.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Value>,
}

/// The object a Runnable creates, and where its outputs are.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "carto.run",
    version = "v1alpha1",
    kind = "ClusterRunTemplate",
    plural = "clusterruntemplates",
    shortname = "crt",
    schema = "disabled",
    doc = "The object a Runnable creates, and where its outputs are.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    )
)]
#[serde(default, rename_all = "camelCase")]
pub struct ClusterRunTemplateSpec {
    /// The object to stamp, with `$(…)$` tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
    /// Path in the stamped object by output name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, String>,
}
