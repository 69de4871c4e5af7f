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
    /// What the template was made from and by whom, as a digest. As long as it stays the same, no webhook is asked again.
    /// Absent after a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub inputs_digest: String,
    /// What `template` was made from, as a digest, if all conventions are in it: the same as
    /// `inputs_digest`, but for credentials and authorities, which decide whether it can be made
    /// and not what it becomes. It stays with the template after a failure.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template_inputs_digest: String,
    /// The conventions that were considered last: those that match in the order of application, then the others by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conventions: Vec<ConsideredConvention>,
    /// The images that were resolved for the template, by the text that each had before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ResolvedImage>,
}

/// A convention, and what became of it in the last pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConsideredConvention {
    /// Name of the ClusterPodConvention.
    pub name: String,
    /// Whether it is for this PodIntent.
    pub matched: bool,
    /// Which of its selectors matched first, counted from 0; absent if it has none, or none matches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<i64>,
    /// How long its webhook took to answer. A pass that differs in nothing else is not written down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_millis: Option<i64>,
    /// What it says that it did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<String>,
    /// Images whose bills of materials it was not sent, since there was no room for them in its
    /// request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boms_left_out: Vec<String>,
    /// Why it was not applied, if it should have been.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// A digest of the template that it made.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output_digest: String,
    /// How many passes in a row it made another template of the same inputs.
    #[serde(skip_serializing_if = "is_zero")]
    pub changes: i64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands out references"
)]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// An image, and what its text stood for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResolvedImage {
    /// The text that a container had.
    pub image: String,
    /// The text that it has now.
    pub reference: String,
    /// Digest of the manifest or index.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Digest of the image's configuration.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub config_digest: String,
    /// Names of its bills of materials.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub boms: Vec<String>,
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
