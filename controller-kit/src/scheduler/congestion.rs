//! What the many give up for the few where the API server is congested.
//!
//! A slot of its own is not enough for a small tenant: everything that thousands of owners of others have under way makes each
//! of its requests wait at the server. So, while many owners wait:
//!
//! - **Window**: other namespaces are there and the server is congested: the slots of each namespace go down
//!   to one, step by step, and come back when the server is fast again. What was in flight beyond
//!   that only waited at the server: a fifth of the pace is lost (docs/benchmarks.md), and the first request of the
//!   next guest finds the server free. While a few guests come, all others together have no more than that: a crowd in
//!   hundreds of namespaces is one crowd.
//! - **Yield**: while a guest is under way, a crowd gets no slot at all, for as long as its budget for that lasts.
//!
//! Both are bounded. Where many guests come at once, they are a crowd themselves, and nobody makes way for them. Where the
//! server stays slow though we send nearly nothing, it is not us who make it slow: the window opens, and stays open for a while.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// Where more owners wait than so many times the slots, some of them give way; a namespace with more is a crowd.
const CROWD: usize = 4;
/// No more guests than these at a time: more are a crowd.
const FEW: usize = 2;
/// A guest that asked for nothing for so long has left.
const LATELY: Duration = Duration::from_secs(10);
/// So long after the start of each run of a guest. A chain whose objects are good at once goes on within this time.
const YIELD: Duration = Duration::from_millis(150);
/// A crowd has so much time to give away, which comes back at a quarter of the speed of time: a guest that never
/// rests, by mistake or on purpose, takes no more than a fifth of the time from it in the end.
const YIELD_BUDGET: Duration = Duration::from_secs(15);
const COMES_BACK: u32 = 4;
/// How often the window may be closed further: what is in flight must have ended before the next answers tell anything.
const CLOSE: Duration = Duration::from_millis(200);
/// How long the server must have been fast before the window opens by one more: there is nothing to gain in a hurry, and the
/// next guest would meet what is in flight.
const OPEN: Duration = Duration::from_secs(1);
/// Where the window is closed to one slot for so long and the server is as slow, closing it is in vain.
const IN_VAIN: Duration = Duration::from_secs(5);
/// Then it stays open for so long.
const STAYS_OPEN: Duration = Duration::from_mins(1);
/// A namespace that asked for nothing for so long is no neighbour any more. At the start all owners are looked at, so
/// whoever is there has been seen.
const NEIGHBOUR: Duration = Duration::from_mins(10);

/// The rule for one queue.
pub(super) struct Congestion {
    crowd: usize,
    window: Window,
    yield_budget: YieldBudget,
    yields_until: Option<Instant>,
    yields: u64,
    neighbours_until: Option<Instant>,
    guests: Guests,
}

/// How many slots namespaces may hold now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// More than so many owners are a crowd.
    above: usize,
    crowd: usize,
    others: usize,
    /// Crowds and others together.
    all_others: usize,
}

impl Share {
    const ALL: Self = Self {
        above: usize::MAX,
        crowd: usize::MAX,
        others: usize::MAX,
        all_others: usize::MAX,
    };

    /// Whether few wait, so that nobody has to make way.
    pub(super) fn is_all(self) -> bool {
        self == Self::ALL
    }

    /// For a namespace of which so many owners wait or run.
    pub(super) fn of(self, is_guest: bool, backlog: usize) -> usize {
        if is_guest {
            usize::MAX
        } else if backlog > self.above {
            self.crowd
        } else {
            self.others
        }
    }

    /// For all that are no guests, together.
    pub(super) fn all_others(self) -> usize {
        self.all_others
    }
}

impl Congestion {
    /// For a pool with so many slots, and so many in all.
    pub(super) fn new(slots: usize, all: usize) -> Self {
        Self {
            crowd: all.saturating_mul(CROWD),
            window: Window::new(slots),
            yield_budget: YieldBudget::default(),
            yields_until: None,
            yields: 0,
            neighbours_until: None,
            guests: Guests::default(),
        }
    }

    /// The pool has so many slots from now on, and there are so many in all.
    pub(super) fn resize(&mut self, slots: usize, all: usize) {
        self.crowd = all.saturating_mul(CROWD);
        self.window.resize(slots);
    }

