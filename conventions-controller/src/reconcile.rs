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
use conventions::PodIntent;
use conventions::outcome::{has_good, stands};
use tracing::{Instrument as _, debug, error_span, warn};

use crate::controller::IntentController;
use crate::fault::Stop;
use crate::kept::MadePass;
use crate::plan::Plan;
use crate::report::Subject;

impl IntentController {
    /// Reconciles one PodIntent. Nothing is sent when nothing changed.
    pub(crate) async fn reconcile(&self, key: &ObjectKey) -> Reconciled {
        let span = error_span!("reconcile", podintent = %key);
        self.has_begun.store(true, Ordering::Release);
        self.begin_term();
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
        let of = Subject {
            key,
            intent,
            content,
            before: &before,
        };
        let made = match self.plan(key, intent).await {
            Ok(plan) => {
                if let Some(kept) = self.kept.get(key, of.uid(), &plan.inputs_digest) {
                    self.troubles.ended(key);
                    return self.report_pass(of, kept).await;
                }
                if stands(&before, &plan.inputs_digest) && !self.resync.is_due(key) {
                    self.troubles.ended(key);
                    self.rollout.first_look(key, false);
                    return self.report_again(of).await;
                }
                let had_enough = has_good(&before, of.generation());
                if let Some(wait) = self.rollout.first_look(key, had_enough) {
                    return Reconciled::new(Next::After(wait), "waiting");
                }
                self.pass(of, plan).await
            }
            Err(stop) => Err(stop),
        };
        if !matches!(made, Err(Stop::Fault(_))) {
            self.troubles.ended(key);
        }
        match made {
            Ok(made) => self.report_pass(of, made).await,
            Err(Stop::Failure(failure)) => {
                let made = MadePass::unasked(of, failure);
                self.report_pass(of, made).await
            }
            Err(Stop::Fault(fault)) => self.bear(of, &fault).await,
            // It is woken when the webhook answers, and looks again if nobody else asks.
            Err(Stop::PutOff) => Reconciled::new(Next::Backoff, "unhealthy"),
        }
    }

    async fn pass(&self, of: Subject<'_>, plan: Plan) -> Result<MadePass, Stop> {
        let inputs_digest = plan.inputs_digest.clone();
        let (pass, again) = self.realize(of, plan).await?;
        Ok(MadePass {
            uid: of.uid().to_owned(),
            inputs_digest,
            pass,
            again,
        })
    }
}
