//! What the API server refused for what it is: too large, or invalid. It is not sent again as long as nothing changed that
//! could make a difference; a rendering of megabytes would go over the wire with every retry.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use realizer::SubmitFailure;
use tokio::time::Instant;

use super::Source;
use super::attempt::Attempt;
use super::backoff::{hash_of, make_room};
use super::failure::For;

/// How long a refusal is believed though nothing changed that we hear of: another object may have gone that had the port or
/// the host, and admission policies and webhooks refuse objects, too. After each further refusal twice as long,
const BELIEVED_FIRST: Duration = Duration::from_secs(5);
/// but no longer than this; and so long from the first refusal on if it was for the size, which nothing elsewhere makes smaller.
const BELIEVED_LONGEST: Duration = Duration::from_mins(5);

/// Steps remembered; then all are tried anew.
const REMEMBERED: usize = 4096;

/// What is about to be sent, as numbers: for which step of which owner, and all that the answer depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempted {
    owner: u64,
    step: u64,
    state: u64,
}

impl Attempted {
    /// `None` where it is not known when the live object changes.
    pub(super) fn of(attempt: Attempt<'_>) -> Option<Self> {
        let Source::Watch(watch) = attempt.source else {
            return None;
        };
        let (applicant, submission) = (attempt.applicant, attempt.submission);
        let live = watch.get(&attempt.key());
        let live = live.map(|live| (live.uid.clone(), live.resource_version));
        let state = (
            &submission.digest,
            &applicant.account,
            applicant.generation,
            live,
        );
        Some(Self {
            owner: hash_of(&applicant.uid),
            step: hash_of(&(applicant.uid, submission.resource.as_str())),
            state: hash_of(&state),
        })
    }
}

/// The objects that an owner has, as numbers. One of them may be what the refused one is in conflict with: a step that is
/// renamed makes its new object before the old one, which has the port, is deleted.
#[derive(Debug, Default)]
pub(super) struct Beside(HashSet<u64>);

impl Beside {
    pub(super) fn of<'u>(uids: impl IntoIterator<Item = &'u str>) -> Self {
        Self(uids.into_iter().map(|uid| hash_of(&uid)).collect())
    }

    /// Whether none of them has gone since; what has come makes no room.
    fn are_all_in(&self, now: &Self) -> bool {
        self.0.is_subset(&now.0)
    }
}

/// What the API server refused.
pub(super) struct Refused<'f> {
    pub(super) namespace: &'f str,
    pub(super) failure: &'f SubmitFailure,
    pub(super) why: For,
    /// What the owner had then.
    pub(super) beside: Beside,
}

#[derive(Debug)]
struct Refusal {
    owner: u64,
    state: u64,
    namespace: Box<str>,
    failure: SubmitFailure,
    why: For,
    beside: Beside,
    at: Instant,
    believed: Duration,
}

impl Refusal {
    fn is_believed(&self, now: Instant) -> bool {
        now.duration_since(self.at) < self.believed
    }
}

/// The latest refusal of each step.
#[derive(Debug, Default)]
pub(super) struct KnownRefusals(Mutex<HashMap<u64, Refusal>>);

impl KnownRefusals {
    /// The answer to the same attempt before, given what the owner has `beside` it now.
    pub(super) fn known(
        &self,
        attempt: Attempted,
        beside: impl FnOnce() -> Beside,
        now: Instant,
    ) -> Option<SubmitFailure> {
        let known = self.0.lock();
        let refusal = known.get(&attempt.step)?;
        let holds = refusal.state == attempt.state
            && refusal.is_believed(now)
            && (refusal.why == For::Size || refusal.beside.are_all_in(&beside()));
        holds.then(|| refusal.failure.clone())
    }

    /// The API server refused this attempt.
    pub(super) fn learn(&self, attempt: Attempted, refused: Refused<'_>, now: Instant) {
        let mut known = self.0.lock();
        make_room(&mut known, REMEMBERED, |refusal| refusal.is_believed(now));
        let before = known.get(&attempt.step);
        let again = before.filter(|before| before.state == attempt.state);
        let believed = match refused.why {
            For::Size => BELIEVED_LONGEST,
            For::Content => again.map_or(BELIEVED_FIRST, |again| {
                again.believed.saturating_mul(2).min(BELIEVED_LONGEST)
            }),
        };
        let refusal = Refusal {
            owner: attempt.owner,
            state: attempt.state,
            namespace: refused.namespace.into(),
            failure: refused.failure.clone(),
            why: refused.why,
            beside: refused.beside,
            at: now,
            believed,
        };
        known.insert(attempt.step, refusal);
    }

