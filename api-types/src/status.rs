//! What the status of Workloads and Deliverables says about each resource (step).

mod environments;
mod outputs;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use environments::{
    DeployedRevision, EnvironmentStatus, ValidationStatus, ValidationVerdict, WaitingRevision,
};

use crate::artifact::ArtifactReference;
use crate::condition::Condition;
use crate::runnable::RunResult;
use crate::texts::text_enum;

/// Why an owner is not Ready, in one line that a person can act on. Absent while it is Ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerSummary {
    /// Whether it goes on by itself.
    pub state: SummaryState,
    /// Name of the resource (step) that holds the owner back, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The object of that resource, as `<plural>[.<group>]/<name>`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Reason of the condition that says so.
    pub reason: String,
    /// Its message; cut after [`MOST_SUMMARY_CHARS`] characters.
    pub message: String,
    /// What to do about it; absent while there is nothing to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Since when state, step and reason are these; whole seconds.
    pub since: Time,
}

/// The most characters of a message in [`OwnerSummary`].
pub const MOST_SUMMARY_CHARS: usize = 512;

text_enum! {
    /// How it goes on with an owner that is not Ready.
    #[derive(Serialize, Deserialize)]
    pub enum SummaryState {
        /// By itself.
        Waiting,
        /// Not until somebody does something.
        Failing,
    }
}

/// The blueprint an owner was matched to. Only `kind` and `name` are written; serialises as `{}` when nothing matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BlueprintRef {
    /// Kind of the blueprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Never written: blueprints are cluster scoped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the blueprint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
}

impl BlueprintRef {
    /// A reference as controllers write it.
    ///
    /// ```
    /// use api_types::BlueprintRef;
    ///
    /// let reference = BlueprintRef::new("ClusterSupplyChain", "chain");
    /// assert_eq!(
    ///     serde_json::to_string(&reference)?,
    ///     r#"{"kind":"ClusterSupplyChain","name":"chain"}"#
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind: Some(kind.into()),
            name: Some(name.into()),
            ..Self::default()
        }
    }
}

/// One entry of `status.resources[]`: what a resource (step) of the blueprint came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ResourceStatus {
    /// Name of the resource (step) in the blueprint.
    pub name: String,
    /// The object that was last submitted; absent as long as none was, and for pass-through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stamped_ref: Option<StampedRef>,
    /// The template it was stamped from; absent for pass-through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<TemplateRef>,
    /// The resources whose outputs are taken, in the order sources, images, deployment, configs, dependsOn; duplicates
    /// kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputStatus>,
    /// What can be read now, in the order of the template kind. In JSON an output has no more than the identity of a provenance
    /// that is the same as that of the output before it.
    #[serde(with = "outputs", skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputStatus>,
    /// `ResourceSubmitted`, `Healthy` (if any), `Ready`, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What the object of a mutable template was when it was last applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedObject>,
    /// The objects of an immutable template that this resource (step) made, newest first; also those that somebody else
    /// deleted, as long as what they came to is needed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<StampedRun>,
    /// What is under way while the outputs are not current; absent where they are, and where the template does not say when
    /// its outputs are good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under_way: Option<UnderWay>,
    /// The updates of a resource (step) whose template waits with them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updates: Option<UpdateStack>,
    /// The Artifacts that keep outputs of the resource (step), the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ArtifactReference>,
}

/// What a mutable stamped object was when it was last applied, as the API server answered.
///
/// It stands in the owner's status and not on the object: whoever may edit a namespace may edit the object, but not the
/// status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AppliedObject {
    /// Uid of the object.
    pub uid: String,
    /// Digest of the rendering, and of the values that the API server then held in the fields that we own: 32 hexadecimal
    /// digits. Absent where a value comes from a Secret, because whoever reads it could try guesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// A digest of each value that the API server itself put beside these, of 16 hexadecimal digits. With others beside them
    /// somebody else has set fields. Only where the template says `foreignFields: Refuse`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Vec<String>>,
    /// Digest of the values alone, of 32 hexadecimal digits. Only where the template's rule compares some fields with what
    /// the object reports, and does not ask about its whole spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<String>,
    /// Digests of what the rule compares, of 32 hexadecimal digits. With these inputs the object held values of somebody else,
    /// and nothing tells from whose values it made what it reports. They stand here until it is good with other inputs or, with
    /// `observedMatches`, says that it has observed its present generation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubtful: Vec<String>,
    /// Digest of what the rule went by when the object was good, of 32 hexadecimal digits: what it reads on the object, and the
    /// versions of the other objects that it reads. As long as they are the same, those are not read again. Only where the rule
    /// reads other objects, and no value comes from a Secret. It may be older than the last time that it was good: to keep it up
    /// to date is no reason for a write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub good_by: Option<String>,
}

/// An object of an immutable template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StampedRun {
    /// Name of the object.
    pub name: String,
    /// Uid of the object.
    pub uid: String,
    /// Digest of its rendering; absent where that is not known, or a value comes from a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Position among the objects of the resource (step); the highest is the newest.
    pub sequence: u64,
    /// Digest of its rendering and of the values that the API server held in it when it was made: 32 hexadecimal digits.
    /// Absent where the template does not say when its outputs are good, and where a value comes from a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// A digest of each value that it held beside these then, of 16 hexadecimal digits; as [`AppliedObject::beside`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<Vec<String>>,
    /// What came of it; [`RunResult::Removed`] is never written here.
    pub result: RunResult,
    /// The values that were read from it, by the name of the output. Kept of the newest one that succeeded, and only where
    /// none comes from a Secret and all together are small.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub outputs: BTreeMap<String, Value>,
}

