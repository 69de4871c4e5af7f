//! CRD types, conditions, reasons and pure validation of `carto.run/v1alpha1`.
//!
//! Everything here is data and arithmetic on data: no clock, no environment, no files, no network, no async runtime.
//! What the API server, the engine, the controllers and the CLI must agree on is written once, here:
//!
//! ```text
//!  owner kinds          blueprint kinds                 template kinds                      runs
//!  workload.rs ───────▶ supply_chain.rs ┐               templates.rs ──▶ ClusterRunTemplate runnable.rs
//!  deliverable.rs ────▶ delivery.rs     ┴▶ blueprint.rs (one TemplateSpec for all)
//!
//!  kept outputs: artifact.rs
//!  shared: params.rs source.rs selector.rs status.rs condition.rs event.rs labels.rs names.rs
//!  what the API server is told: schema.rs (CRDs), validation.rs (admission)
//! ```
//!
//! - A *typed kind* mirrors the JSON of one CRD: names in camelCase, absent lists and maps as empty, unknown fields
//!   ignored (the API server prunes them). A JSON `null` in a field that takes any JSON is a value, never "absent".
//! - Condition types and reasons exist only in [`condition`], event reasons only in [`event`], label and annotation
//!   keys only in [`labels`].
//! - Typed kinds hold names as plain texts, since etcd may hold anything; the checked types are in [`names`].
//!
//! ```
//! use api_types::Workload;
//!
//! let workload: Workload = serde_json::from_str(
//!     r#"{"apiVersion":"carto.run/v1alpha1","kind":"Workload","metadata":{"name":"app"},
//!         "spec":{"source":{"git":{"url":"https://git.example/app"}}}}"#,
//! )?;
//! let git = workload.spec.source.and_then(|source| source.git);
//! assert_eq!(git.and_then(|git| git.url).as_deref(), Some("https://git.example/app"));
//! # Ok::<(), serde_json::Error>(())
//! ```

pub mod artifact;
pub mod blueprint;
pub mod condition;
mod custom_resource;
pub mod deliverable;
pub mod delivery;
pub mod duration;
pub mod event;
mod json_any;
pub mod labels;
pub mod names;
pub mod params;
pub mod runnable;
pub mod schema;
pub mod selector;
pub mod source;
pub mod status;
pub mod supply_chain;
pub mod templates;
mod texts;
pub mod validation;
pub mod vocabulary;
pub mod workload;

pub use artifact::{Artifact, ArtifactOutput, ArtifactOwner, ArtifactReference, ArtifactSpec};
pub use blueprint::{
    BlueprintArtifacts, BlueprintResource, BlueprintSpec, BlueprintStatus, DeclaredInput,
    InputReference, InputSlot, StepDependency, TemplateOption, TemplateReference,
};
pub use condition::{Condition, ConditionStatus, ConditionType, Reason};
pub use deliverable::{Deliverable, DeliverableSpec, DeliverableStatus};
pub use delivery::{ClusterDelivery, ClusterDeliverySpec};
pub use event::EventReason;
pub use names::{LabelValue, NameError, NamespaceName, ObjectName, ResourceName};
pub use params::{BlueprintParam, OwnerParam, ParamSetting, TemplateParam};
pub use runnable::{
    ClusterRunTemplate, ClusterRunTemplateSpec, Runnable, RunnableSpec, RunnableStatus,
};
pub use schema::crds;
pub use selector::{FieldOperator, FieldRequirement, LabelRequirement, LabelSelector, Selector};
pub use source::{GitRef, GitSource, Source};
pub use status::{
    AppliedObject, BlueprintRef, DeployedRevision, EnvironmentStatus, InputStatus, OutputStatus,
    OwnerSummary, Provenance, ProvenanceInput, ProvenanceObject, ResourceStatus, StampedRef,
    StampedRun, SummaryState, TemplateRef, UnderWay, Update, UpdateBasis, UpdateDeployment,
    UpdateStack, ValidationStatus, ValidationVerdict, WaitingRevision,
};
pub use supply_chain::{ClusterSupplyChain, ClusterSupplyChainSpec};
pub use templates::{
    ClusterConfigTemplate, ClusterConfigTemplateSpec, ClusterDeploymentTemplate,
    ClusterDeploymentTemplateSpec, ClusterDeploymentValidationTemplate,
    ClusterDeploymentValidationTemplateSpec, ClusterImageTemplate, ClusterImageTemplateSpec,
    ClusterSourceTemplate, ClusterSourceTemplateSpec, ClusterTemplate, ClusterTemplateSpec,
    HealthRule, Lifecycle, RetentionPolicy, Template, TemplateKind, TemplateSpec,
};
pub use workload::{Workload, WorkloadSpec, WorkloadStatus};

/// The API group of every kind in this crate.
pub const GROUP: &str = "carto.run";
/// The only version of the group.
pub const VERSION: &str = "v1alpha1";
/// `<group>/<version>`, as objects write it in `apiVersion`.
pub const API_VERSION: &str = "carto.run/v1alpha1";