    /// Of this namespace, or of all, nothing is known any more.
    pub(super) fn forget(&self, namespace: Option<&str>) {
        let mut known = self.0.lock();
        match namespace {
            Some(namespace) => known.retain(|_, refusal| *refusal.namespace != *namespace),
            None => known.clear(),
        }
    }

    /// An object of this owner was deleted: what was in its way may have been that.
    pub(super) fn forget_owner(&self, uid: &str) {
        let owner = hash_of(&uid);
        self.0
            .lock()
            .retain(|_, refusal| refusal.owner != owner || refusal.why == For::Size);
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
        Attempted {
            owner: hash_of(&"uid"),
            step,
            state,
        }
    }

    fn learn(refusals: &KnownRefusals, attempt: Attempted, why: For, now: Instant) {
        let refused = Refused {
            namespace: "dev",
            failure: &failure(),
            why,
            beside: Beside::of(["old"]),
        };
        refusals.learn(attempt, refused, now);
    }

    fn known(refusals: &KnownRefusals, attempt: Attempted, now: Instant) -> Option<SubmitFailure> {
        refusals.known(attempt, || Beside::of(["old", "new"]), now)
    }

    #[test]
    fn the_same_attempt_has_the_same_answer_until_something_changes() {
        let refusals = KnownRefusals::default();
        let now = Instant::now();
        assert_eq!(known(&refusals, attempt(1, 1), now), None);
        learn(&refusals, attempt(1, 1), For::Content, now);
        assert_eq!(known(&refusals, attempt(1, 1), now), Some(failure()));
        let changed = known(&refusals, attempt(1, 2), now);
        assert_eq!(changed, None, "something changed");
        let of_another = known(&refusals, attempt(2, 1), now);
        assert_eq!(of_another, None, "another step");
    }

    #[test]
    fn what_may_be_right_elsewhere_is_tried_within_seconds_and_ever_less_often() {
        let refusals = KnownRefusals::default();
        let (mut now, mut tries) = (Instant::now(), Vec::new());
        for _ in 0..9 {
            learn(&refusals, attempt(1, 1), For::Content, now);
            let began = now;
            while known(&refusals, attempt(1, 1), now).is_some() {
                now += Duration::from_secs(1);
            }
            tries.push((now - began).as_secs());
        }
        assert_eq!(tries, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        // Another rendering is another matter.
        learn(&refusals, attempt(1, 2), For::Content, now);
        assert_eq!(known(&refusals, attempt(1, 2), now + BELIEVED_FIRST), None);
    }

    #[test]
    fn what_is_too_large_is_not_sent_again_for_minutes() {
        let refusals = KnownRefusals::default();
        let now = Instant::now();
        learn(&refusals, attempt(1, 1), For::Size, now);
        let later = now + BELIEVED_LONGEST;
        let nearly = later.checked_sub(Duration::from_secs(1)).unwrap();
        assert!(known(&refusals, attempt(1, 1), nearly).is_some());
        assert_eq!(known(&refusals, attempt(1, 1), later), None);
        // Whatever else of the owner goes.
        refusals.forget_owner("uid");
        assert!(
            refusals
                .known(attempt(1, 1), Beside::default, now)
                .is_some()
        );
    }

    #[test]
    fn what_was_in_conflict_with_an_object_that_is_gone_is_tried_at_once() {
        let refusals = KnownRefusals::default();
        let now = Instant::now();
        let learnt = || learn(&refusals, attempt(1, 1), For::Content, now);
        learnt();
        let without_old = || Beside::of(["new"]);
        assert_eq!(refusals.known(attempt(1, 1), without_old, now), None);
        learnt();
        refusals.forget_owner("other");
        assert!(known(&refusals, attempt(1, 1), now).is_some());
        refusals.forget_owner("uid");
        assert_eq!(known(&refusals, attempt(1, 1), now), None);
    }

    #[test]
    fn rights_and_definitions_make_all_be_tried_anew() {
        let refusals = KnownRefusals::default();
        let now = Instant::now();
        for (step, namespace) in [(1, "dev"), (2, "other")] {
            let refused = Refused {
                namespace,
                failure: &failure(),
                why: For::Size,
                beside: Beside::default(),
            };
            refusals.learn(attempt(step, 0), refused, now);
        }
        refusals.forget(Some("dev"));
        assert_eq!(known(&refusals, attempt(1, 0), now), None);
        assert!(known(&refusals, attempt(2, 0), now).is_some());
        refusals.forget(None);
        assert_eq!(known(&refusals, attempt(2, 0), now), None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let refusals = KnownRefusals::default();
        for step in 0..10_000 {
            learn(&refusals, attempt(step, 0), For::Content, Instant::now());
            assert!(refusals.0.lock().len() <= REMEMBERED);
        }
    }
}
