//! What the API server refused for what it is: too large, or invalid. It is not sent again as long as nothing changed that
//! could make a difference; a rendering of megabytes would go over the wire with every retry.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use realizer::{Submission, SubmitFailure};
use tokio::time::Instant;

use super::pace::hash_of;
use super::{Applicant, Source, placing};

/// How long a refusal is believed though nothing changed that we hear of: admission policies and webhooks refuse objects, too.
const BELIEVED: Duration = Duration::from_mins(5);

/// Steps remembered; then all are tried anew.
const REMEMBERED: usize = 4096;

/// What is about to be sent, as numbers: for which step of which owner, and all that the answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempted {
    step: u64,
    state: u64,
}

impl Attempted {
    /// `None` where it is not known when the live object changes.
    pub(super) fn of(
        applicant: &Applicant<'_>,
        submission: &Submission,
        source: &Source,
    ) -> Option<Self> {
        let Source::Watch(watch) = source else {
            return None;
        };
        let key = placing::key_of(applicant, submission, watch.served());
        let live = watch.get(&key);
        let live = live.map(|live| (live.uid.clone(), live.resource_version));
        let state = (
            &submission.digest,
            &applicant.account,
            applicant.generation,
            live,
        );
        Some(Self {
            step: hash_of(&(applicant.uid, submission.resource.as_str())),
            state: hash_of(&state),
        })
    }
}

#[derive(Debug)]
struct Refusal {
    state: u64,
    namespace: Box<str>,
    failure: SubmitFailure,
    at: Instant,
}

/// The latest refusal of each step.
#[derive(Debug, Default)]
pub(super) struct KnownRefusals(Mutex<HashMap<u64, Refusal>>);

impl KnownRefusals {
    /// The answer to the same attempt before.
    pub(super) fn known(&self, attempt: Attempted, now: Instant) -> Option<SubmitFailure> {
        let known = self.lock();
        let refusal = known.get(&attempt.step)?;
        let holds = refusal.state == attempt.state && now.duration_since(refusal.at) < BELIEVED;
        holds.then(|| refusal.failure.clone())
    }

    /// The API server refused this attempt.
    pub(super) fn learn(
        &self,
        attempt: Attempted,
        namespace: &str,
        failure: &SubmitFailure,
        now: Instant,
    ) {
        let mut known = self.lock();
        if known.len() >= REMEMBERED {
            known.retain(|_, refusal| now.duration_since(refusal.at) < BELIEVED);
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        let refusal = Refusal {
            state: attempt.state,
            namespace: namespace.into(),
            failure: failure.clone(),
            at: now,
        };
        known.insert(attempt.step, refusal);
    }

    /// Of this namespace, or of all, nothing is known any more.
    pub(super) fn forget(&self, namespace: Option<&str>) {
        let mut known = self.lock();
        match namespace {
            Some(namespace) => known.retain(|_, refusal| *refusal.namespace != *namespace),
            None => known.clear(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Refusal>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use realizer::SubmitFailureKind;

    use super::*;

    fn failure() -> SubmitFailure {
        SubmitFailure {
            kind: SubmitFailureKind::Rejected,
            message: "create: invalid".to_owned(),
        }
    }

    fn attempt(step: u64, state: u64) -> Attempted {
        Attempted { step, state }
    }

    #[test]
    fn the_same_attempt_has_the_same_answer_until_something_changes() {
        let refusals = KnownRefusals::default();
        let now = Instant::now();
        assert_eq!(refusals.known(attempt(1, 1), now), None);
        refusals.learn(attempt(1, 1), "dev", &failure(), now);
        assert_eq!(refusals.known(attempt(1, 1), now), Some(failure()));
        assert_eq!(
            refusals.known(attempt(1, 2), now),
            None,
            "something changed"
        );
        assert_eq!(refusals.known(attempt(2, 1), now), None, "another step");
        let later = now + BELIEVED;
        assert_eq!(
            refusals.known(attempt(1, 1), later),
            None,
            "a policy may have changed"
        );
    }

    #[test]
    fn rights_and_definitions_make_all_be_tried_anew() {
        let refusals = KnownRefusals::default();
        let now = Instant::now();
        for (step, namespace) in [(1, "dev"), (2, "other")] {
            refusals.learn(attempt(step, 0), namespace, &failure(), now);
        }
        refusals.forget(Some("dev"));
        assert_eq!(refusals.known(attempt(1, 0), now), None);
        assert!(refusals.known(attempt(2, 0), now).is_some());
        refusals.forget(None);
        assert_eq!(refusals.known(attempt(2, 0), now), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let refusals = KnownRefusals::default();
        for step in 0..10_000 {
            refusals.learn(attempt(step, 0), "dev", &failure(), Instant::now());
            assert!(refusals.lock().len() <= REMEMBERED);
        }
    }
}
