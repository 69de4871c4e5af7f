//! Passes that something is in the way of that nobody can mend who reads the status: mostly the API
//! server, which is asked too much or does not answer.
//!
//! That is over in a moment as a rule, so nothing is said for half a minute. What lasts longer has
//! a condition of its own; all others stay what they were.

use std::collections::HashMap;
use std::time::Duration;

use controller_kit::cluster::chain;
use controller_kit::process::Reconciled;
use controller_kit::stamped::ObjectKey;
use conventions::PodIntentStatus;
use conventions::condition::while_unreadable;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::debug;

use crate::again::bear;
use crate::controller::IntentController;
use crate::fault::Fault;
use crate::report::Subject;

/// How long nothing is said. About six tries fall into it.
const BORNE: Duration = Duration::from_secs(30);

/// Since when the passes over PodIntents meet trouble.
#[derive(Default)]
pub(crate) struct Troubles(Mutex<HashMap<ObjectKey, Instant>>);

impl Troubles {
    /// A pass met some. Whether that has lasted so long that it is told.
    fn met(&self, intent: &ObjectKey) -> bool {
        let mut since = self.0.lock();
        let since = since.entry(intent.clone()).or_insert_with(Instant::now);
        since.elapsed() >= BORNE
    }

    /// A pass met none, or there will be no other.
    pub(crate) fn ended(&self, intent: &ObjectKey) {
        self.0.lock().remove(intent);
    }

    /// Another replica has worked meanwhile.
    pub(crate) fn begin_term(&self) {
        self.0.lock().clear();
    }
}

impl IntentController {
    /// What was needed could not be had: it is tried again. If it lasts it is told, but for files of
    /// our own, of which nobody has to know.
    pub(crate) async fn bear(&self, of: Subject<'_>, fault: &Fault) -> Reconciled {
        let is_told = matches!(fault, Fault::Secret { .. } | Fault::Presets(_));
        if self.troubles.met(of.key) && is_told {
            let now = Time((self.clock)());
            let after = PodIntentStatus {
                conditions: while_unreadable(&of.before.conditions, &chain(fault), &now),
                ..of.before.clone()
            };
            if let Err(error) = self.tell_news(of, &after).await {
                debug!(error = %chain(&error), "what is in the way cannot be told either");
            }
        }
        bear(fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_over_in_half_a_minute_is_told_to_nobody() {
        let (troubles, key) = (Troubles::default(), ObjectKey::new("dev", "app"));
        assert!(!troubles.met(&key));
        tokio::time::advance(BORNE / 2).await;
        assert!(!troubles.met(&key));
        tokio::time::advance(BORNE / 2).await;
        assert!(troubles.met(&key));
        assert!(!troubles.met(&ObjectKey::new("dev", "other")));
        troubles.ended(&key);
        assert!(!troubles.met(&key));
        tokio::time::advance(BORNE).await;
        troubles.begin_term();
        assert!(!troubles.met(&key));
    }
}
