//! PodIntent: a pod template, and what conventions made of it.

use convention_protocol::PodTemplate;
use k8s_openapi::api::core::v1::LocalObjectReference;
use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use api_types::Condition;

/// The account whose pull secrets are used when a PodIntent names none.
pub const DEFAULT_SERVICE_ACCOUNT: &str = "default";

/// What is to be decorated, and with which credentials its images are read.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Serialize, Deserialize)]
#[kube(
    group = "conventions.carto.run",
    version = "v1alpha1",
    kind = "PodIntent",
    plural = "podintents",
    namespaced,
    status = "PodIntentStatus",
    schema = "disabled",
    doc = "A pod template that conventions are applied to.",
    derive = "Default",
    derive = "PartialEq",
    crates(
        kube_core = "::kube_core",
        k8s_openapi = "::k8s_openapi",
        serde = "::serde",
        serde_json = "::serde_json"
    ),
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(default, rename_all = "camelCase")]
pub struct PodIntentSpec {
    /// ServiceAccount in the PodIntent's namespace; only its pull secrets are used. Empty is
    /// [`DEFAULT_SERVICE_ACCOUNT`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,
    /// Secrets in the PodIntent's namespace, asked before those of the service account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// The template as its author wrote it.
    pub template: PodTemplate,
}

/// What became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PodIntentStatus {
    /// Generation of the PodIntent that the conditions are about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is known, sorted by type.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The decorated template. After a failure it is still the last good one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PodTemplate>,
}

impl PodIntentSpec {
    /// The account whose pull secrets are used.
    ///
    /// ```
    /// assert_eq!(conventions::PodIntentSpec::default().service_account(), "default");
    /// ```
    pub fn service_account(&self) -> &str {
        match self.service_account_name.as_str() {
            "" => DEFAULT_SERVICE_ACCOUNT,
            name => name,
        }
    }
}
