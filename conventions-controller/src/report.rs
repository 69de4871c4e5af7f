//! The last step: status, events, and when to look again.

use std::time::Duration;

use api_types::ConditionStatus;
use controller_kit::cluster::{RequestError, chain};
use controller_kit::events::InvolvedObject;
use controller_kit::process::Reconciled;
use controller_kit::scheduler::Next;
use controller_kit::stamped::ObjectKey;
use controller_kit::status::{Unwritten, Written};
use conventions::condition::CONVENTIONS_SETTLED;
use conventions::considered::UNSETTLED;
use conventions::outcome::{Failure, Pass, say_the_same};
use conventions::{PodIntent, PodIntentStatus};
use serde_json::Value;
use tracing::{debug, error, info, warn};

use crate::controller::{IntentController, ready_in};
use crate::entries::{content, said};
use crate::fault::Fault;

/// How long it is waited after the API server could not, when it does not say.
const REST: Duration = Duration::from_secs(1);

impl IntentController {
    /// Writes the status if it says anything new, sends the events, and says when to look again:
    /// at once where somebody has changed the PodIntent since this `content` of it was read.
    pub(crate) async fn report(
        &self,
        key: &ObjectKey,
        (intent, content): (&PodIntent, u64),
        before: &PodIntentStatus,
        after: PodIntentStatus,
        failure: Option<Failure>,
    ) -> Reconciled {
        let mut is_the_latest = true;
        if !say_the_same(before, &after) {
            let uid = intent.metadata.uid.as_deref().unwrap_or_default();
            match self.write(key, uid, &after).await {
                Ok(written) => is_the_latest = written == content,
                Err(error) => return self.not_written(key, uid, &error),
            }
            self.events.record(
                Self::involved(key, uid),
                false,
                "StatusUpdated",
                "Updated status",
            );
            self.tell_of_conventions(&Self::involved(key, uid), before, &after);
            tell(before, &after);
        }
        if is_the_latest {
            self.next(key, &after, failure.as_ref())
        } else {
            // The store holds the reply now, so the event of that change will wake nobody.
            debug!("changed while it was reconciled");
            Reconciled::new(Next::After(Duration::ZERO), "settled")
        }
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
        let written = self.statuses.write(object, &status, None).await?;
        let content = content(&written);
        self.stores.intents.overlay(written);
        Ok(content)
    }

    fn not_written(&self, key: &ObjectKey, uid: &str, error: &RequestError) -> Reconciled {
        match Unwritten::of(error) {
            Unwritten::Gone => Reconciled::gone(Next::Done),
            Unwritten::Prevented { asked } => rest(asked),
            Unwritten::Refused => {
                error!(error = %chain(error), "status not written");
                let message = format!("Failed to update status: {}", chain(error));
                let involved = Self::involved(key, uid);
                self.events
                    .record(involved, true, "StatusUpdateFailed", &message);
                Reconciled::new(Next::Backoff, "infrastructure")
            }
        }
    }

    fn next(
        &self,
        key: &ObjectKey,
        after: &PodIntentStatus,
        failure: Option<&Failure>,
    ) -> Reconciled {
        match failure {
            Some(failure) if is_tried_again(failure) => {
                Reconciled::new(Next::Backoff, "user_error")
            }
            // Somebody was left out, who may be well again.
            None if after.inputs_digest.is_empty() => Reconciled::new(Next::Backoff, "unhealthy"),
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

    /// Tells whom a chain went on without, once for each reason; and who never settles.
    fn tell_of_conventions(
        &self,
        involved: &InvolvedObject,
        before: &PodIntentStatus,
        after: &PodIntentStatus,
    ) {
        let warn = |reason: &str, message: &str| {
            self.events.record(involved.clone(), true, reason, message);
        };
        let known = |name: &str| before.conventions.iter().find(|it| it.name == name);
        for told in after.conventions.iter().filter(|it| !it.error.is_empty()) {
            let is_news = known(&told.name).is_none_or(|it| it.error != told.error);
            if is_news && ready_in(after) == ConditionStatus::True {
                let message = format!("went on without convention {}: {}", told.name, told.error);
                warn("ConventionIgnored", &message);
            }
        }
        let settles = |it: &&api_types::Condition| it.type_ == CONVENTIONS_SETTLED;
        if let Some(told) = after.conditions.iter().find(settles)
            && !before.conditions.iter().any(|it| it.says_the_same_as(told))
        {
            warn("ConventionUnstable", &told.message);
        }
    }
}

/// The API server did not carry out what was needed: nothing is said, and it is tried again.
pub(crate) fn bear(fault: &Fault) -> Reconciled {
    warn!(error = %chain(fault), "not reconciled");
    match fault.error.retry_after() {
        Some(asked) => rest(asked),
        None => Reconciled::new(Next::Backoff, "infrastructure"),
    }
}

fn rest(asked: Duration) -> Reconciled {
    let wait = asked.max(REST);
    let next = Next::Rest { hold: asked, wait };
    Reconciled::new(next, "infrastructure")
}

/// Whether it may be over without anything that is watched having changed.
fn is_tried_again(failure: &Failure) -> bool {
    match failure {
        Failure::Images { .. } | Failure::Webhook { .. } | Failure::NotStorable { .. } => true,
        Failure::CaBundle { .. }
        | Failure::Credentials { .. }
        | Failure::Selection(_)
        | Failure::TooLarge(_) => false,
    }
}

/// Tells what is new about Ready.
fn tell(before: &PodIntentStatus, after: &PodIntentStatus) {
    let ready = after
        .conditions
        .iter()
        .find(|it| it.is(api_types::ConditionType::Ready));
    let Some(ready) = ready else { return };
    if before
        .conditions
        .iter()
        .any(|it| it.says_the_same_as(ready))
    {
        return;
    }
    let (reason, message) = (&*ready.reason, &*ready.message);
    match ready_in(after) {
        ConditionStatus::True => info!(reason, "ready"),
        ConditionStatus::False | ConditionStatus::Unknown => {
            info!(reason, "handled error" = message, "not ready");
        }
    }
}

#[cfg(test)]
mod tests;
