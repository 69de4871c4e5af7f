//! Keys of the labels and annotations that are written on stamped objects.

/// Name of the Workload an object was stamped for.
pub const WORKLOAD_NAME: &str = "carto.run/workload-name";
/// Namespace of the Workload an object was stamped for.
pub const WORKLOAD_NAMESPACE: &str = "carto.run/workload-namespace";
/// Name of the ClusterSupplyChain that asked for the object.
pub const SUPPLY_CHAIN_NAME: &str = "carto.run/supply-chain-name";
/// Name of the Deliverable an object was stamped for.
pub const DELIVERABLE_NAME: &str = "carto.run/deliverable-name";
/// Namespace of the Deliverable an object was stamped for.
pub const DELIVERABLE_NAMESPACE: &str = "carto.run/deliverable-namespace";
/// Name of the ClusterDelivery that asked for the object.
pub const DELIVERY_NAME: &str = "carto.run/delivery-name";
/// Name of the blueprint's resource (step) the object belongs to.
pub const RESOURCE_NAME: &str = "carto.run/resource-name";
/// Kind of the template the object was stamped from.
pub const TEMPLATE_KIND: &str = "carto.run/template-kind";
/// Name of the template the object was stamped from.
pub const CLUSTER_TEMPLATE_NAME: &str = "carto.run/cluster-template-name";
/// Lifecycle of that template: `mutable`, `immutable` or `tekton`.
pub const TEMPLATE_LIFECYCLE: &str = "carto.run/template-lifecycle";
/// Name of the Runnable an object was stamped for.
pub const RUNNABLE_NAME: &str = "carto.run/runnable-name";
/// Name of the ClusterRunTemplate the object was stamped from.
pub const RUN_TEMPLATE_NAME: &str = "carto.run/run-template-name";

/// Annotation: `sha256:<hex>` of the rendering that produced the object (plus the rerun or retry token of a run).
///
/// It tells people, and it is a hint where a run may be that status does not know. Whoever may edit the object can
/// change it, so it decides nothing: the values of the object do.
pub const RENDERED_DIGEST: &str = "carto.run/rendered-digest";
/// Annotation: the decimal sequence number of a submission within its immutable family; the highest is the newest. It
/// orders only objects that status does not know.
pub const SUBMISSION: &str = "carto.run/submission";
/// Annotation: the `metadata.generation` of the owner for which an immutable object was submitted.
///
/// A process that has lost its leadership knows an older owner than its successor. A newer generation than it knows makes
/// it ask the API server whether that is so.
pub const OWNER_GENERATION: &str = "carto.run/owner-generation";
/// Annotation on the object of a ClusterDeploymentTemplate step with validations behind it: what is deployed, as compact JSON
/// `{"arrival", "revision", "url", "rendered", "started"}`.
///
/// It tells people; tenants can write it, so that nothing is decided by it but whether status has heard of it.
pub const ENVIRONMENT: &str = "carto.run/environment";
/// Annotation: the arrival number of the deployment that a mutable validation object validates.
pub const VALIDATES: &str = "carto.run/validates";
/// Annotation on an object that somebody else made: with value `true` it is taken over by the owner whose template renders
/// it, and deleted with that owner.
pub const ADOPT: &str = "carto.run/adopt";
/// Annotation on a cluster-scoped stamped object: its owner as `<Kind>/<namespace>/<name>/<uid>`. An owner reference to an
/// object in a namespace cannot be resolved there.
pub const OWNER: &str = "carto.run/owner";
/// Annotation on a cluster-scoped stamped object: the service account that stamped it as `<namespace>/<name>`, with whose
/// rights it is deleted once its owner is gone.
pub const SERVICE_ACCOUNT: &str = "carto.run/service-account";
/// Annotation on a Runnable: any text; another text than before starts a fresh run with the same inputs.
pub const RERUN_REQUESTED_AT: &str = "carto.run/rerun-requested-at";
/// Annotation on a Workload, Deliverable or Runnable that was stamped for an owner which was itself stamped: the owners above
/// that one, the first one first, as `<Kind>/<name>` with commas between. Whoever changes it can only seem to be deeper; how
/// deep an owner was found to be stays in its status.
pub const STAMPED_FOR: &str = "carto.run/stamped-for";
