//! Owners whose requests the API server does not carry out: it is asked too much, cannot, or does not answer.
//!
//! That is nobody's fault who reads the owner's status, and mostly over in a moment. So nothing is said for
//! half a minute: the walk ends, the status stays what it was, and the next try comes no earlier than the server asks. Only
//! what lasts longer is told, with a reason of its own.
//!
//! The memory is this process's: after a restart the half minute begins anew.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::settling::OfTerm;
use crate::jitter::{doubled, random};
use crate::scheduler::Next;
use crate::stamped::ObjectKey;
use crate::submit::{Hurdle, Unavailable};

/// How long nothing is said. About six tries fall into it.
const BORNE: Duration = Duration::from_secs(30);
/// The wait after the first failure; each further one is twice as long,
const FIRST: Duration = Duration::from_millis(500);
/// but no longer than this, so that all is well soon after the trouble has ended.
const LONGEST: Duration = Duration::from_secs(20);

/// A trouble is told in other words as soon as so many tries in a row have met the same other one,
const ANOTHER: u32 = 3;
/// none has met the one that was told for so long,
const FADED: Duration = Duration::from_mins(1);
/// or it was not met in these very words for so long. Each telling is a write of the status.
const WORN_OUT: Duration = Duration::from_mins(5);

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
pub struct Outages(Mutex<OfTerm<Outage>>);

#[derive(Default)]
struct Outage {
    /// Since when walks fail; `None` while nothing but the status cannot be written.
    since: Option<Instant>,
    tries: u32,
    /// What was told of each step: the next try may fail with other words, and is no news.
    messages: BTreeMap<String, StepMessage>,
}

/// What is told of a step.
struct StepMessage {
    hurdle: Hurdle,
    message: String,
    /// When a try last met this hurdle,
    met: Instant,
    /// and when in these words.
    heard: Instant,
    /// What the latest tries met instead, and how many they are.
    other: Option<(Hurdle, u32)>,
}

impl Outages {
    /// This replica works for that many times. What was in the way before says nothing of now.
    pub(crate) fn begin_term(&self, term: u64) {
        self.0.lock().begin(term);
    }

    /// What a request that was not carried out means for its walk.
    pub fn met(&self, owner: &ObjectKey, unavailable: &Unavailable, now: Instant) -> Overload {
        let own = self
            .0
            .lock()
            .by_owner
            .get(owner)
            .and_then(|trouble| trouble.since);
        let first = own.into_iter().chain(unavailable.since).min();
        let is_young = first.is_none_or(|first| now.duration_since(first) < BORNE);
        let is_failure = unavailable.hurdle != Hurdle::LongListing;
        Overload {
            asked: unavailable.retry_after.unwrap_or_default(),
            is_borne: is_young || !is_failure,
            is_failure,
        }
    }

    /// The words for a step's trouble, or with an empty name the whole owner's: those that were told before, until it has
    /// become another one.
    pub fn words(
        &self,
        owner: &ObjectKey,
        step: &str,
        unavailable: &Unavailable,
        now: Instant,
    ) -> String {
        let mut known = self.0.lock();
        let messages = &mut known.of(owner).messages;
        let of_step = messages
            .entry(step.to_owned())
            .or_insert_with(|| StepMessage::of(unavailable, now));
        of_step.meets(unavailable, now);
        of_step.message.clone()
    }

    /// A walk has failed: when the next one begins.
    pub(super) fn failed(&self, owner: &ObjectKey, overload: Overload, now: Instant) -> Next {
        let mut known = self.0.lock();
        let trouble = known.of(owner);
        if overload.is_failure {
            trouble.since.get_or_insert(now);
        }
        trouble.tried(overload.asked)
    }

    /// A walk met no trouble. Its status may not be taken yet.
    pub(super) fn walked(&self, owner: &ObjectKey) {
        if let Some(trouble) = self.0.lock().by_owner.get_mut(owner) {
            trouble.since = None;
            trouble.messages.clear();
        }
    }

    /// Nothing but the status was not taken: when the next walk begins.
    pub(super) fn unwritten(&self, owner: &ObjectKey, asked: Duration) -> Next {
        self.0.lock().of(owner).tried(asked)
    }

    /// A walk met no trouble and its status was taken, or the owner is gone.
    pub(super) fn ended(&self, owner: &ObjectKey) {
        self.0.lock().by_owner.remove(owner);
    }
}

impl OfTerm<Outage> {
    fn of(&mut self, owner: &ObjectKey) -> &mut Outage {
        self.by_owner.entry(owner.clone()).or_default()
    }
}

