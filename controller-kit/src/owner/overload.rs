//! Owners whose requests the API server does not carry out: it is asked too much, cannot, or does not answer.
//!
//! That is nobody's fault who reads the owner's status, and mostly over in a moment. So nothing is said for
//! half a minute: the walk ends, the status stays what it was, and the next try comes no earlier than the server asks. Only
//! what lasts longer is told, with a reason of its own.
//!
//! The memory is this process's: after a restart the half minute begins anew.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::scheduler::Next;
use crate::stamped::ObjectKey;
use crate::submit::{Hurdle, Unavailable};

/// How long nothing is said. About six tries fall into it.
const BORNE: Duration = Duration::from_secs(30);
/// The wait after the first failure; each further one is twice as long,
const FIRST: Duration = Duration::from_millis(500);
/// but no longer than this, so that all is well soon after the trouble has ended.
const LONGEST: Duration = Duration::from_secs(20);

/// What the API server did not carry out for an owner in one walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overload {
    /// How long the server asked to be left alone.
    pub asked: Duration,
    /// Whether nothing is said of it yet.
    pub is_borne: bool,
    /// Whether anything failed; what only takes long is never told.
    pub is_failure: bool,
}

impl Overload {
    /// What two requests of a walk came to.
    pub(super) fn and(self, earlier: Option<Self>) -> Self {
        earlier.map_or(self, |earlier| Self {
            asked: self.asked.max(earlier.asked),
            is_borne: self.is_borne || earlier.is_borne,
            is_failure: self.is_failure || earlier.is_failure,
        })
    }
}

/// The owners and blueprints in trouble. There is an entry only while the last walk of one that is there failed, or its status
/// is not taken.
#[derive(Default)]
pub struct Troubles(Mutex<HashMap<ObjectKey, Trouble>>);

#[derive(Default)]
struct Trouble {
    /// Since when walks fail; `None` while nothing but the status cannot be written.
    since: Option<Instant>,
    tries: u32,
    /// What was told of each step: the next try may fail with other words, and is no news.
    told: BTreeMap<String, String>,
}

impl Troubles {
    /// What a request that was not carried out means for its walk.
    pub fn met(&self, owner: &ObjectKey, unavailable: &Unavailable, now: Instant) -> Overload {
        let own = self.lock().get(owner).and_then(|trouble| trouble.since);
        let first = own.into_iter().chain(unavailable.since).min();
        let is_young = first.is_none_or(|first| now.duration_since(first) < BORNE);
        let is_failure = unavailable.hurdle != Hurdle::LongListing;
        Overload {
            asked: unavailable.retry_after.unwrap_or_default(),
            is_borne: is_young || !is_failure,
            is_failure,
        }
    }

    /// The words for a step's trouble: those that were found first.
    pub(super) fn words(&self, owner: &ObjectKey, step: &str, message: String) -> String {
        let mut all = self.lock();
        let told = &mut all.entry(owner.clone()).or_default().told;
        told.entry(step.to_owned()).or_insert(message).clone()
    }

    /// A walk has failed: when the next one begins.
    pub(super) fn failed(&self, owner: &ObjectKey, overload: Overload, now: Instant) -> Next {
        let mut all = self.lock();
        let trouble = all.entry(owner.clone()).or_default();
        if overload.is_failure {
            trouble.since.get_or_insert(now);
        }
        trouble.tried(overload.asked)
    }

    /// A walk met no trouble. Its status may not be taken yet.
    pub(super) fn walked(&self, owner: &ObjectKey) {
        if let Some(trouble) = self.lock().get_mut(owner) {
            trouble.since = None;
            trouble.told.clear();
        }
    }

    /// Nothing but the status was not taken: when the next walk begins.
    pub(super) fn unwritten(&self, owner: &ObjectKey, asked: Duration) -> Next {
        let mut all = self.lock();
        all.entry(owner.clone()).or_default().tried(asked)
    }