/// A stamped object: a core/v1 ObjectReference plus the plural resource.
///
/// In `stampedRef` only `api_version`, `kind`, `namespace`, `name` and `resource` are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StampedRef {
    /// `<group>/<version>`, or `<version>` for the core group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `<plural>` for the core group, otherwise `<plural>.<group>`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Uid of the object; written in `pendingRemovals` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Why the object is still there; written in `pendingRemovals` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `stampedRef.resource` when the plural of a kind cannot be found out.
pub const UNKNOWN_RESOURCE: &str =
    "could not fetch - see logs for 'failed to retrieve qualified resource name'";

/// A template: a core/v1 ObjectReference of which only `api_version`, `kind` and `name` are written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TemplateRef {
    /// Always [`crate::API_VERSION`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_path: Option<String>,
    /// Kind of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// Never written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

impl TemplateRef {
    /// A reference as controllers write it.
    ///
    /// ```
    /// use api_types::TemplateRef;
    ///
    /// let reference = TemplateRef::new("ClusterTemplate", "sink");
    /// assert_eq!(
    ///     serde_json::to_string(&reference)?,
    ///     r#"{"apiVersion":"carto.run/v1alpha1","kind":"ClusterTemplate","name":"sink"}"#
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            api_version: Some(crate::API_VERSION.to_owned()),
            kind: Some(kind.into()),
            name: Some(name.into()),
            ..Self::default()
        }
    }
}

/// An input of a resource (step).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct InputStatus {
    /// Name of the *resource* that provides the input, not the local input name.
    pub name: String,
}

/// An output that was read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OutputStatus {
    /// `url`, `revision`, `image` or `config`.
    pub name: String,
    /// The first 1024 bytes of the value as YAML.
    pub preview: String,
    /// `sha256:<hex>` of the whole value as YAML.
    pub digest: String,
    /// When the digest last changed; whole seconds.
    pub last_transition_time: Time,
    /// Whether the object, as it is rendered now, has it. Otherwise it is the last good one. Absent where the template does
    /// not say when its outputs are good, as are the fields that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<bool>,
    /// The value, which goes on downstream while there is no new one. Absent where it comes from a Secret, or the values of the
    /// resource (step) are larger than 8 KiB: then an Artifact may keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

/// What made an output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Provenance {
    /// By which the output is told from all others: a digest of its values and of all below but the time and the generation,
    /// and of what was rendered; 32 hexadecimal digits. One under the key of the installation where anything of that comes
    /// from a Secret; empty if there is no key.
    pub identity: String,
    /// When it was accepted; whole seconds.
    pub accepted: Time,
    /// The object that it was read from.
    pub object: ProvenanceObject,
    /// Digest of the template's spec.
    pub template: String,
    /// Digest of what the outputs of the template are and where they are read: with another one the value means something
    /// else.
    pub read_from: String,
    /// Digest of the parameters.
    pub params: String,
    /// The outputs that went into the rendering.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ProvenanceInput>,
    /// The fields of the object that others had set when the output was accepted, and that are not rendered: as its managed
    /// fields tell them, metadata and status aside, 16 at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign_fields: Vec<String>,
}

/// An object from which an output was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProvenanceObject {
    /// Its uid.
    pub uid: String,
    /// Its generation when the output was accepted, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

/// An output that went into a rendering.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProvenanceInput {
    /// Name of the *resource* that provides it.
    pub name: String,
    /// Identity of the output, or a digest of its values where nothing says what made them.
    pub identity: String,
}

/// The updates of a resource (step) whose template waits with them until the object is good or has failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStack {
    /// Number of the newest one. If it neither is applied nor waits, it has failed.
    pub newest: u64,
    /// Digest of the newest one: the next rendering with another digest is an update. Absent in status where it is the one that
    /// is applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_digest: Option<String>,
    /// Why the newest one failed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Digest of what the template reads on the object; with another one, the updates are forgotten.
    pub read_from: String,
    /// The one that the object is to hold.
    pub applied: Update,
    /// Those that wait, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Update>,
}

/// A rendering of a resource (step) that another one may overtake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    /// Its number in the order in which they came.
    pub number: u64,
    /// When it came or, of the one that is applied, since when it is; whole seconds.
    pub since: Time,
    /// By which it is told from others. One under the key of the installation where a value of a Secret goes in; empty if there
    /// is no key.
    pub digest: String,
    /// The object, as JSON, without namespace, owner reference and labels that the step puts on each. Absent where a value of a
    /// Secret goes in, or it is large: then what is rendered at the time is meant. Absent as well of the one that is applied,
    /// once the object is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendering: Option<String>,
    /// What it was rendered from.
    #[serde(default, skip_serializing_if = "UpdateBasis::is_nothing")]
    pub made_from: UpdateBasis,
}

/// What an update was rendered from. Template, parameters and inputs are absent in status of the update that is applied where
/// the [`Provenance`] of the outputs tells the same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdateBasis {
    /// Digest of the template's spec.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub template: String,
    /// Digest of the parameters.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub params: String,
    /// The outputs that went in.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ProvenanceInput>,
    /// What stood at the paths of `inputsOnStatus` in what the template sees.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, Value>,
    /// The deployment that went in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deployment: Option<UpdateDeployment>,
}

impl UpdateBasis {
    /// Whether it says nothing.
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A deployment that went into an update.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct UpdateDeployment {
    /// Where it comes from.
    pub url: Value,
    /// Its revision.
    pub revision: Value,
}

/// What a resource (step) works on while its outputs are not current.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnderWay {
    /// Since when its outputs are not current; whole seconds.
    pub since: Time,
    /// The outputs that it was rendered from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<ProvenanceInput>,
}
