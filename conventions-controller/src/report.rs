//! The last step: status, events, and when to look again.

use std::time::Duration;

use api_types::event::EventType;
use api_types::{ConditionStatus, EventReason};
use controller_kit::cluster::{RequestError, chain};
use controller_kit::events::InvolvedObject;
use controller_kit::jitter::random;
use controller_kit::process::Reconciled;
use controller_kit::scheduler::Next;
use controller_kit::stamped::ObjectKey;
use controller_kit::status::{Unwritten, Written};
use conventions::condition::{CONVENTIONS_SETTLED, without_trouble};
use conventions::considered::UNSETTLED;
use conventions::outcome::{Failure, Pass, say_the_same, status_after};
use conventions::{PodIntent, PodIntentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::Value;
use tracing::{debug, error};

use crate::again::{Again, rest};
use crate::controller::{IntentController, ready_in};
use crate::entries::{content, said};
use crate::kept::MadePass;
use crate::log;

/// How long at the most before a status is written again that the API server could not take.
const SOON: Duration = Duration::from_secs(20);

/// The PodIntent that is reported on.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'i> {
    pub(crate) key: &'i ObjectKey,
    pub(crate) intent: &'i PodIntent,
    /// A digest of all that it said but its status.
    pub(crate) content: u64,
    /// Its status.
    pub(crate) before: &'i PodIntentStatus,
}

impl Subject<'_> {
    pub(crate) fn uid(&self) -> &str {
        self.intent.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn generation(&self) -> i64 {
        self.intent.metadata.generation.unwrap_or_default()
    }
}

/// What a reconcile came to.
pub(crate) struct Finding {
    after: PodIntentStatus,
    failure: Option<Failure>,
    /// When what was left out, or failed, is tried again.
    again: Again,
}

/// A finding that stands in the status.
struct Reported {
    finding: Finding,
    /// Whether nobody has changed the PodIntent since it was read.
    is_the_latest: bool,
}

impl IntentController {
    /// Reports that the status still stands, for this generation too.
    pub(crate) async fn report_again(&self, of: Subject<'_>) -> Reconciled {
        let after = PodIntentStatus {
            observed_generation: Some(of.generation()),
            conditions: without_trouble(&of.before.conditions),
            ..of.before.clone()
        };
        let finding = Finding {
            after,
            failure: None,
            again: Again::Backoff,
        };
        match self.report(of, finding).await {
            Ok(reported) => self.conclude(of, &reported),
            Err(error) => self.not_written(of, &error),
        }
    }

    /// Reports on a pass. If the API server cannot write its status, it is kept for the next try.
    pub(crate) async fn report_pass(&self, of: Subject<'_>, made: MadePass) -> Reconciled {
        let finding = Finding {
            again: made.again,
            ..self.finding(of, made.pass.clone())
        };
        match self.report(of, finding).await {
            Ok(reported) => {
                self.kept.forget(of.key);
                // Before it is said how long it rests.
                self.resynced(of.key, &made.pass);
                self.conclude(of, &reported)
            }
            Err(error) => {
                if matches!(Unwritten::of(&error), Unwritten::Prevented { .. }) {
                    self.kept.keep(of.key, made);
                }
                self.not_written(of, &error)
            }
        }
    }

    /// What follows from a pass.
    fn finding(&self, of: Subject<'_>, pass: Pass) -> Finding {
        let now = Time((self.clock)());
        Finding {
            failure: pass.outcome.as_ref().err().cloned(),
            after: status_after(of.before, of.generation(), pass, &now),
            again: Again::Backoff,
        }
    }

    /// Writes the status if it says anything new, and sends the events. Of what is too large to be
    /// stored it is said that it is.
    async fn report(&self, of: Subject<'_>, finding: Finding) -> Result<Reported, RequestError> {
        match self.tell_news(of, &finding.after).await {
            Err(error) if error.is_too_large() => {
                let failure = Failure::too_large(&error.to_string());
                let less = self.finding(of, Pass::failed(failure, of.before));
                Ok(Reported {
                    is_the_latest: self.tell_news(of, &less.after).await?,
                    finding: less,
                })
            }
            told => Ok(Reported {
                is_the_latest: told?,
                finding,
            }),
        }
    }

    /// Writes the status if it says anything new, and sends the events. Whether nobody has changed
    /// the PodIntent since it was read.
    pub(crate) async fn tell_news(
        &self,
        of: Subject<'_>,
        after: &PodIntentStatus,
    ) -> Result<bool, RequestError> {
        if say_the_same(of.before, after) {
            return Ok(true);
        }
        log::updating(of.before, after);
        let content = self.write(of.key, of.uid(), after).await?;
        let involved = Self::involved(of.key, of.uid());
        let updated = "Updated status";
        self.tell_event(&involved, EventReason::StatusUpdated, updated);
        self.tell_of_conventions(&involved, of.before, after);
        log::ready(of.before, after);
        Ok(content == of.content)
    }