    /// What each namespace may hold while so many owners wait.
    pub(super) fn share(
        &mut self,
        waiting: usize,
        now: Instant,
        congested: impl FnOnce() -> bool,
    ) -> Share {
        if !self.is_crowded(waiting) {
            self.window.open();
            self.yields_until = None;
            return Share::ALL;
        }
        let window = self.window.look(now, congested);
        let has_guests = self.guests.are_few(now);
        let (crowd, others, all_others) = if self.yields_until(now).is_some() {
            (0, 1, 1)
        } else if self.has_neighbours(now) {
            (window, window, if has_guests { window } else { usize::MAX })
        } else {
            (usize::MAX, usize::MAX, usize::MAX)
        };
        Share {
            above: self.crowd,
            crowd,
            others,
            all_others,
        }
    }

    /// Whether so many wait that some may have to give way.
    pub(super) fn is_crowded(&self, waiting: usize) -> bool {
        waiting > self.crowd
    }

    /// An owner was taken whose namespace has so many in the queue, itself included.
    pub(super) fn taken(
        &mut self,
        namespace: &Arc<str>,
        is_guest: bool,
        backlog: usize,
        waiting: usize,
        now: Instant,
    ) {
        if backlog <= self.crowd {
            self.neighbours_until = Some(now + NEIGHBOUR);
        }
        if !is_guest {
            return;
        }
        self.guests.came(namespace, now);
        // The window tells of congestion a while after it has ended: what is given makes the server fast again,
        // which is no reason to stop.
        if self.is_crowded(waiting) && self.window.is_narrow() && self.guests.are_few(now) {
            self.give_way(now);
        }
    }

    /// How many slots a namespace of many may hold while the server is congested.
    pub(super) fn window(&self) -> usize {
        self.window.now
    }

    /// How often a crowd made way for a guest.
    pub(super) fn yields(&self) -> u64 {
        self.yields
    }

    /// Until when a crowd yields to a guest, if it does.
    pub(super) fn yields_until(&self, now: Instant) -> Option<Instant> {
        self.yields_until.filter(|until| *until > now)
    }

    fn has_neighbours(&self, now: Instant) -> bool {
        self.neighbours_until.is_some_and(|until| until > now)
    }

    fn give_way(&mut self, now: Instant) {
        let until = now + YIELD;
        let given = self.yields_until.map_or(now, |until| until.max(now));
        let more = until.saturating_duration_since(given);
        if self.yield_budget.give(more, now) {
            self.yields_until = Some(until);
            self.yields += 1;
        }
    }
}

/// Guests that came lately; one more than are few, and no more.
#[derive(Default)]
struct Guests {
    came: VecDeque<(Arc<str>, Instant)>,
}

impl Guests {
    fn came(&mut self, namespace: &Arc<str>, now: Instant) {
        self.came.retain(|(name, _)| name != namespace);
        self.came.push_back((namespace.clone(), now));
        if self.came.len() > FEW + 1 {
            self.came.pop_front();
        }
    }

    /// Whether there are some, and few.
    fn are_few(&self, now: Instant) -> bool {
        let lately = |at: &Instant| now.saturating_duration_since(*at) < LATELY;
        let count = self.came.iter().filter(|(_, at)| lately(at)).count();
        (1..=FEW).contains(&count)
    }
}

/// How many slots a namespace holds at most: closed by a quarter while the server is congested, opened by one while it is not.
struct Window {
    slots: usize,
    now: usize,
    changed: Option<Instant>,
    /// Since when it is closed to one slot, and the server is congested.
    closed_since: Option<Instant>,
    open_until: Option<Instant>,
}

impl Window {
    fn new(slots: usize) -> Self {
        let slots = slots.max(1);
        Self {
            slots,
            now: slots,
            changed: None,
            closed_since: None,
            open_until: None,
        }
    }

    fn open(&mut self) {
        self.now = self.slots;
        self.closed_since = None;
    }

    /// An open one stays open, a closed one as far closed.
    fn resize(&mut self, slots: usize) {
        let slots = slots.max(1);
        self.now = if self.is_narrow() {
            self.now.min(slots)
        } else {
            slots
        };
        self.slots = slots;
    }

