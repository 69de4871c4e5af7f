//! What ClusterSupplyChain and ClusterDelivery have in common; they differ in nothing else that matters to the engine.

mod inputs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::params::BlueprintParam;
use crate::selector::{FieldRequirement, LabelRequirement, LabelSelector, Selector};
use crate::templates::TemplateKind;

pub use inputs::{DeclaredInput, InputSlot};

/// The spec of a blueprint.
///
/// The schema of ClusterSupplyChain has no `deployment` and that of ClusterDelivery no `images` in its resources; the
/// API server prunes them, so one type serves both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueprintSpec {
    /// Labels an owner must have.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub selector: BTreeMap<String, String>,
    /// Label requirements an owner must meet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selector_match_expressions: Vec<LabelRequirement>,
    /// Field requirements an owner must meet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selector_match_fields: Vec<FieldRequirement>,
    /// Parameters for all resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<BlueprintParam>,
    /// ServiceAccount used for owners that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_ref: Option<ServiceAccountRef>,
    /// Labels that the namespaces of owners must have; all namespaces when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_namespaces: Option<LabelSelector>,
    /// Which outputs are kept as Artifacts, beyond those that are needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<BlueprintArtifacts>,
    /// The resources (steps), in the order in which they are reported.
    pub resources: Vec<BlueprintResource>,
}

impl BlueprintSpec {
    /// The three legacy selector fields as one selector.
    ///
    /// ```
    /// use api_types::BlueprintSpec;
    ///
    /// let spec: BlueprintSpec = serde_json::from_str(r#"{"selector": {"type": "web"}, "resources": []}"#)?;
    /// assert_eq!(spec.owner_selector().match_labels["type"], "web");
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn owner_selector(&self) -> Selector {
        Selector {
            match_labels: self.selector.clone(),
            match_expressions: self.selector_match_expressions.clone(),
            match_fields: self.selector_match_fields.clone(),
        }
    }
}

/// Which outputs are kept as Artifacts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueprintArtifacts {
    /// How many identities of the outputs of each resource (step) are kept with their values; at most
    /// [`MOST_RETAINED`](crate::artifact::MOST_RETAINED), 0 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain: Option<u32>,
}

/// A ServiceAccount, by default in the owner's namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ServiceAccountRef {
    /// Name of the ServiceAccount.
    pub name: String,
    /// Its namespace; the owner's when absent or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// One resource (step) of a blueprint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueprintResource {
    /// Name of the step, unique within the blueprint.
    pub name: String,
    /// Which template stamps it.
    pub template_ref: TemplateReference,
    /// Parameters for this step; they replace those of the blueprint with the same name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<BlueprintParam>,
    /// Inputs that carry url and revision.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<InputReference>,
    /// Inputs that carry an image; ClusterSupplyChain only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<InputReference>,
    /// Inputs that carry configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub configs: Vec<InputReference>,
    /// The deployment that goes in; ClusterDelivery only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<DeploymentReference>,
    /// Steps that must be good, as they are rendered now, before this one is created or changed. Nothing of them goes in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<StepDependency>,
}

/// An output of another step, under a local name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InputReference {
    /// Name by which the template refers to the input.
    pub name: String,
    /// Name of the step that provides it.
    pub resource: String,
}

/// A step that must be good before another one is created or changed.
///
/// ```
/// use api_types::{BlueprintResource, InputSlot};
///
/// let step: BlueprintResource = serde_json::from_value(serde_json::json!({
///     "dependsOn": [{"resource": "migrate"}],
/// }))?;
/// let input = step.inputs().next().unwrap();
/// assert_eq!((input.slot, input.resource), (InputSlot::Success, "migrate"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StepDependency {
    /// Name of the step, whatever its template is.
    pub resource: String,
}

/// The deployment a step takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct DeploymentReference {
    /// Name of the step that provides it.
    pub resource: String,
}

/// A template by name, or one of several by option. Exactly one of `name` and `options` is given when admitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateReference {
    /// Kind of the template, also of all options; see [`TemplateReference::template_kind`].
    pub kind: String,
    /// Name of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the template is chosen from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<TemplateOption>,
}

impl TemplateReference {
    /// The kind, if it is one that is known here.
    ///
    /// ```
    /// use api_types::{TemplateKind, TemplateReference};
    ///
    /// let reference = TemplateReference { kind: "ClusterImageTemplate".into(), ..Default::default() };
    /// assert_eq!(reference.template_kind(), Some(TemplateKind::Image));
    /// ```
    pub fn template_kind(&self) -> Option<TemplateKind> {
        self.kind.parse().ok()
    }
}

/// A template, or an input to hand through, for owners that match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateOption {
    /// Name of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Local name of the input that becomes the step's output, with nothing stamped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pass_through: Option<String>,
    /// Which owners the option is for.
    pub selector: Selector,
}

/// What is known of a blueprint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueprintStatus {
    /// `metadata.generation` this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `TemplatesReady`, `Ready`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
