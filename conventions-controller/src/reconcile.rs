//! The reconcile of one PodIntent.
//!
//! ```text
//! dereference ─▶ plan ─▶ (same inputs, and the last outcome was good: nothing) ─▶ realize ─▶ report
//!  (caches)     (caches)                                                         (requests)  (status, events)
//! ```

use std::sync::atomic::Ordering;

use controller_kit::process::Reconciled;
use controller_kit::scheduler::Next;
use controller_kit::stamped::ObjectKey;
use conventions::outcome::{Pass, stands, status_after};
use conventions::{PodIntent, PodIntentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use tracing::{Instrument as _, debug, error_span, warn};

use crate::controller::IntentController;
use crate::fault::Stop;
use crate::report::bear;

impl IntentController {
    /// Reconciles one PodIntent. Nothing is sent when nothing changed.
    pub(crate) async fn reconcile(&self, key: &ObjectKey) -> Reconciled {
        let span = error_span!("reconcile", podintent = %key);
        self.has_begun.store(true, Ordering::Release);
        let reconciling = async {
            let Some((intent, content)) = self.dereference(key) else {
                self.forget(key);
                return Reconciled::gone(Next::Done);
            };
            let reconciled = self.decorate(key, &intent, content).await;
            if self.stores.intents.get(key).is_none() {
                self.forget(key);
            }
            let version = intent.metadata.resource_version.as_deref();
            debug!(
                version,
                held_back = false,
                end = reconciled.outcome(),
                "reconciled"
            );
            reconciled
        };
        reconciling.instrument(span).await
    }

    /// The PodIntent as it is stored, and a digest of all but its status; nothing when it is gone, on its way out, or cannot be read.
    fn dereference(&self, key: &ObjectKey) -> Option<(PodIntent, u64)> {
        let entry = self.stores.intents.get(key)?;
        match entry.intent() {
            Ok(intent) if intent.metadata.deletion_timestamp.is_some() => None,
            Ok(intent) => Some((intent, entry.content)),
            Err(error) => {
                warn!(error = %error, "this object cannot be read and is left alone; correct or delete it");
                None
            }
        }
    }

    async fn decorate(&self, key: &ObjectKey, intent: &PodIntent, content: u64) -> Reconciled {
        let before = intent.status.clone().unwrap_or_default();
        let generation = intent.metadata.generation.unwrap_or_default();
        let pass = match self.plan(key, intent).await {
            Ok(plan) if stands(&before, &plan.inputs_digest) && !self.resync.is_due(key) => {
                let after = PodIntentStatus {
                    observed_generation: Some(generation),
                    ..before.clone()
                };
                return self
                    .report(key, (intent, content), &before, after, None)
                    .await;
            }
            Ok(plan) => self.realize(key, intent, &before, plan).await,
            Err(Stop::Failure(failure)) => Ok(Pass::failed(failure, &before)),
            Err(Stop::Fault(fault)) => Err(fault),
        };
        let pass = match pass {
            Ok(pass) => pass,
            Err(fault) => return bear(&fault),
        };
        let failure = pass.outcome.as_ref().err().cloned();
        self.resynced(key, &pass);
        let now = Time((self.clock)());
        let after = status_after(&before, generation, pass, &now);
        self.report(key, (intent, content), &before, after, failure)
            .await
    }
}