    fn is_narrow(&self) -> bool {
        self.now < self.slots
    }

    fn look(&mut self, now: Instant, congested: impl FnOnce() -> bool) -> usize {
        if self.open_until.is_some_and(|until| until > now) {
            return self.now;
        }
        let stands = |at| now.saturating_duration_since(at);
        let stands = self.changed.map_or(Duration::MAX, stands);
        if stands >= CLOSE && congested() {
            self.changed = Some(now);
            self.close(now);
        } else if stands >= OPEN {
            self.changed = Some(now);
            self.closed_since = None;
            self.now = (self.now + 1).min(self.slots);
        }
        self.now
    }

    fn close(&mut self, now: Instant) {
        self.now = (self.now - self.now.div_ceil(4)).max(1);
        if self.now > 1 {
            return;
        }
        let since = *self.closed_since.get_or_insert(now);
        if now.saturating_duration_since(since) >= IN_VAIN {
            self.open();
            self.open_until = Some(now + STAYS_OPEN);
        }
    }
}

/// How much time the many can still give away.
#[derive(Default)]
struct YieldBudget {
    /// What was given and has not come back.
    spent: Duration,
    at: Option<Instant>,
}

impl YieldBudget {
    /// Gives this much, if it is there.
    fn give(&mut self, time: Duration, now: Instant) -> bool {
        let rested = self
            .at
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        self.at = Some(now);
        self.spent = self.spent.saturating_sub(rested / COMES_BACK);
        let spent = self.spent + time;
        let enough = spent <= YIELD_BUDGET;
        if enough {
            self.spent = spent;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: usize = 1000;

    /// A queue with 12 slots of 16 and, where `neighbours`, another namespace in it.
    struct Scene {
        congestion: Congestion,
        now: Instant,
    }

    impl Scene {
        fn new(neighbours: bool) -> Self {
            let (mut congestion, now) = (Congestion::new(12, 16), Instant::now());
            if neighbours {
                congestion.taken(&"other".into(), false, 10, 0, now);
            }
            Self { congestion, now }
        }

        /// The crowd's slots after it was looked at so many times, as far apart as the window may change.
        fn after(&mut self, looks: usize, congested: bool) -> usize {
            let mut share = Share::ALL;
            for _ in 0..looks {
                self.now += if congested { CLOSE } else { OPEN };
                share = self.congestion.share(MANY, self.now, || congested);
            }
            share.of(false, MANY)
        }

        /// The server is slow because of what is sent, and is not with one slot.
        fn share(&mut self) -> Share {
            let congested = self.congestion.window() > 1;
            self.congestion.share(MANY, self.now, || congested)
        }

        fn now(&mut self, backlog: usize) -> usize {
            self.share().of(false, backlog)
        }

        fn together(&mut self) -> usize {
            self.share().all_others()
        }

        fn guest(&mut self, name: &str) {
            self.congestion.taken(&name.into(), true, 1, MANY, self.now);
        }
    }

    #[test]
    fn the_window_closes_step_by_step_to_one_slot_and_opens_again() {
        let mut scene = Scene::new(true);
        let closing: Vec<_> = (0..8).map(|_| scene.after(1, true)).collect();
        assert_eq!(closing, [9, 6, 4, 3, 2, 1, 1, 1]);
        assert_eq!(scene.after(3, false), 4);
        assert_eq!(scene.after(20, false), 12);
    }

    /// Replicas that share the owners share the slots.
    #[test]
    fn the_first_step_down_from_fewer_slots_closes_one_of_those() {
        let mut scene = Scene::new(true);
        scene.congestion.resize(4, 6);
        assert_eq!(scene.congestion.window(), 4);
        let closing: Vec<_> = (0..4).map(|_| scene.after(1, true)).collect();
        assert_eq!(closing, [3, 2, 1, 1]);
        scene.congestion.resize(12, 16);
        assert_eq!(scene.after(2, false), 3, "it opens step by step");
        scene.congestion.resize(2, 4);
        assert_eq!(scene.congestion.window(), 2);
        assert!(scene.congestion.is_crowded(4 * CROWD + 1));
    }

    #[test]
    fn a_namespace_alone_keeps_its_slots() {
        let mut scene = Scene::new(false);
        assert_eq!(scene.after(10, true), usize::MAX);
        let mut scene = Scene::new(true);
        scene.now += NEIGHBOUR;
        assert_eq!(scene.after(10, true), usize::MAX, "its neighbours left");
    }

    #[test]
    fn few_owners_hold_nobody_back() {
        let mut scene = Scene::new(true);
        scene.after(10, true);
        let share = scene.congestion.share(64, scene.now, || true);
        assert_eq!(share, Share::ALL);
        assert_eq!(scene.now(MANY), 12, "and the window is open again");
    }

    #[test]
    fn a_crowd_gets_nothing_while_a_guest_is_under_way_and_others_one_slot() {
        let mut scene = Scene::new(true);
        scene.after(10, true);
        scene.guest("guest");
        assert_eq!([MANY, 64, 5].map(|backlog| scene.now(backlog)), [0, 1, 1]);
        assert_eq!(scene.together(), 1, "others have one slot together");
        let share = scene.congestion.share(MANY, scene.now, || true);
        assert_eq!(share.of(true, 1), usize::MAX);
        assert_eq!(
            scene.congestion.yields_until(scene.now),
            Some(scene.now + YIELD)
        );
        scene.now += YIELD;
        assert_eq!(scene.now(MANY), 1);
    }

    #[test]
    fn nobody_yields_where_the_server_is_fast() {
        let mut scene = Scene::new(true);
        scene.after(10, false);
        scene.guest("guest");
        assert_eq!(scene.congestion.yields_until(scene.now), None);
        assert_eq!(scene.after(1, false), 12);
    }

    #[test]
    fn what_makes_the_server_fast_again_is_no_reason_to_stop() {
        let mut scene = Scene::new(true);
        scene.after(10, true);
        scene.after(3, false);
        scene.guest("guest");
        assert_eq!(scene.now(MANY), 0);
    }

    #[test]
    fn a_guest_that_never_rests_takes_a_fifth_of_the_time() {
        let mut scene = Scene::new(true);
        scene.after(10, true);
        let mut yielded = Vec::new();
        for _ in 0..40_000 {
            scene.now += Duration::from_millis(10);
            scene.guest("guest");
            yielded.push(scene.now(MANY) == 0);
        }
        let share = |run: &[bool]| run.iter().filter(|yields| **yields).count() * 100 / run.len();
        assert!(
            yielded[..1500].iter().all(|yields| *yields),
            "15 s are given"
        );
        let in_the_end = share(&yielded[20_000..]);
        assert!((15..=26).contains(&in_the_end), "{in_the_end} %");
    }

    #[test]
    fn a_crowd_of_small_namespaces_has_one_window_while_a_few_guests_come() {
        let mut scene = Scene::new(true);
        scene.after(10, true);
        assert_eq!(scene.together(), usize::MAX, "nobody is in a hurry");
        scene.guest("one");
        scene.now += YIELD;
        assert_eq!(scene.together(), 1);
        scene.guest("two");
        scene.now += YIELD;
        assert_eq!(scene.together(), 1);
        scene.guest("three");
        assert_eq!(scene.now(MANY), 1, "nobody yields to many");
        assert_eq!(
            scene.together(),
            usize::MAX,
            "guests that are many are a crowd"
        );
        scene.now += LATELY;
        scene.guest("one");
        scene.now += YIELD;
        assert!(scene.together() <= 2);
        scene.now += LATELY;
        assert_eq!(scene.together(), usize::MAX, "the guest has left");
    }

    #[test]
    fn a_server_that_stays_slow_with_one_slot_is_not_slow_because_of_us() {
        let mut scene = Scene::new(true);
        let looks = |time: Duration| usize::try_from(time.as_millis() / CLOSE.as_millis()).unwrap();
        assert_eq!(scene.after(looks(IN_VAIN), true), 1);
        assert_eq!(scene.after(looks(IN_VAIN), true), 12);
        assert_eq!(scene.after(looks(STAYS_OPEN) / 2, true), 12);
        assert_eq!(
            scene.after(looks(STAYS_OPEN) / 2 + 8, true),
            1,
            "it is tried again"
        );
    }
}