    /// Writes the status. Returns a digest of all else that the object says then.
    async fn write(
        &self,
        key: &ObjectKey,
        uid: &str,
        status: &PodIntentStatus,
    ) -> Result<u64, RequestError> {
        let status = serde_json::to_value(status).unwrap_or(Value::Null);
        self.written.lock().insert(key.clone(), said(&status));
        let object = Written {
            namespace: Some(&key.namespace),
            name: &key.name,
            uid,
        };
        let written = self.statuses.write(object, &status, None).await;
        log::updated(&written);
        let written = written?;
        let content = content(&written);
        self.stores.intents.overlay(written);
        // The event of it is no change any more.
        self.counts_changed.notify_one();
        Ok(content)
    }

    fn not_written(&self, of: Subject<'_>, error: &RequestError) -> Reconciled {
        match Unwritten::of(error) {
            Unwritten::Gone => Reconciled::gone(Next::Done),
            // No event tells when the API server is well again.
            Unwritten::Prevented {
                asked: Duration::ZERO,
            } => Reconciled::new(Next::BackoffWithin(SOON), "infrastructure"),
            Unwritten::Prevented { asked } => rest(asked),
            Unwritten::Refused => {
                error!(error = %chain(error), "status not written");
                let message = format!("Failed to update status: {}", chain(error));
                let involved = Self::involved(of.key, of.uid());
                self.tell_event(&involved, EventReason::StatusUpdateFailed, &message);
                Reconciled::new(Next::Backoff, "infrastructure")
            }
        }
    }

    /// When to look again: at once if somebody has changed the PodIntent since it was read.
    fn conclude(&self, of: Subject<'_>, reported: &Reported) -> Reconciled {
        if reported.is_the_latest {
            return self.next(of.key, &reported.finding);
        }
        // The store holds the reply now, so the event of that change will wake nobody.
        debug!("changed while it was reconciled");
        Reconciled::new(Next::After(Duration::ZERO), "settled")
    }

    fn next(&self, key: &ObjectKey, finding: &Finding) -> Reconciled {
        let failure = finding.failure.as_ref();
        match failure {
            Some(failure) if is_tried_again(failure) => {
                Reconciled::new(finding.again.next(random), "user_error")
            }
            // No event tells of a right that is granted.
            Some(Failure::Forbidden { .. }) => Reconciled::new(Next::Slow, "user_error"),
            // Somebody was left out, who may be well again.
            None if finding.after.inputs_digest.is_empty() => {
                Reconciled::new(finding.again.next(random), "unhealthy")
            }
            _ => {
                let next = self.resync.wait(key).map_or(Next::Done, Next::After);
                let end = if failure.is_some() {
                    "user_error"
                } else {
                    "settled"
                };
                Reconciled::new(next, end)
            }
        }
    }

    /// A pass has been made: when the next one is due that nothing asks for. One that never settles
    /// has longer rests.
    pub(crate) fn resynced(&self, key: &ObjectKey, pass: &Pass) {
        let changes = pass.conventions.iter().map(|it| it.changes).max();
        let beyond = changes.unwrap_or_default() - UNSETTLED + 1;
        self.resync
            .done(key, u32::try_from(beyond).unwrap_or_default());
    }

    fn tell_event(&self, involved: &InvolvedObject, reason: EventReason, message: &str) {
        let is_warning = reason.event_type() == EventType::Warning;
        self.events
            .record(involved.clone(), is_warning, reason.as_str(), message);
    }

    /// Tells whom a chain went on without, once for each reason; and who never settles.
    fn tell_of_conventions(
        &self,
        involved: &InvolvedObject,
        before: &PodIntentStatus,
        after: &PodIntentStatus,
    ) {
        let warn = |reason, message: &str| self.tell_event(involved, reason, message);
        let known = |name: &str| before.conventions.iter().find(|it| it.name == name);
        for told in after.conventions.iter().filter(|it| !it.error.is_empty()) {
            let is_news = known(&told.name).is_none_or(|it| it.error != told.error);
            if is_news && ready_in(after) == ConditionStatus::True {
                let what = if !after.inputs_digest.is_empty() {
                    // It was applied, and says why it did nothing.
                    "convention"
                } else if after.template_inputs_digest.is_empty() {
                    "went on without convention"
                } else {
                    "kept the template that was made with convention"
                };
                let message = format!("{what} {}: {}", told.name, told.error);
                warn(EventReason::ConventionIgnored, &message);
            }
        }
        let settles = |it: &&api_types::Condition| it.type_ == CONVENTIONS_SETTLED;
        if let Some(told) = after.conditions.iter().find(settles)
            && !before.conditions.iter().any(|it| it.says_the_same_as(told))
        {
            warn(EventReason::ConventionUnstable, &told.message);
        }
    }
}

/// Whether it may be over without anything that is watched having changed.
fn is_tried_again(failure: &Failure) -> bool {
    match failure {
        Failure::Images { .. } | Failure::Webhook { .. } | Failure::NotStorable { .. } => true,
        Failure::CaBundle { .. }
        | Failure::Credentials { .. }
        | Failure::Forbidden { .. }
        | Failure::Selection(_)
        | Failure::Unreadable { .. }
        | Failure::TooLarge(_) => false,
    }
}

#[cfg(test)]
mod tests;