impl StepMessage {
    fn of(unavailable: &Unavailable, now: Instant) -> Self {
        Self {
            hurdle: unavailable.hurdle,
            message: unavailable.failure.message.clone(),
            met: now,
            heard: now,
            other: None,
        }
    }

    fn meets(&mut self, unavailable: &Unavailable, now: Instant) {
        let hurdle = unavailable.hurdle;
        let is_heard = unavailable.failure.message == self.message;
        if is_heard && hurdle == self.hurdle {
            self.heard = now;
        }
        if hurdle == self.hurdle {
            self.met = now;
            self.other = None;
        } else if !is_heard {
            // In the words that were told it has been counted already.
            let times = self.other.filter(|(other, _)| *other == hurdle);
            self.other = Some((hurdle, times.map_or(1, |(_, times)| times + 1)));
        }
        let is_another = self.other.is_some_and(|(_, times)| times >= ANOTHER);
        let has_faded = now.duration_since(self.met) >= FADED;
        if is_another || has_faded || now.duration_since(self.heard) >= WORN_OUT {
            *self = Self::of(unavailable, now);
        }
    }
}

impl Outage {
    fn tried(&mut self, asked: Duration) -> Next {
        let wait = doubled(FIRST, self.tries, LONGEST);
        self.tries = self.tries.saturating_add(1);
        // Owners that failed together come back apart, and none before it is time.
        let wait = wait.mul_f64(0.5 + 0.5 * random());
        // Whatever wakes it: a busy watch or an impatient client would else undo the growth.
        Next::Rest {
            hold: asked + wait / 2,
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

    fn met(outages: &Outages, now: Instant) -> Overload {
        outages.met(&owner(), &unavailable(None, None), now)
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
        let (outages, began) = (Outages::default(), Instant::now());
        let (mut now, mut tries) = (began, 0);
        while met(&outages, now).is_borne {
            let overload = met(&outages, now);
            now += wait(outages.failed(&owner(), overload, now));
            tries += 1;
        }
        assert!((5..=9).contains(&tries), "{tries}");
        let said = now - began;
        assert!(said >= BORNE && said <= BORNE + LONGEST, "{said:?}");
        // It was over in between.
        outages.ended(&owner());
        assert!(met(&outages, now).is_borne);
    }

    #[test]
    fn the_server_is_left_alone_for_as_long_as_it_asks() {
        let (outages, now) = (Outages::default(), Instant::now());
        let asked = Duration::from_secs(45);
        let overload = outages.met(&owner(), &unavailable(Some(asked), None), now);
        let Next::Rest { hold, wait } = outages.failed(&owner(), overload, now) else {
            panic!("no rest");
        };
        assert!(hold >= asked && wait >= hold && wait <= asked + FIRST);
    }

    #[test]
    fn what_wakes_an_owner_does_not_undo_that_its_tries_grow_rare() {
        let (outages, mut now) = (Outages::default(), Instant::now());
        let began = now;
        for _ in 0..20 {
            let overload = met(&outages, now);
            let Next::Rest { hold, .. } = outages.failed(&owner(), overload, now) else {
                panic!("no rest");
            };
            // It is woken all the time.
            now += hold;
        }
        assert!(now - began >= LONGEST / 4 * 10, "{:?}", now - began);
    }

    #[test]
    fn a_status_that_is_not_taken_is_written_ever_less_often_though_the_walks_are_well() {
        let (outages, now) = (Outages::default(), Instant::now());
        let asked = Duration::from_secs(3);
        let mut waits = Vec::new();
        for _ in 0..10 {
            outages.walked(&owner());
            waits.push(wait(outages.unwritten(&owner(), asked)));
        }
        assert!(waits[0] <= asked + FIRST, "{waits:?}");
        assert!(waits[9] >= asked + LONGEST / 2, "{waits:?}");
        assert!(
            waits.iter().all(|wait| *wait <= asked + LONGEST),
            "{waits:?}"
        );
        // That is no trouble of a walk: the half minute begins with the first of those.
        let later = now + BORNE * 2;
        assert!(met(&outages, later).is_borne);
        outages.ended(&owner());
        assert!(wait(outages.unwritten(&owner(), asked)) <= asked + FIRST);
    }

    #[test]
    fn what_others_have_found_out_long_ago_is_told_at_once() {
        let (outages, now) = (Outages::default(), Instant::now());
        let met = |since| outages.met(&owner(), &unavailable(None, Some(since)), now + BORNE);
        assert!(!met(now).is_borne);
        assert!(met(now + Duration::from_secs(1)).is_borne);
    }

    #[test]
    fn what_was_in_the_way_in_an_earlier_term_is_forgotten() {
        let (outages, now) = (Outages::default(), Instant::now());
        outages.begin_term(1);
        let overload = met(&outages, now);
        wait(outages.failed(&owner(), overload, now));
        outages.begin_term(1);
        assert!(!met(&outages, now + BORNE).is_borne);
        // Another replica has led for a while, and what was under way here was dropped.
        outages.begin_term(2);
        assert!(met(&outages, now + BORNE).is_borne);
    }

    #[test]
    fn a_listing_that_only_takes_long_is_never_told_and_counts_for_nothing() {
        let (outages, now) = (Outages::default(), Instant::now());
        let slow = Unavailable {
            hurdle: Hurdle::LongListing,
            ..unavailable(None, None)
        };
        for minutes in 0..5 {
            let now = now + Duration::from_mins(minutes);
            let overload = outages.met(&owner(), &slow, now);
            assert!(overload.is_borne);
            wait(outages.failed(&owner(), overload, now));
        }
        // What fails then fails for the first time.
        assert!(met(&outages, now + Duration::from_mins(5)).is_borne);
    }

    const THROTTLED: Hurdle = Hurdle::Answer(http::StatusCode::TOO_MANY_REQUESTS);

    /// What is told of a step that met this.
    fn told(outages: &Outages, step: &str, hurdle: Hurdle, text: &str, now: Instant) -> String {
        let mut met = unavailable(None, None);
        met.hurdle = hurdle;
        text.clone_into(&mut met.failure.message);
        outages.words(&owner(), step, &met, now)
    }

    #[test]
    fn other_words_for_the_same_trouble_are_no_news() {
        let (outages, now) = (Outages::default(), Instant::now());
        let words = |step, hurdle, text| told(&outages, step, hurdle, text, now);
        assert_eq!(words("one", Hurdle::Silence, "reset"), "reset");
        assert_eq!(words("one", THROTTLED, "too many requests"), "reset");
        assert_eq!(words("one", Hurdle::Silence, "refused"), "reset");
        let other = words("other", THROTTLED, "too many requests");
        assert_eq!(other, "too many requests");
        outages.ended(&owner());
        let anew = words("one", THROTTLED, "too many requests");
        assert_eq!(anew, "too many requests");
    }

    #[test]
    fn another_trouble_that_stays_is_told_instead_and_one_that_comes_and_goes_is_not() {
        let (outages, now) = (Outages::default(), Instant::now());
        let words = |hurdle, text| told(&outages, "one", hurdle, text, now);
        assert_eq!(words(Hurdle::Silence, "reset"), "reset");
        for _ in 0..10 {
            assert_eq!(words(THROTTLED, "too many requests"), "reset");
            assert_eq!(words(THROTTLED, "too many requests"), "reset");
            assert_eq!(words(Hurdle::Silence, "refused"), "reset");
        }
        words(THROTTLED, "too many requests");
        words(THROTTLED, "too many requests");
        let stays = words(THROTTLED, "too many requests");
        assert_eq!(stays, "too many requests");
        let next = words(Hurdle::Silence, "reset");
        assert_eq!(next, "too many requests");
    }

    #[test]
    fn what_nobody_meets_any_more_is_not_told_for_ever() {
        let (outages, now) = (Outages::default(), Instant::now());
        let words = |hurdle, text, after| told(&outages, "one", hurdle, text, now + after);
        words(Hurdle::Silence, "reset", Duration::ZERO);
        let throttled = |after| words(THROTTLED, "too many requests", after);
        let second = Duration::from_secs(1);
        assert_eq!(throttled(FADED.checked_sub(second).unwrap()), "reset");
        assert_eq!(throttled(FADED), "too many requests");
        // The same hurdle, and all that time in other words.
        let mut after = FADED;
        while after < FADED + WORN_OUT {
            let told = words(THROTTLED, "storage is (re)initializing", after);
            assert_eq!(told, "too many requests");
            after += Duration::from_secs(20);
        }
        let told = words(THROTTLED, "storage is (re)initializing", after);
        assert_eq!(told, "storage is (re)initializing");
    }

    /// A token's trouble is worded in the walk, and once more where a Runnable's walk ends.
    #[test]
    fn what_is_worded_twice_counts_once() {
        let (outages, now) = (Outages::default(), Instant::now());
        let words = |hurdle, text: &str| told(&outages, "", hurdle, text, now);
        words(Hurdle::Silence, "reset");
        for _ in 1..ANOTHER {
            let once = words(Hurdle::Token, "no token");
            assert_eq!(words(Hurdle::Token, &once), "reset");
        }
        assert_eq!(words(Hurdle::Token, "no token"), "no token");
    }
}
