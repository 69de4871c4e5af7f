//! Runnables: an object that is created anew whenever what it is rendered from changes
//! (docs/behaviour/runnables.md#runs).
//!
//! ```text
//!  Runnable ────┐                ┌─▶ Ask::Render ─▶ Ask::Look ─▶ which attempt is the newest run? ─┐
//!  RunTemplate ─┼─▶ Run ─────────┤                                                                 │
//!  selected ────┘   next()       └─▶ Ask::Submit ◀── start, keep, or hold ◀────────────────────────┘
//!                        │ Done
//!                        ▼
//!                   conclude() ─▶ RunConclusion ─▶ removals() ─▶ report(failed) ─▶ Outcome
//! ```
//!
//! A run is known by the digest of its rendering, of the number of its attempt and of the request for a rerun. Which
//! attempt the newest run is follows from its digest alone: nothing is remembered, and a restart starts nothing.

mod attempt;
mod conclusion;
mod error;
mod history;
mod plan;
mod run;
mod run_template;
mod selection;
mod submission;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use api_types::duration::parse_duration;
use api_types::names::{NamespaceName, ObjectName};
use api_types::runnable::{
    Concurrency, MOST_ATTEMPTS, ResourceSelector, RetryPolicy, RunTemplateReference, RunnableStatus,
};
use api_types::{ConditionStatus, RetentionPolicy, labels};
use serde_json::Value;

use crate::ObjectRef;
use crate::owner::Identity;
use crate::owner::lineage;
use crate::owner::owner_status::{object_ref, part};
use crate::owner::typed_view::Views;
use crate::owner::{self, Head, OwnerError, optional};
use crate::status::report;

pub use conclusion::{RunConclusion, report_not_run};
pub use error::NotRun;
pub use run::{Run, Selected};
pub use run_template::{RunTemplate, RunTemplateError};
pub use selection::SelectError;

/// Kind of a Runnable; also the `source.component` of its events.
pub const KIND: &str = "Runnable";

/// How long after its end a failed run is tried again, if the Runnable does not say.
const DEFAULT_BACKOFF: Duration = Duration::from_secs(10);

/// A Runnable, parsed once per resourceVersion.
#[derive(Clone, Debug)]
pub struct Runnable {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: ObjectName,
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.generation`; 0 when absent.
    pub generation: i64,
    /// Name of the ClusterRunTemplate.
    pub run_template: String,
    /// Which object the template may read.
    pub selector: Option<ResourceSelector>,
    /// The owners that led to this one, the first one first.
    pub stamped_for: Vec<String>,
    service_account_name: Option<String>,
    retention: RetentionPolicy,
    /// How many runs there are for the same inputs at the most.
    attempts: u32,
    backoff: Duration,
    concurrency: Concurrency,
    /// What runs are made for: the annotation, or if it is gone, what it last was.
    rerun: Option<String>,
    status: RunnableStatus,
    object: Arc<Value>,
    views: OnceLock<Views>,
}

impl Runnable {
    /// Reads a Runnable.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use realizer::runnable::Runnable;
    ///
    /// let object = serde_json::json!({
    ///     "apiVersion": "carto.run/v1alpha1", "kind": "Runnable",
    ///     "metadata": {"namespace": "dev", "name": "test", "uid": "u-1"},
    ///     "spec": {"runTemplateRef": {"name": "unit-tests"}},
    /// });
    /// let runnable = Runnable::parse(Arc::new(object))?;
    /// assert_eq!(runnable.run_template, "unit-tests");
    /// assert_eq!(runnable.service_account("default"), ("dev", "default"));
    /// # Ok::<(), realizer::OwnerError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`OwnerError`] when the object is not one an API server would hold. A status that cannot be read is no error:
    /// it counts as empty and is written anew.
    pub fn parse(object: Arc<Value>) -> Result<Self, OwnerError> {
        let head = Head::of(&object)?;
        let reference: RunTemplateReference =
            optional(&object, "/spec/runTemplateRef", "spec.runTemplateRef")?;
        let retry: Option<RetryPolicy> = optional(&object, "/spec/retry", "spec.retry")?;
        let concurrency: Option<Concurrency> =
            optional(&object, "/spec/concurrency", "spec.concurrency")?;
        let status = read_status(object.get("status"));
        let requested = object["metadata"]["annotations"][labels::RERUN_REQUESTED_AT].as_str();
        Ok(Self {
            namespace: head.namespace,
            name: head.name,
            uid: head.uid,
            generation: head.generation,
            run_template: reference.name,
            selector: optional(&object, "/spec/selector", "spec.selector")?,
            stamped_for: lineage::stamped_for(&object),
            service_account_name: owner::text(&object, "/spec/serviceAccountName")
                .filter(|name| !name.is_empty()),
            retention: optional(&object, "/spec/retentionPolicy", "spec.retentionPolicy")?,
            attempts: retry
                .as_ref()
                .map_or(1, |retry| retry.max_attempts.clamp(1, MOST_ATTEMPTS)),
            backoff: retry
                .and_then(|retry| parse_duration(&retry.backoff?))
                .unwrap_or(DEFAULT_BACKOFF),
            concurrency: concurrency.unwrap_or_default(),
            rerun: requested
                .map(str::to_owned)
                .or_else(|| status.last_rerun_requested_at.clone()),
            status,
            views: OnceLock::new(),
            object,
        })
    }

    /// The object as the API server holds it.
    pub fn object(&self) -> &Value {
        &self.object
    }

    /// Namespace and name of the ServiceAccount whose rights are used; `default` where it names none
    /// (docs/behaviour/service-accounts.md#which).
    pub fn service_account<'s>(&'s self, default: &'s str) -> (&'s str, &'s str) {
        let name = self.service_account_name.as_deref().unwrap_or(default);
        (self.namespace.as_str(), name)
    }

    /// The object `status.stampedRef` names.
    pub fn previous_refs(&self) -> Vec<ObjectRef> {
        let stamped = self.status.stamped_ref.as_ref();
        stamped.and_then(object_ref).into_iter().collect()
    }

    /// Whether it is being deleted; nothing should be run for it any more.
    pub fn is_terminating(&self) -> bool {
        owner::is_terminating(&self.object)
    }

    /// Status of condition `Ready` in the present status; `Unknown` when there is none.
    pub fn status_ready(&self) -> ConditionStatus {
        report::ready(&self.status.conditions).0
    }

    fn identity(&self) -> Identity<'_> {
        Identity {
            kind: KIND,
            namespace: &self.namespace,
            name: &self.name,
            uid: &self.uid,
        }
    }

    /// How templates see it; built on first use.
    fn views(&self) -> &Views {
        self.views.get_or_init(|| Views::of_runnable(&self.object))
    }
}

/// Reads a status; a part that does not have its shape counts as empty.
fn read_status(status: Option<&Value>) -> RunnableStatus {
    let Some(status) = status else {
        return RunnableStatus::default();
    };
    RunnableStatus {
        observed_generation: part(status, "observedGeneration"),
        conditions: part(status, "conditions"),
        outputs: part(status, "outputs"),
        stamped_ref: part(status, "stampedRef"),
        runs: part(status, "runs"),
        last_rerun_requested_at: part(status, "lastRerunRequestedAt"),
        stamped_for: part(status, "stampedFor"),
    }
}

#[cfg(test)]
mod tests;