    /// A walk met no trouble and its status was taken, or the owner is gone.
    pub(super) fn ended(&self, owner: &ObjectKey) {
        self.lock().remove(owner);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Trouble>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trouble {
    fn tried(&mut self, asked: Duration) -> Next {
        let doubled = 2_u32.checked_pow(self.tries);
        self.tries = self.tries.saturating_add(1);
        let wait = doubled.and_then(|factor| FIRST.checked_mul(factor));
        let wait = wait.map_or(LONGEST, |wait| wait.min(LONGEST));
        // Owners that failed together come back apart, and none before it is time.
        let wait = wait.mul_f64(0.5 + 0.5 * crate::jitter::random());
        Next::Rest {
            hold: asked,
            wait: asked + wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use realizer::{SubmitFailure, SubmitFailureKind};

    use super::*;

    fn owner() -> ObjectKey {
        ObjectKey::new("dev", "app")
    }

    fn unavailable(asked: Option<Duration>, since: Option<Instant>) -> Unavailable {
        Unavailable {
            failure: SubmitFailure {
                kind: SubmitFailureKind::Unavailable,
                message: "no".to_owned(),
            },
            retry_after: asked,
            since,
            hurdle: Hurdle::Silence,
        }
    }

    fn met(troubles: &Troubles, now: Instant) -> Overload {
        troubles.met(&owner(), &unavailable(None, None), now)
    }

    fn wait(next: Next) -> Duration {
        match next {
            Next::Rest { hold, wait } => {
                assert!(hold <= wait);
                wait
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn nothing_is_said_for_half_a_minute_and_some_tries() {
        let (troubles, began) = (Troubles::default(), Instant::now());
        let (mut now, mut tries) = (began, 0);
        while met(&troubles, now).is_borne {
            let overload = met(&troubles, now);
            now += wait(troubles.failed(&owner(), overload, now));
            tries += 1;
        }
        assert!((5..=9).contains(&tries), "{tries}");
        let said = now - began;
        assert!(said >= BORNE && said <= BORNE + LONGEST, "{said:?}");
        // It was over in between.
        troubles.ended(&owner());
        assert!(met(&troubles, now).is_borne);
    }

    #[test]
    fn the_server_is_left_alone_for_as_long_as_it_asks() {
        let (troubles, now) = (Troubles::default(), Instant::now());
        let asked = Duration::from_secs(45);
        let overload = troubles.met(&owner(), &unavailable(Some(asked), None), now);
        let Next::Rest { hold, wait } = troubles.failed(&owner(), overload, now) else {
            panic!("no rest");
        };
        assert_eq!(hold, asked);
        assert!(wait > asked && wait <= asked + FIRST);
    }

    #[test]
    fn a_status_that_is_not_taken_is_written_ever_less_often_though_the_walks_are_well() {
        let (troubles, now) = (Troubles::default(), Instant::now());
        let asked = Duration::from_secs(3);
        let mut waits = Vec::new();
        for _ in 0..10 {
            troubles.walked(&owner());
            waits.push(wait(troubles.unwritten(&owner(), asked)));
        }
        assert!(waits[0] <= asked + FIRST, "{waits:?}");
        assert!(waits[9] >= asked + LONGEST / 2, "{waits:?}");
        assert!(
            waits.iter().all(|wait| *wait <= asked + LONGEST),
            "{waits:?}"
        );
        // That is no trouble of a walk: the half minute begins with the first of those.
        let later = now + BORNE * 2;
        assert!(met(&troubles, later).is_borne);
        troubles.ended(&owner());
        assert!(wait(troubles.unwritten(&owner(), asked)) <= asked + FIRST);
    }

    #[test]
    fn what_others_have_found_out_long_ago_is_told_at_once() {
        let (troubles, now) = (Troubles::default(), Instant::now());
        let met = |since| troubles.met(&owner(), &unavailable(None, Some(since)), now + BORNE);
        assert!(!met(now).is_borne);
        assert!(met(now + Duration::from_secs(1)).is_borne);
    }

    #[test]
    fn a_listing_that_only_takes_long_is_never_told_and_counts_for_nothing() {
        let (troubles, now) = (Troubles::default(), Instant::now());
        let slow = Unavailable {
            hurdle: Hurdle::LongListing,
            ..unavailable(None, None)
        };
        for minutes in 0..5 {
            let now = now + Duration::from_mins(minutes);
            let overload = troubles.met(&owner(), &slow, now);
            assert!(overload.is_borne);
            wait(troubles.failed(&owner(), overload, now));
        }
        // What fails then fails for the first time.
        assert!(met(&troubles, now + Duration::from_mins(5)).is_borne);
    }

    #[test]
    fn other_words_for_the_same_trouble_are_no_news() {
        let troubles = Troubles::default();
        let words = |step, text: &str| troubles.words(&owner(), step, text.to_owned());
        assert_eq!(words("one", "reset"), "reset");
        assert_eq!(words("one", "too many requests"), "reset");
        assert_eq!(words("other", "too many requests"), "too many requests");
        troubles.ended(&owner());
        assert_eq!(words("one", "too many requests"), "too many requests");
    }
}
